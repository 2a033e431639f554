package tui

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// Lines shows the events of a session tree as plain lines: calls, notices, mail,
// tasks, agents that come and go. One goroutine at a time may use it.
type Lines struct {
	Style
	// Results adds a line for each result of the lead's calls, not only for
	// those that are errors.
	Results bool
	// Story adds what agents say, and puts the seconds since the first event before
	// each line. It leaves out calls whose effect is shown anyway: a message, a task,
	// a team.
	Story bool

	print   func(line string)
	began   time.Time         // of the first event
	now     time.Time         // of the event that is being shown
	title   map[string]string // agent id -> its name here, where that is not its own
	hidden  map[string]string // by id: calls that Story leaves out, described
	denied  map[string]bool   // ids of calls that were shown as denied; their results are not
	done    map[string]bool   // list and id of tasks that are completed
	tasks   map[string]string // list and id -> the line that shows a task as it is
	teams   map[string]bool   // the teams that there are
	waiting map[string]string // agent id -> the Wait that was shown last
	open    map[string]string // by id: the tools that open questions are about
}

// NewLines makes Lines that write to out and ignore its errors.
func NewLines(out io.Writer, style Style) *Lines {
	return newLines(style, func(line string) { fmt.Fprintln(out, line) })
}

func newLines(style Style, print func(string)) *Lines {
	return &Lines{
		Style: style, print: print, title: make(map[string]string), hidden: make(map[string]string),
		denied: make(map[string]bool), tasks: make(map[string]string), done: make(map[string]bool), teams: make(map[string]bool),
		waiting: make(map[string]string), open: make(map[string]string),
	}
}

// Event shows an event, unless it is of no interest to people.
func (l *Lines) Event(ev event.Event) {
	if l.began.IsZero() {
		l.began = ev.At
	}
	l.now = ev.At
	switch body := ev.Body.(type) {
	case event.Stored:
		if l.Story {
			l.said(ev.Agent, body.Entry)
		}
	case event.ToolStarted:
		l.call(ev.Agent, body)
	case event.ToolEnded:
		l.result(ev.Agent, body)
	case event.ToolDenied:
		l.refusal(ev.Agent, body)
	case event.Asked:
		l.asked(ev.Agent, body.Ask)
	case event.Answered:
		l.answered(ev.Agent, body)
	case event.Waiting:
		l.say(ev.Agent, amber, "↻", Waiting(body))
	case event.Retrying:
		l.say(ev.Agent, amber, "↻", Retrying(body))
	case event.MailSent:
		l.say(event.Agent{}, "", "✉", Mail(body.To, body.Message))
	case event.TaskChanged:
		l.task(body)
	case event.TeamChanged:
		l.team(body)
	case event.AgentStarted:
		l.started(ev.Agent, body)
	case event.AgentEnded:
		l.say(ev.Agent, dim, "−", strings.TrimSuffix("ended ("+oneLine(body.Reason)+")", " ()"))
	case event.JobEnded:
		if body.Unwaited {
			l.say(ev.Agent, "", "■", fmt.Sprintf("%s %s: %s", body.Kind, body.Status, oneLine(body.Title)))
		}
	case event.TurnEnded:
		l.ended(ev.Agent, body.Outcome)
	case event.Gap:
		l.gap(body)
	case event.Noticed:
		l.noticed(ev.Agent, body)
	}
}

// say prints a line about an agent.
func (l *Lines) say(a event.Agent, style, mark, text string) {
	line, used := "", 0
	if l.Story {
		stamp := fmt.Sprintf("%5.1fs ", l.now.Sub(l.began).Seconds())
		line, used = l.paint(dim, stamp), len(stamp)
	}
	if name := l.name(a); name != "" {
		line, used = line+l.paint(agentColors[a.Color], "["+name+"]")+" ", used+cells.Width(name)+3
	}
	if mark != "" {
		line, used = line+l.paint(style, mark)+" ", used+cells.Width(mark)+1
	}
	l.print(line + l.fit(text, used))
}

// name is what an agent is called; "" for the lead.
func (l *Lines) name(a event.Agent) string {
	switch {
	case a.ID == "":
		return ""
	case l.title[a.ID] != "":
		return l.title[a.ID]
	case a.Name != "":
		return flat(a.Name)
	}
	return flat(a.ID)
}

func (l *Lines) started(a event.Agent, s event.AgentStarted) {
	if a.Name == "" && s.Type != "" {
		l.title[a.ID] = flat(s.Type)
	}
	kind := "sub-agent"
	if s.Teammate {
		kind = "teammate"
	}
	l.say(a, dim, "+", strings.TrimSpace(fmt.Sprintf("%s started %s", kind, oneLine(s.Prompt))))
}

// said shows what an agent said, in one line.
func (l *Lines) said(a event.Agent, e transcript.Entry) {
	if text := flat(transcript.JoinText(e.Message.Content)); text != "" && e.Kind == transcript.KindAssistant {
		l.say(a, "", "", text)
	}
}

// shownByEffect are the tools whose effect is an event of its own.
var shownByEffect = map[string]bool{
	"SendMessage": true, "TaskCreate": true, "TaskUpdate": true, "TeamCreate": true, "TeamDelete": true, "Agent": true, "Task": true,
}

func (l *Lines) call(a event.Agent, c event.ToolStarted) {
	text := l.describe(c.Tool, c.Input)
	again := c.Tool == "Wait" && l.waiting[a.ID] == text // mail had ended the wait before
	if l.Story && (shownByEffect[c.Tool] || again) {
		l.hidden[c.Call] = text
		return
	}
	if c.Tool == "Wait" {
		l.waiting[a.ID] = text
	}
	l.say(a, green, "●", text)
}

func (l *Lines) result(a event.Agent, r event.ToolEnded) {
	call, hidden := l.hidden[r.Call]
	denied := l.denied[r.Call]
	delete(l.hidden, r.Call)
	delete(l.denied, r.Call)
	quiet := hidden && r.Tool != "Wait" || !l.Results || a.ID != "" || l.Story && r.Tool != "Bash" && r.Tool != "Wait"
	if denied || quiet && !r.IsError {
		return
	}
	if hidden && r.IsError {
		l.say(a, green, "●", call)
	}
	style := dim
	if r.IsError {
		style = red
	}
	text := resultLine(r)
	if r.Took >= slow {
		text += fmt.Sprintf(" [%s]", r.Took.Round(time.Second))
	}
	l.say(a, style, "  ⎿", text)
}

// resultLine is the most useful line of a result: of a command that failed, the first that
// mentions a failure; of one that succeeded, the last; of any other call, the first.
func resultLine(r event.ToolEnded) string {
	text := stripTags(r.Text)
	code := exitCodeLine().FindStringSubmatch(text)
	switch {
	case code != nil:
		text = strings.TrimPrefix(text, code[0])
		if at := failureLine().FindStringIndex(text); at != nil {
			text = text[at[0]:]
		}
		text = code[1] + ": " + oneLine(text)
	case r.Tool == "Bash":
		text = lastLine(text)
	case json.Valid([]byte(text)):
		text = strings.Join(strings.Fields(Clean(text)), " ") // its first line alone may be a brace
	default:
		text = oneLine(text)
	}
	if text == "" {
		return "(no output)"
	}
	return text
}

var (
	// exitCodeLine is the first line of a failed command's result; what the
	// command printed comes next.
	exitCodeLine = lazy.Regexp(`^(Exit code \d+)\n\s*`)
	failureLine  = lazy.Regexp(`(?mi)^.*\b(fail(ed|ure)?|error|panic|fatal)\b.*$`)
)

// slow is how long a call takes whose time is shown.
const slow = 5 * time.Second

// stripTags removes the wrapper around the errors of wrong calls, which is for the model.
func stripTags(text string) string {
	text = strings.TrimPrefix(text, "<tool_use_error>")
	return strings.TrimSuffix(text, "</tool_use_error>")
}

// asked shows a question that waits for a person who is not in front, and how to answer
// it.
func (l *Lines) asked(a event.Agent, q ask.Ask) {
	l.open[q.ID] = q.Tool
	until := ""
	if !q.Deadline.IsZero() {
		until = " until " + q.Deadline.Local().Format(time.TimeOnly)
	}
	l.say(a, amber, "?", fmt.Sprintf("waits for your answer%s: %s %s", until, oneLine(q.Question), l.describe(q.Tool, q.Input)))
	l.print("    to see it: cadre asks; to answer: cadre answer " + Visible(q.ID) + " allow (or deny)")
}

// answered shows how a question that was shown has ended.
func (l *Lines) answered(a event.Agent, end event.Answered) {
	if tool, ok := l.open[end.ID]; ok {
		delete(l.open, end.ID)
		l.say(a, dim, "·", fmt.Sprintf("the question about %s %s", Visible(tool), oneLine(end.Answer.Outcome())))
	}
}

// refusal shows what was denied and what would allow it.
func (l *Lines) refusal(a event.Agent, d event.ToolDenied) {
	l.denied[d.Call] = true
	l.say(a, red, "✗", "denied: "+l.describe(d.Tool, d.Input))
	if d.Remedy != "" {
		l.print("    to allow it: " + oneLine(Visible(d.Remedy)))
	}
}

func (l *Lines) ended(a event.Agent, out event.Outcome) {
	switch out.Reason {
	case event.Failed:
		l.say(a, red, "✗", "error: "+oneLine(out.Err))
	case event.MaxRounds:
		l.say(a, amber, "!", fmt.Sprintf("stopped after %d rounds, the limit of this run", out.Rounds))
	case event.Interrupted:
		l.say(a, amber, "!", "interrupted")
	}
}

// gap says that events were missed; what was stored of them follows.
func (l *Lines) gap(g event.Gap) {
	text := "some of what happened before is not shown: it is no longer in memory"
	if g.Err != "" {
		text += ", and could not be read back: " + g.Err
	}
	l.noticed(event.Agent{}, event.Noticed{Level: "warning", Text: text})
}

func (l *Lines) noticed(a event.Agent, n event.Noticed) {
	switch n.Level {
	case "error":
		l.say(a, red, "✗", oneLine(n.Text))
	case "warning":
		l.say(a, amber, "!", oneLine(n.Text))
	default:
		l.say(a, dim, "·", oneLine(n.Text))
	}
}

// describe is a call in a few words, with paths as they are seen from Dir.
func (l *Lines) describe(tool string, input json.RawMessage) string {
	text := Call(tool, input)
	if l.Dir == "" {
		return text
	}
	return strings.Replace(text, "("+Clean(l.Dir)+string(filepath.Separator), "(", 1)
}

// task shows a task, unless only what its line leaves out has changed. A check
// that has passed is shown with the completion that follows it.
func (l *Lines) task(c event.TaskChanged) {
	key, line := c.List+"\x00"+c.Task.ID, TaskLine(c.Task)
	l.done[key] = c.Task.Status == task.Completed || c.Task.Status == task.Deleted
	blockers := slices.DeleteFunc(slices.Clone(c.Task.BlockedBy), func(id string) bool { return l.done[c.List+"\x00"+id] })
	if len(blockers) > 0 && c.Task.Status == task.Pending {
		line += "  after #" + flat(strings.Join(blockers, ", #"))
	}
	e, checked := c.Task.Checked()
	passes := checked && e.Passed && c.Task.Status == task.InProgress
	if c.Task.Internal() || passes || l.tasks[key] == line {
		return
	}
	l.tasks[key] = line
	l.say(event.Agent{}, "", "", line)
}

// team shows the beginning and the end of a team; members have events of their own.
func (l *Lines) team(c event.TeamChanged) {
	gone := len(c.Members) == 0
	switch {
	case gone:
		l.say(event.Agent{}, "", "", "team "+flat(c.Team)+" is gone")
	case !l.teams[c.Team]:
		names := make([]string, len(c.Members))
		for i, m := range c.Members {
			names[i] = flat(m.Name)
		}
		l.say(event.Agent{}, "", "", "team "+flat(c.Team)+": "+strings.Join(names, ", "))
	}
	l.teams[c.Team] = !gone
}

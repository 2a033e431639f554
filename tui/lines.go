package tui

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/internal/lazy"
)

// Lines tells the events of a session tree as plain lines: calls, notices, mail,
// tasks, agents that come and go. What the lead says is not among them. One
// goroutine at a time may use it.
type Lines struct {
	Look
	// Results adds a line for each result of the lead's calls, not only for
	// those that are errors.
	Results bool
	print   func(line string)
	title   map[string]string // agent id -> what it is called
	refused map[string]bool   // calls whose denial was told, so that their result need not be
	tasks   map[string]string // list and id -> how a task was told last
	teams   map[string]bool   // teams that were told
}

// NewLines makes a teller that writes to out, whatever becomes of out.
func NewLines(out io.Writer, look Look) *Lines {
	return newLines(look, func(line string) { fmt.Fprintln(out, line) })
}

func newLines(look Look, print func(string)) *Lines {
	return &Lines{
		Look: look, print: print, title: make(map[string]string), refused: make(map[string]bool),
		tasks: make(map[string]string), teams: make(map[string]bool),
	}
}

// Event tells an event, if it is one to tell.
func (l *Lines) Event(ev event.Event) {
	switch body := ev.Body.(type) {
	case event.ToolStarted:
		l.say(ev.Agent, green, "●", l.call(body.Tool, body.Input))
	case event.ToolEnded:
		l.result(ev.Agent, body)
	case event.ToolDenied:
		l.denied(ev.Agent, body)
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
		l.say(ev.Agent, dim, "−", "ended"+because(body.Reason, ""))
	case event.JobEnded:
		if body.Unwaited {
			l.say(ev.Agent, "", "■", fmt.Sprintf("%s %s: %s", body.Kind, body.Status, oneLine(body.Title)))
		}
	case event.TurnEnded:
		l.ended(ev.Agent, body.Outcome)
	case event.Noticed:
		l.noticed(ev.Agent, body)
	}
}

// say prints a line about an agent.
func (l *Lines) say(a event.Agent, style, mark, text string) {
	line, used := "", 0
	if name := l.name(a); name != "" {
		line, used = l.paint(agentColors[a.Color], "["+name+"]")+" ", cells.Width(name)+3
	}
	if mark != "" {
		line, used = line+l.paint(style, mark)+" ", used+2
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

func (l *Lines) result(a event.Agent, r event.ToolEnded) {
	refused := l.refused[r.Call]
	delete(l.refused, r.Call)
	if refused || !r.IsError && (!l.Results || a.ID != "") {
		return
	}
	style := dim
	if r.IsError {
		style = red
	}
	text := oneLine(exitCodeLine().ReplaceAllString(stripTags(r.Text), "$1: "))
	if text == "" {
		text = "(no output)"
	}
	if r.Took >= slow {
		text += fmt.Sprintf(" [%s]", r.Took.Round(time.Second))
	}
	l.say(a, style, "  ⎿", text)
}

// exitCodeLine is the first line of a failed command's result. What the command
// said stands in the next one.
var exitCodeLine = lazy.Regexp(`^(Exit code \d+)\n\s*`)

// slow calls have their time told.
const slow = 5 * time.Second

// stripTags takes away the wrapper of wrong calls, which is for the model.
func stripTags(text string) string {
	text = strings.TrimPrefix(text, "<tool_use_error>")
	return strings.TrimSuffix(text, "</tool_use_error>")
}

// denied tells what was refused and what would allow it.
func (l *Lines) denied(a event.Agent, d event.ToolDenied) {
	l.refused[d.Call] = true
	l.say(a, red, "✗", "denied: "+l.call(d.Tool, d.Input))
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

// call describes a call with paths as they are seen from Dir.
func (l *Lines) call(tool string, input json.RawMessage) string {
	text := Call(tool, input)
	if l.Dir == "" {
		return text
	}
	return strings.Replace(text, "("+Clean(l.Dir)+string(filepath.Separator), "(", 1)
}

// task tells a task, unless only what is not told of it has changed.
func (l *Lines) task(c event.TaskChanged) {
	key, line := c.List+"\x00"+c.Task.ID, TaskLine(c.Task)
	if c.Task.Internal() || l.tasks[key] == line {
		return
	}
	l.tasks[key] = line
	l.say(event.Agent{}, "", "", line)
}

// team tells the beginning and the end of a team; members tell of themselves.
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

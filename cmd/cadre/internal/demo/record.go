package demo

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/transcript"
	"github.com/cadre-dev/cadre/tui"
)

// Record sums up the events of a run: who took part, what became of the tasks, who
// wrote what to whom. One goroutine at a time may use it.
type Record struct {
	Team   string // the newest one's name; "" when there was none
	Tasks  []task.Task
	Mail   []Mail // what agents wrote to each other; a broadcast is one
	Answer string // the last text of the lead
	// Protocol counts the messages that the runtime posted by itself: idle
	// notifications, shutdown handshakes, assignments.
	Protocol int
	Failures []string // turns that ended with an error

	agents  []*member
	tally   *event.Tally
	refused map[string]int // by task: how often its check failed
	started time.Time
	ended   time.Time
}

// Mail is a message between two agents.
type Mail struct {
	From string `json:"from"`
	To   string `json:"to"` // "all" for a broadcast
	Text string `json:"text"`

	sent string // its timestamp
}

// member is an agent as the view follows it.
type member struct {
	id, name, color string
	lead, teammate  bool
	gone            bool
	busy            bool
	doing           string // the current call, or the text being written; "" in between; not clean
	broadcast       string // the text that it is sending to all
}

// leadName is what the view calls the main session.
const leadName = "lead"

// NewRecord makes an empty record.
func NewRecord() *Record {
	return &Record{tally: event.NewTally(provider.Cost), refused: make(map[string]int)}
}

// Add adds the next event.
func (r *Record) Add(ev event.Event) {
	if r.started.IsZero() {
		r.started = ev.At
	}
	r.ended = ev.At
	r.tally.Fold(slices.Values([]event.Event{ev}))
	m := r.member(ev.Agent)
	switch body := ev.Body.(type) {
	case event.AgentStarted:
		m.teammate = body.Teammate
	case event.AgentEnded:
		m.gone, m.busy, m.doing = true, false, ""
	case event.TurnStarted:
		m.busy, m.doing = true, ""
	case event.TurnEnded:
		m.busy, m.doing = false, ""
		if body.Outcome.Reason == event.Failed {
			r.Failures = append(r.Failures, m.name+": "+flat(body.Outcome.Err))
		}
	case event.TextDelta:
		if !body.Thinking && len(m.doing) < mostDoing {
			m.doing += body.Text
		}
	case event.ToolStarted:
		m.doing = tui.Call(body.Tool, body.Input)
	case event.ToolEnded:
		m.doing = ""
	case event.Stored:
		r.stored(m, body.Entry)
	case event.TeamChanged:
		r.Team = body.Team
	case event.TaskChanged:
		r.taskChanged(body.Task)
	case event.MailSent:
		r.mailSent(body)
	}
}

func (r *Record) stored(m *member, e transcript.Entry) {
	if e.Kind != transcript.KindAssistant {
		return
	}
	if text := strings.TrimSpace(transcript.JoinText(e.Message.Content)); text != "" {
		m.doing = ""
		if m.lead {
			r.Answer = text
		}
	}
	for _, use := range e.Message.ToolUses() {
		var in struct{ Type, To, Content, Message string }
		if use.Name == "SendMessage" && json.Unmarshal(use.Input, &in) == nil && (in.Type == "broadcast" || in.To == "*") {
			m.broadcast = cmp.Or(in.Content, in.Message)
		}
	}
}

// mostDoing is how many bytes of a text that is being written are kept to be
// shown: more than any line has.
const mostDoing = 1000

// taskChanged keeps the newest state of each task. One that is deleted stays
// with the status it had: a team's list goes with the team.
func (r *Record) taskChanged(t task.Task) {
	if t.Internal() {
		return
	}
	i, found := slices.BinarySearchFunc(r.Tasks, t, func(a, b task.Task) int {
		return cmp.Or(cmp.Compare(task.Number(a.ID), task.Number(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	var before *task.Task
	if found {
		before = &r.Tasks[i]
	}
	if e, ok := newEvidence(before, t); ok && !e.Passed {
		r.refused[t.ID]++
	}
	switch {
	case !found && t.Status != task.Deleted:
		r.Tasks = slices.Insert(r.Tasks, i, t)
	case found && t.Status != task.Deleted:
		r.Tasks[i] = t
	}
}

func (r *Record) mailSent(sent event.MailSent) {
	if _, isProtocol := protocol.Parse(sent.Message.Text); isProtocol {
		r.Protocol++
		return
	}
	mail := Mail{From: r.nameOf(sent.Message.From), To: r.nameOf(sent.To.Agent), Text: sent.Message.Text, sent: sent.Message.Timestamp}
	if m := r.named(mail.From); m != nil && m.broadcast == mail.Text {
		mail.To = "all"
		if slices.Contains(r.Mail, mail) {
			return
		}
	}
	r.Mail = append(r.Mail, mail)
}

// nameOf is the view's name for the agent with this name in the team.
func (r *Record) nameOf(name string) string {
	if name == mailbox.LeadName {
		return leadName
	}
	return flat(name)
}

func (r *Record) named(name string) *member {
	for _, m := range slices.Backward(r.agents) {
		if m.name == name {
			return m
		}
	}
	return nil
}

// member finds the agent of an event, or makes it.
func (r *Record) member(a event.Agent) *member {
	for _, m := range r.agents {
		if m.id == a.ID {
			return m
		}
	}
	m := &member{id: a.ID, name: r.nameOf(cmp.Or(a.Name, a.ID)), color: a.Color}
	if a.ID == "" {
		m.name, m.lead = leadName, true
	}
	r.agents = append(r.agents, m)
	return m
}

// blockers lists the tasks that t still waits for.
func (r *Record) blockers(t task.Task) []string { return task.Blockers(r.Tasks, t) }

package demo

import (
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tui"
)

// entry is one thing that happened, for people.
type entry struct {
	at    time.Duration
	who   *member
	verb  string
	style string // of the text
	text  string // clean
	mark  span   // after the text: how it went
	prose bool   // the text is broken into lines; otherwise it is cut
}

// teller turns events into entries. It keeps what it needs of earlier events.
type teller struct {
	record *Record
	dir    string // paths below it are shown without it
	calls  map[string]call
	last   map[string]string // by call: what tells most of its result
	reads  []*entry          // what agents have read since the last entry, one for each
	team   bool              // there is a team
	waits  map[*member]*waits
	held   []entry          // wake-ups, until what they woke to is told
	told   map[refused]bool // closing a task that its check refused, while the call lasts
}

func newTeller(r *Record, dir string) *teller {
	return &teller{
		record: r, dir: dir, calls: make(map[string]call), last: make(map[string]string),
		waits: make(map[*member]*waits), told: make(map[refused]bool),
	}
}

// prior is what a teller needs to know of the time before an event.
type prior struct {
	said  string     // the agent's last text
	task  *task.Task // the event's task; nil when it is new
	mails int        // on record
}

// tell returns what there is to tell of an event, and takes it into the record.
// What an agent reads in a row is told as one, when something else happens.
func (t *teller) tell(ev event.Event) []entry {
	m := t.record.member(ev.Agent)
	before := prior{m.said, t.taskBefore(ev), len(t.record.Mail)}
	if started, ok := ev.Body.(event.ToolStarted); ok {
		t.begin(m, started)
	}
	t.record.Add(ev)
	out := t.withHeld(m, ev.Body, t.entries(m, ev.Body, before))
	for i := range out {
		out[i].at = t.record.elapsed(ev.At)
	}
	if len(out) > 0 || endsReading(ev.Body) {
		out = append(t.rest(), out...)
	}
	return out
}

// withHeld puts wake-ups that were held back after the news that they woke to,
// and at the latest before what the agent does next.
func (t *teller) withHeld(m *member, body event.Body, out []entry) []entry {
	if _, isTask := body.(event.TaskChanged); isTask {
		return append(out, t.letGo(m, body)...)
	}
	if len(out) == 0 {
		return nil
	}
	return append(t.letGo(m, body), out...)
}

func (t *teller) entries(m *member, body event.Body, before prior) []entry {
	one := func(verb, style, text string) []entry {
		return []entry{{who: m, verb: verb, style: style, text: text}}
	}
	switch body := body.(type) {
	case event.AgentStarted:
		return one("joins", plain, "as "+flat(body.Type))
	case event.AgentEnded:
		return one("leaves", dim, "")
	case event.TextDelta:
		if !body.Thinking && len(m.doing) < mostDoing {
			m.doing += body.Text
		}
	case event.Stored:
		t.asked(m, body.Entry)
		t.results(body.Entry)
		if m.said != before.said {
			m.doing = ""
			return []entry{{who: m, verb: "says", text: flat(m.said), prose: true}}
		}
	case event.ToolStarted:
		if body.Tool == waitTool {
			return t.waitBegins(m, body, t.record.elapsed(t.record.ended))
		}
	case event.ToolEnded:
		return t.toolEnded(m, body)
	case event.ToolDenied:
		t.calls[body.Call] = call{tool: body.Tool, denied: true}
		return one("denied", red, denial(body))
	case event.Retrying:
		return one("waits", yellow, tui.Retrying(body))
	case event.Waiting:
		return one("waits", yellow, tui.Waiting(body))
	case event.TurnEnded:
		if body.Outcome.Reason == event.Failed {
			return one("fails", red, flat(body.Outcome.Err))
		}
	case event.TeamChanged:
		return t.teamChanged(m, body)
	case event.TaskChanged:
		return t.taskChanged(m, before.task, body.Task)
	case event.MailSent:
		return t.mailSent(body, before.mails)
	case event.Noticed:
		if body.Level != "info" {
			return one(body.Level, yellow, flat(body.Text))
		}
	}
	return nil
}

// mostDoing is how many bytes of a text that is being written are kept to be
// shown: more than any line has.
const mostDoing = 1000

func denial(d event.ToolDenied) string {
	text := tui.Call(d.Tool, d.Input)
	if d.Remedy != "" {
		text += ", which " + flat(tui.Visible(d.Remedy)) + " would allow"
	}
	return text
}

// endsReading reports whether an agent that was reading does something else now,
// even if there is nothing to tell of it.
func endsReading(body event.Body) bool {
	switch body := body.(type) {
	case event.ToolStarted:
		return reading[body.Tool] == ""
	case event.TurnEnded, event.AgentEnded:
		return true
	}
	return false
}

// rest returns what was read and not told yet.
func (t *teller) rest() []entry {
	var out []entry
	for _, read := range t.reads {
		out = append(out, *read)
	}
	t.reads = nil
	return out
}

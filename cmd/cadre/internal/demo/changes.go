package demo

import (
	"strings"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// taskBefore is the task of an event as it was until now.
func (t *teller) taskBefore(ev event.Event) *task.Task {
	changed, ok := ev.Body.(event.TaskChanged)
	if !ok {
		return nil
	}
	for _, known := range t.record.Tasks {
		if known.ID == changed.Task.ID {
			return &known
		}
	}
	return nil
}

func (t *teller) taskChanged(m *member, before *task.Task, now task.Task) []entry {
	if now.Internal() {
		return nil
	}
	title := taskTitle(now)
	who := m
	if owner := t.record.named(t.record.nameOf(now.Owner)); owner != nil && now.Owner != "" {
		who = owner
	}
	var out []entry
	add := func(who *member, verb, style, text string) {
		out = append(out, entry{who: who, verb: verb, style: style, text: text})
	}
	if before == nil {
		if now.Status != task.Deleted {
			out = append(out, planned(m, now))
		}
		before = &task.Task{Status: task.Pending}
	}
	if e, ok := newEvidence(before, now); ok && !e.Passed {
		out = append(out, t.refusal(who, now, e))
	}
	if len(now.BlockedBy) > len(before.BlockedBy) {
		add(m, "orders", plain, title+" waits for #"+flat(strings.Join(now.BlockedBy, " and #")))
	}
	switch {
	case now.Status == before.Status && now.Owner == before.Owner:
	case now.Status == task.Completed:
		out = append(out, entry{who: who, verb: "closes", style: green, text: title, mark: proved(now)})
		out = append(out, t.freed(now)...)
	case now.Status == task.InProgress:
		add(who, "takes", bold, title)
	case now.Status == task.Deleted:
		add(m, "drops", dim, title)
	case before.Owner != "" && now.Owner == "":
		add(t.record.named(t.record.nameOf(before.Owner)), "puts back", yellow, title)
	}
	return out
}

// planned tells of a new task, and what will prove that it is done.
func planned(m *member, t task.Task) entry {
	e := entry{who: m, verb: "plans", text: taskTitle(t)}
	if check := t.Check(); check != "" {
		e.mark = span{dim, "to be proved by: " + firstLine(check)}
	}
	return e
}

// freed tells which tasks waited for this one last.
func (t *teller) freed(done task.Task) []entry {
	var out []entry
	for _, other := range t.record.Tasks {
		for _, id := range other.BlockedBy {
			if id == done.ID && other.Status == task.Pending && len(t.record.blockers(other)) == 0 {
				out = append(out, entry{verb: "is free", text: taskTitle(other)})
			}
		}
	}
	return out
}

// mailSent tells of a message. mails is how many the record had before it.
func (t *teller) mailSent(sent event.MailSent, mails int) []entry {
	who := t.record.named(t.record.nameOf(sent.Message.From))
	control, ok := protocol.Parse(sent.Message.Text)
	if !ok {
		if len(t.record.Mail) == mails {
			return nil // a broadcast that was told already
		}
		mail := t.record.Mail[mails]
		return []entry{{who: who, verb: "→ " + mail.To, style: cyan, text: flat(mail.Text), prose: true}}
	}
	text := controlText(control)
	if text == "" {
		return nil
	}
	return []entry{{who: who, verb: "→ " + t.record.nameOf(sent.To.Agent), style: cyan, text: text, prose: true}}
}

// controlText is a message of the runtime in words; "" when there is nothing to
// tell, or it is told otherwise.
func controlText(c protocol.Control) string {
	switch c := c.(type) {
	case protocol.ShutdownRequest:
		return strings.TrimSuffix("Please shut down: "+flat(c.Reason), ": ")
	case protocol.ShutdownApproved:
		return "Yes, I shut down."
	case protocol.ShutdownRejected:
		return "No, I go on: " + flat(c.Reason)
	case protocol.IdleNotification:
		if c.IdleReason != protocol.Available {
			return flat(string(c.IdleReason) + " " + c.FailureReason)
		}
	}
	return ""
}

// teamChanged tells when the team comes and when it goes.
func (t *teller) teamChanged(m *member, changed event.TeamChanged) []entry {
	alive := len(changed.Members) > 0
	if alive == t.team {
		return nil
	}
	t.team = alive
	verb := "forms"
	if !alive {
		verb = "dissolves"
	}
	return []entry{{who: m, verb: verb, text: "team " + flat(changed.Team)}}
}

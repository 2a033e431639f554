package demo

import (
	"fmt"

	"github.com/cadre-dev/cadre/task"
)

// Proof counts how often the check of a task let it be completed or did not.
type Proof struct {
	Check   string `json:"check"`   // the command; "" for none
	Proved  bool   `json:"proved"`  // it passed, and the task is completed
	Refused int    `json:"refused"` // times that it failed, so that the task stayed open
}

// proof is what is known of the check of a task.
func (r *Record) proof(t task.Task) Proof {
	evidence, ok := t.Checked()
	return Proof{
		Check: t.Check(), Proved: ok && evidence.Passed && t.Status == task.Completed, Refused: r.refused[t.ID],
	}
}

// newEvidence is what came of a check between two states of a task, of which
// before may be nil; ok is false when it did not run.
func newEvidence(before *task.Task, now task.Task) (e task.Evidence, ok bool) {
	if e, ok = now.Checked(); !ok || before == nil {
		return e, ok
	}
	old, had := before.Checked()
	return e, !had || !old.At.Equal(e.At)
}

// refusal tells of a task that its check kept open.
func (t *teller) refusal(m *member, now task.Task, e task.Evidence) entry {
	if by := t.record.named(t.record.nameOf(e.By)); by != nil && e.By != "" {
		m = by
	}
	t.told[refused{m.name, now.ID}] = true
	why := flat(telling(e.Output))
	if why == "" {
		why = fmt.Sprintf("exit code %d", e.ExitCode)
	}
	return entry{who: m, verb: "closes", text: taskTitle(now), mark: span{red, "✗ refused by its check: " + why}}
}

// refused is a try of an agent to close a task.
type refused struct{ who, task string }

// proved marks a task that is closed by its check; nothing for one without.
func proved(t task.Task) span {
	evidence, ok := t.Checked()
	if !ok || !evidence.Passed {
		return span{}
	}
	if what := telling(evidence.Output); what != "" {
		return span{green, "✓ proved: " + flat(what)}
	}
	return span{green, "✓ proved by " + firstLine(evidence.Command)}
}

// proofText sums up the checks of the tasks for people; "" when there are none.
func (r Report) proofText() string {
	proved, refused, checked := 0, 0, 0
	for _, t := range r.Tasks {
		if t.Proof.Check == "" {
			continue
		}
		checked++
		refused += t.Proof.Refused
		if t.Proof.Proved {
			proved++
		}
	}
	if checked == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d tasks proved by their checks", proved, len(r.Tasks))
	if refused > 0 {
		text += fmt.Sprintf(", %d closed too early and refused", refused)
	}
	return text
}

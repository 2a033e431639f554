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

// proof sums up what the check of a task did.
func (r *Record) proof(t task.Task) Proof {
	evidence, ok := t.Checked()
	return Proof{
		Check: t.Check(), Proved: ok && evidence.Passed && t.Status == task.Completed, Refused: r.refused[t.ID],
	}
}

// newEvidence is the result of a check that ran between two states of a task, of which
// before may be nil; ok is false when none ran.
func newEvidence(before *task.Task, now task.Task) (e task.Evidence, ok bool) {
	if e, ok = now.Checked(); !ok || before == nil {
		return e, ok
	}
	old, had := before.Checked()
	return e, !had || !old.At.Equal(e.At)
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

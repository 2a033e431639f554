package team

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tool"
)

// ErrCheck says that a change would weaken how a task proves itself.
var ErrCheck = errors.New("only the team lead may change a task's check, and nobody its evidence")

// mayChange reports why a caller may not make a change: in a team, only the lead
// changes the check that a task has, gives one to a task that a teammate has claimed,
// or deletes a task with a check; evidence comes from the runtime alone
// ([Teams.KeepEvidence]).
func (t *Teams) mayChange(ctx context.Context, by tool.Caller, id string, c task.Change) error {
	if c.Metadata.Has(task.CheckedKey) {
		return fmt.Errorf("change task #%s: %w", id, ErrCheck)
	}
	deletes := c.Status != nil && *c.Status == task.Deleted
	if !deletes && !c.Metadata.Has(task.CheckKey) {
		return nil
	}
	if seat, ok := t.Seat(by); ok && seat.Lead {
		return nil
	}
	if _, inTeam := t.teamOf(by); !inTeam {
		return nil
	}
	before, err := t.tasks.Get(ctx, t.TaskList(by), id)
	if err != nil {
		return err
	}
	switch {
	case before.Check() != "":
		return fmt.Errorf("change task #%s, which is checked by %q: %w", id, before.Check(), ErrCheck)
	case !deletes && (before.Owner != "" || claims(c)):
		return fmt.Errorf("give a check to task #%s, which is claimed: %w", id, ErrCheck) // it would choose what proves its work
	}
	return nil
}

// claims reports whether a change gives a task an owner, or begins or ends the work on
// it.
func claims(c task.Change) bool {
	return c.Owner != nil && *c.Owner != "" || c.Status != nil && *c.Status != task.Pending
}

// mayCreate reports why a task may not be added: it brings its own evidence.
func mayCreate(item task.Task) error {
	if item.Metadata.Has(task.CheckedKey) {
		return fmt.Errorf("create task %q: %w", item.Subject, ErrCheck)
	}
	return nil
}

// KeepEvidence keeps what came of running the check of a task of the caller's
// list. Errors: [task.ErrNotFound].
func (t *Teams) KeepEvidence(ctx context.Context, by tool.Caller, id string, e task.Evidence) (task.Task, error) {
	list := t.TaskList(by)
	out, err := t.tasks.Update(ctx, list, id, task.Change{Metadata: e.Metadata()})
	if err != nil {
		return task.Task{}, err
	}
	t.publish(t.agentOf(by), event.TaskChanged{List: list, Task: out.After})
	return out.After, nil
}

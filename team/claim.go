package team

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Claim gives the agent, which must be idle, the first open task of the team's
// list, as input for its next turn (facts: claude-code §9). ok is false when
// there is none, when a task that it has begun is not completed, and for a lead,
// which hands work out.
func (s *Seat) Claim(ctx context.Context) (mail Mail, ok bool, err error) {
	if s.Lead || s.hasLeft() {
		return Mail{}, false, nil
	}
	list, err := s.teams.tasks.List(ctx, s.Team)
	if err != nil {
		return Mail{}, false, err
	}
	// The common case of a wake-up, that nothing is for us, costs no lock.
	if hasBegun(list, s.Name) || task.FirstClaimable(list) < 0 {
		return Mail{}, false, nil
	}
	t, ok, err := s.teams.tasks.Claim(ctx, s.Team, s.Name)
	if err != nil || !ok {
		return Mail{}, false, err
	}
	s.teams.publish(s.agent(), event.TaskChanged{List: s.Team, Task: t})
	s.Progress()
	return claimed(t), true, nil
}

// GiveBackTasks makes what the agent has in progress nobody's again, when it
// could not be told of the task that it claimed. What it was assigned and has
// not begun stays its own.
func (s *Seat) GiveBackTasks(ctx context.Context) error {
	list, err := s.teams.tasks.List(ctx, s.Team)
	if err != nil {
		return err
	}
	for _, t := range list {
		if !begunBy(t, s.Name) {
			continue
		}
		out, err := s.teams.tasks.Update(ctx, s.Team, t.ID, task.Change{Owner: new(""), Status: new(task.Pending)})
		if err != nil {
			return err
		}
		s.teams.publish(s.agent(), event.TaskChanged{List: s.Team, Task: out.After})
	}
	return nil
}

// WatchTasks returns a channel that is signalled when there may be a task to
// claim, and a function that ends the watch ([task.Store.Watch]).
func (s *Seat) WatchTasks() (<-chan struct{}, func()) { return s.teams.tasks.Watch(s.Team) }

// hasBegun reports whether a task of the list is owner's and in progress: an
// agent does one at a time.
func hasBegun(list []task.Task, owner string) bool {
	return slices.ContainsFunc(list, func(t task.Task) bool { return begunBy(t, owner) })
}

func begunBy(t task.Task, owner string) bool {
	return t.Owner == owner && t.Status == task.InProgress && !t.Internal()
}

// claimed is a claimed task as its new owner's model gets it. The spaces are
// part of the observed form.
func claimed(t task.Task) Mail {
	text := "Complete all open tasks. Start with task #" + t.ID + ": \n\n " + t.Subject
	if t.Description != "" {
		text += "\n\n" + t.Description
	}
	if check := t.Check(); check != "" {
		text += "\n\nCheck: " + check + "\nIt is run when you set the task completed, which the task becomes only when it passes."
	}
	return Mail{
		Kind: KindTask, From: mailbox.TaskListName, Text: protocol.Wrap(mailbox.Message{From: mailbox.TaskListName, Text: protocol.Shortened(text)}),
		Preview: oneline.Of("task #" + t.ID + ": " + t.Subject), IDs: []mailbox.ID{mailbox.ID("task-" + t.ID)},
	}
}

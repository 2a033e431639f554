package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// CreateTask adds a task to the caller's list. Errors: [ErrCheck].
func (t *Teams) CreateTask(ctx context.Context, by tool.Caller, item task.Task) (task.Task, error) {
	if err := mayCreate(item); err != nil {
		return task.Task{}, err
	}
	list := t.TaskList(by)
	created, err := t.tasks.Create(ctx, list, item)
	if err != nil {
		return task.Task{}, err
	}
	t.publish(t.agentOf(by), event.TaskChanged{List: list, Task: created})
	if seat, ok := t.Seat(by); ok {
		seat.Progress()
	}
	return created, nil
}

// Task loads one task of the caller's list. Errors: [task.ErrNotFound].
func (t *Teams) Task(ctx context.Context, by tool.Caller, id string) (task.Task, error) {
	return t.tasks.Get(ctx, t.TaskList(by), id)
}

// ListTasks loads the caller's list, in the order of the ids.
func (t *Teams) ListTasks(ctx context.Context, by tool.Caller) ([]task.Task, error) {
	return t.tasks.List(ctx, t.TaskList(by))
}

// UpdateTask changes a task of the caller's list. In a team the owner must be a
// member, and is told by mail when the task becomes its own; a teammate that
// sets a task in progress takes it, which fails when somebody else has it or it
// is blocked (facts: claude-code §3.5, done so that no two own a task).
//
// An error with an outcome (its Fields are set) means that the task was changed,
// but the new owner could not be told. Other errors: those of package task,
// [*roster.UnknownMemberError], [ErrCheck], [ErrNoTeam] when a sub-agent hands out a
// task.
func (t *Teams) UpdateTask(ctx context.Context, by tool.Caller, id string, c task.Change) (task.Outcome, error) {
	list := t.TaskList(by)
	if err := t.mayChange(ctx, by, id, c); err != nil {
		return task.Outcome{}, err
	}
	seat, seated := t.Seat(by)
	owner, err := t.newOwner(ctx, by, c.Owner)
	if err != nil {
		return task.Outcome{}, err
	}
	c.Owner = owner
	if seated && !seat.Lead && c.Owner == nil && c.Status != nil && *c.Status == task.InProgress {
		c.Take = seat.Name
	}
	out, err := t.tasks.Update(ctx, list, id, c)
	if err != nil {
		return task.Outcome{}, err
	}
	if len(out.Fields) > 0 {
		t.publishTask(ctx, by, list, c, out)
		if seated {
			seat.Progress()
		}
	}
	if !seated {
		return out, nil
	}
	if out.After.Status == task.Completed && out.Before.Status != task.Completed {
		seat.noteCompleted(id)
	}
	if out.After.Status != task.Deleted && out.After.Owner != "" && out.After.Owner != out.Before.Owner {
		if err := seat.assign(ctx, out.Before, out.After.Owner); err != nil {
			return out, fmt.Errorf("tell %s of task #%s: %w", out.After.Owner, id, err)
		}
	}
	return out, nil
}

// publishTask tells of a changed task, and of those that have an edge to it which
// came or went.
func (t *Teams) publishTask(ctx context.Context, by tool.Caller, list string, c task.Change, out task.Outcome) {
	agent := t.agentOf(by)
	t.publish(agent, event.TaskChanged{List: list, Task: out.After})
	touched := slices.Concat(c.AddBlocks, c.AddBlockedBy)
	if out.After.Status == task.Deleted {
		touched = slices.Concat(out.Before.Blocks, out.Before.BlockedBy)
	}
	for _, id := range touched {
		if other, err := t.tasks.Get(ctx, list, id); err == nil { // else it is gone, which somebody else tells
			t.publish(agent, event.TaskChanged{List: list, Task: other})
		}
	}
}

// newOwner turns the owner that was asked for into a name on the roster. Without
// a team any name will do.
func (t *Teams) newOwner(ctx context.Context, by tool.Caller, asked *string) (*string, error) {
	if _, inTeam := t.teamOf(by); asked == nil || !inTeam {
		return asked, nil
	}
	if strings.TrimSpace(*asked) == "" {
		return new(""), nil
	}
	seat, ok := t.Seat(by)
	if !ok {
		return nil, ErrNoTeam
	}
	member, err := seat.recipient(ctx, *asked)
	if err != nil {
		return nil, err
	}
	return &member.Name, nil
}

// assign tells a member that a task is its own now. The message has the task as
// it was before.
func (s *Seat) assign(ctx context.Context, before task.Task, owner string) error {
	at := time.Now()
	return s.postControl(ctx, owner, at, protocol.Assignment{
		Type: protocol.TypeAssignment, TaskID: before.ID, Subject: before.Subject, Description: before.Description,
		AssignedBy: s.Name, Check: before.Check(), Timestamp: protocol.Stamp(at),
	})
}

func (s *Seat) noteCompleted(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.completed = id
}

// agentOf names a caller in events.
func (t *Teams) agentOf(by tool.Caller) event.Agent {
	a := event.Agent{Session: by.SessionID, ID: by.AgentID, Name: by.AgentName}
	if seat, ok := t.Seat(by); ok {
		a = seat.agent()
		a.ID = by.AgentID
	}
	return a
}

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

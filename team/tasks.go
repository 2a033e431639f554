package team

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
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

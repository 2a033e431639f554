package team

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// Tasks are the task lists of this process's agents: a team has one that its members
// share, any other session its own. What an agent may do to a task stands here. Its
// methods may be called from any goroutine.
type Tasks struct {
	store   task.Store
	records roster.Records
	crews   *crews
	changes *taskChanges
}

// ListOf names the caller's task list: its team's, else its session's own.
func (ts *Tasks) ListOf(by tool.Caller) string {
	if team, ok := ts.crews.teamOf(by); ok {
		return team
	}
	return by.SessionID
}

// Create adds a task to the caller's list. Errors: [ErrCheck].
func (ts *Tasks) Create(ctx context.Context, by tool.Caller, item task.Task) (task.Task, error) {
	if err := mayCreate(item); err != nil {
		return task.Task{}, err
	}
	list := ts.ListOf(by)
	created, err := ts.store.Create(ctx, list, item)
	if err != nil {
		return task.Task{}, err
	}
	ts.changes.report(ts.agentOf(by), list, created)
	if err := ts.noteGiver(ctx, by, created.ID, created.Check()); err != nil {
		return created, err
	}
	if seat, ok := ts.crews.seat(by); ok {
		seat.Progress()
	}
	return created, nil
}

// Get loads one task of the caller's list. Errors: [task.ErrNotFound].
func (ts *Tasks) Get(ctx context.Context, by tool.Caller, id string) (task.Task, error) {
	return ts.store.Get(ctx, ts.ListOf(by), id)
}

// List loads the caller's list, in the order of the ids.
func (ts *Tasks) List(ctx context.Context, by tool.Caller) ([]task.Task, error) {
	return ts.store.List(ctx, ts.ListOf(by))
}

// Update changes a task of the caller's list. In a team the owner must be a
// member, and is notified by mail when the task becomes its own; a teammate that
// sets a task in progress claims it, which fails when somebody else owns it or it
// is blocked (facts: claude-code §3.5, done so that no two own a task).
//
// An error with an outcome (its Fields are set) means that the task was changed,
// but the new owner could not be notified. Other errors: those of package task,
// [*roster.UnknownMemberError], [ErrCheck], [ErrNoTeam] when a sub-agent hands out a
// task.
func (ts *Tasks) Update(ctx context.Context, by tool.Caller, id string, c task.Change) (task.Outcome, error) {
	list := ts.ListOf(by)
	if err := ts.mayChange(ctx, by, id, c); err != nil {
		return task.Outcome{}, err
	}
	seat, seated := ts.crews.seat(by)
	owner, err := ts.newOwner(ctx, by, c.Owner)
	if err != nil {
		return task.Outcome{}, err
	}
	c.Owner = owner
	if seated && !seat.Lead && c.Owner == nil && c.Status != nil && *c.Status == task.InProgress {
		c.ClaimFor = seat.Name
	}
	check := task.Task{Metadata: c.Metadata}.Check()
	if err := ts.noteGiver(ctx, by, id, check); err != nil { // before the check counts
		return task.Outcome{}, err
	}
	out, err := ts.store.Update(ctx, list, id, c)
	if err != nil {
		return task.Outcome{}, err
	}
	if len(out.Fields) > 0 {
		ts.publishUpdate(ctx, by, list, c, out)
		if seated {
			seat.Progress()
		}
	}
	if !seated {
		return out, nil
	}
	if out.After.Status == task.Completed && out.Before.Status != task.Completed {
		seat.turn.noteCompleted(id)
	}
	if out.After.Status != task.Deleted && out.After.Owner != "" && out.After.Owner != out.Before.Owner {
		if err := seat.assign(ctx, out.Before, out.After.Owner); err != nil {
			return out, fmt.Errorf("notify %s of task #%s: %w", out.After.Owner, id, err)
		}
	}
	return out, nil
}

// publishUpdate publishes a changed task, and of those that have an edge to it which
// came or went.
func (ts *Tasks) publishUpdate(ctx context.Context, by tool.Caller, list string, c task.Change, out task.Outcome) {
	agent := ts.agentOf(by)
	ts.changes.report(agent, list, out.After)
	touched := slices.Concat(c.AddBlocks, c.AddBlockedBy)
	if out.After.Status == task.Deleted {
		touched = slices.Concat(out.Before.Blocks, out.Before.BlockedBy)
	}
	for _, id := range touched {
		if other, err := ts.store.Get(ctx, list, id); err == nil { // else it is gone, which whoever deleted it publishes
			ts.changes.report(agent, list, other)
		}
	}
}

// newOwner turns the owner that was asked for into a name on the roster. Without
// a team any name will do.
func (ts *Tasks) newOwner(ctx context.Context, by tool.Caller, asked *string) (*string, error) {
	if _, inTeam := ts.crews.teamOf(by); asked == nil || !inTeam {
		return asked, nil
	}
	if strings.TrimSpace(*asked) == "" {
		return new(""), nil
	}
	seat, ok := ts.crews.seat(by)
	if !ok {
		return nil, ErrNoTeam
	}
	member, err := seat.recipient(ctx, *asked)
	if err != nil {
		return nil, err
	}
	return &member.Name, nil
}

// assign notifies a member that it owns a task now. The message has the task as it was
// before.
func (s *Seat) assign(ctx context.Context, before task.Task, owner string) error {
	at := time.Now()
	return s.postControl(ctx, owner, at, protocol.Assignment{
		Type: protocol.TypeAssignment, TaskID: before.ID, Subject: before.Subject, Description: before.Description,
		AssignedBy: s.Name, Check: before.Check(), Timestamp: protocol.Stamp(at),
	})
}

// agentOf names a caller in events.
func (ts *Tasks) agentOf(by tool.Caller) event.Agent {
	a := event.Agent{Session: by.SessionID, ID: by.AgentID, Name: by.AgentName}
	if seat, ok := ts.crews.seat(by); ok {
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
// ([Tasks.KeepEvidence]).
func (ts *Tasks) mayChange(ctx context.Context, by tool.Caller, id string, c task.Change) error {
	if c.Metadata.Has(task.CheckedKey) {
		return fmt.Errorf("change task #%s: %w", id, ErrCheck)
	}
	deletes := c.Status != nil && *c.Status == task.Deleted
	if !deletes && !c.Metadata.Has(task.CheckKey) {
		return nil
	}
	if seat, ok := ts.crews.seat(by); ok && seat.Lead {
		return nil
	}
	if _, inTeam := ts.crews.teamOf(by); !inTeam {
		return nil
	}
	before, err := ts.store.Get(ctx, ts.ListOf(by), id)
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

// recordCheck is the kind of record that says which teammate has given a task its check,
// under the task's id.
const recordCheck = "check"

// givenCheck is a check that a teammate has given a task. By is "" for one of its
// sub-agents.
type givenCheck struct {
	Command string `json:"command"`
	By      string `json:"by"`
}

// noteGiver stores who gives a task its check: who gives it one may claim the task later,
// and would have chosen what proves its own work. A check of the lead needs no record.
func (ts *Tasks) noteGiver(ctx context.Context, by tool.Caller, id, check string) error {
	team, inTeam := ts.crews.teamOf(by)
	if check == "" || !inTeam {
		return nil
	}
	given := givenCheck{Command: check}
	if seat, ok := ts.crews.seat(by); ok && seat.Lead {
		return ts.records.Drop(ctx, team, recordCheck, id)
	} else if ok {
		given.By = seat.Name
	}
	return roster.PutRecord(ctx, ts.records, team, recordCheck, id, given)
}

// provesItself reports whether a task is checked by a command that its owner, or the
// teammate that completes it now, has given it.
func (ts *Tasks) provesItself(ctx context.Context, by tool.Caller, t task.Task) (bool, error) {
	team, inTeam := ts.crews.teamOf(by)
	seat, seated := ts.crews.seat(by)
	if !inTeam || seated && seat.Lead {
		return false, nil
	}
	var given givenCheck
	err := roster.GetRecord(ctx, ts.records, team, recordCheck, t.ID, &given)
	if errors.Is(err, roster.ErrNoRecord) || err == nil && given.Command != t.Check() {
		return false, nil
	}
	return given.By == "" || given.By == t.Owner || seated && given.By == seat.Name, err
}

// KeepEvidence keeps what came of running the check of a task of the caller's
// list. That a check has passed which a teammate has given its own task is kept only
// when the lead has run it: the task is completed without proof. Errors:
// [task.ErrNotFound].
func (ts *Tasks) KeepEvidence(ctx context.Context, by tool.Caller, id string, e task.Evidence) (task.Task, error) {
	list := ts.ListOf(by)
	if e.Passed {
		t, err := ts.store.Get(ctx, list, id)
		if err != nil {
			return task.Task{}, err
		}
		if itself, err := ts.provesItself(ctx, by, t); itself || err != nil {
			return t, err
		}
	}
	out, err := ts.store.Update(ctx, list, id, task.Change{Metadata: e.Metadata()})
	if err != nil {
		return task.Task{}, err
	}
	ts.changes.report(ts.agentOf(by), list, out.After)
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
	list, err := s.teams.options.Tasks.List(ctx, s.Team)
	if err != nil {
		return Mail{}, false, err
	}
	// The common case of a wake-up, that nothing is for us, costs no lock.
	if hasBegun(list, s.Name) || task.FirstClaimable(list) < 0 {
		return Mail{}, false, nil
	}
	t, ok, err := s.teams.options.Tasks.Claim(ctx, s.Team, s.Name)
	if err != nil || !ok {
		return Mail{}, false, err
	}
	s.teams.Tasks.changes.report(s.agent(), s.Team, t)
	s.Progress()
	return claimMail(t), true, nil
}

// GiveBackTasks releases the tasks that the agent has in progress, for when it could not
// be given the task that it claimed. What it was assigned and has not begun stays its
// own.
func (s *Seat) GiveBackTasks(ctx context.Context) error {
	list, err := s.teams.options.Tasks.List(ctx, s.Team)
	if err != nil {
		return err
	}
	for _, t := range list {
		if !begunBy(t, s.Name) {
			continue
		}
		out, err := s.teams.options.Tasks.Update(ctx, s.Team, t.ID, task.Change{Owner: new(""), Status: new(task.Pending)})
		if err != nil {
			return err
		}
		s.teams.Tasks.changes.report(s.agent(), s.Team, out.After)
	}
	return nil
}

// WatchTasks returns a channel that is signalled when there may be a task to
// claim, and a function that ends the watch ([task.Store.Watch]).
func (s *Seat) WatchTasks() (<-chan struct{}, func()) { return s.teams.options.Tasks.Watch(s.Team) }

// hasBegun reports whether a task of the list is owner's and in progress: an
// agent does one at a time.
func hasBegun(list []task.Task, owner string) bool {
	return slices.ContainsFunc(list, func(t task.Task) bool { return begunBy(t, owner) })
}

func begunBy(t task.Task, owner string) bool {
	return t.Owner == owner && t.Status == task.InProgress && !t.Internal()
}

// claimMail is a claimed task as its new owner's model gets it. The spaces are
// part of the observed form.
func claimMail(t task.Task) Mail {
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

// taskChanges publishes the changes of tasks. Of a list that is followed
// ([Tasks.Follow]) it remembers each task as it was last published, so that a change
// that is seen in the store and reported by who made it is published once. Its methods
// may be called from any goroutine.
type taskChanges struct {
	publish func(by event.Agent, body event.Body)

	mu       sync.Mutex                      // also held while publishing: the newest event is what is remembered
	followed map[string]map[string]task.Task // by list and id
}

func newTaskChanges(publish func(event.Agent, event.Body)) *taskChanges {
	return &taskChanges{publish: publish, followed: make(map[string]map[string]task.Task)}
}

// report publishes a change that this process has made.
func (c *taskChanges) report(by event.Agent, list string, t task.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reportLocked(by, list, t)
}

func (c *taskChanges) reportLocked(by event.Agent, list string, t task.Task) {
	if published, ok := c.followed[list]; ok {
		old, known := published[t.ID]
		if known && equalTasks(old, t) || !known && t.Status == task.Deleted {
			return
		}
		if published[t.ID] = t; t.Status == task.Deleted {
			delete(published, t.ID)
		}
	}
	c.publish(by, event.TaskChanged{List: list, Task: t})
}

// begin remembers a list as it is now, without publishing anything.
func (c *taskChanges) begin(list string, tasks []task.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	published := make(map[string]task.Task)
	for _, t := range tasks {
		published[t.ID] = t
	}
	c.followed[list] = published
}

func (c *taskChanges) end(list string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.followed, list)
}

// compare publishes what has become of a list since it was last published. by names who
// made a change, as far as can be known.
func (c *taskChanges) compare(list string, tasks []task.Task, by func(task.Task) event.Agent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tasks {
		c.reportLocked(by(t), list, t)
	}
	published := c.followed[list]
	for _, id := range slices.Sorted(maps.Keys(published)) {
		if !slices.ContainsFunc(tasks, func(t task.Task) bool { return t.ID == id }) {
			gone := published[id]
			gone.Status = task.Deleted
			c.reportLocked(by(gone), list, gone)
		}
	}
}

// equalTasks reports whether two tasks are the same but for fields that we do not know.
func equalTasks(a, b task.Task) bool {
	return a.Subject == b.Subject && a.Description == b.Description && a.ActiveForm == b.ActiveForm &&
		a.Owner == b.Owner && a.Status == b.Status && slices.Equal(a.Blocks, b.Blocks) &&
		slices.Equal(a.BlockedBy, b.BlockedBy) && a.Metadata.Equal(&b.Metadata)
}

// Follow has changes published that other processes make to the task list of a team
// that this process leads. Those after its return are published by follow, which returns
// when ctx ends or this process does not lead the team any more.
func (ts *Tasks) Follow(ctx context.Context, team string) (follow func(context.Context), err error) {
	tasks, err := ts.store.List(ctx, team)
	if err != nil {
		return nil, err
	}
	ts.changes.begin(team, tasks)
	return func(ctx context.Context) {
		defer ts.changes.end(team)
		changed, stop := ts.store.Watch(team)
		defer stop()
		for ts.compareWithStored(ctx, team) {
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}, nil
}

// compareWithStored publishes what has become of a followed list. It reports whether this
// process leads the team still.
func (ts *Tasks) compareWithStored(ctx context.Context, team string) bool {
	tasks, err := ts.store.List(ctx, team)
	if !ts.crews.leadsHere(team) {
		return false // the list was removed with the team
	}
	if err == nil { // else the next change shows this one too
		ts.changes.compare(team, tasks, func(t task.Task) event.Agent {
			return event.Agent{Session: ts.crews.leadSession(team), Name: t.Owner}
		})
	}
	return true
}

package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// ErrEndlessWait says that a wait could never end: it is for oneself, or for
// somebody who waits for the one who waits.
var ErrEndlessWait = errors.New("the wait would never end")

// Awaited is what to wait for: tasks of the caller's list to be completed or
// deleted, and agents to be idle or gone. Without any, all teammates.
type Awaited struct {
	Tasks  []string // ids
	Agents []string // names, or name@team
	All    bool     // all of it, not just any
}

// Progress is what has come of a wait so far.
type Progress struct {
	Done   bool // what was waited for is there
	Tasks  []AwaitedTask
	Agents []AwaitedAgent
}

// AwaitedTask is where a task stands. Status deleted: it is on the list no more.
type AwaitedTask struct {
	ID, Subject, Owner string
	Status             task.Status
	Done               bool
	WaitsFor           []string // ids of the tasks that hold it back
	Unproved           bool     // it is completed, and its check has not passed
}

// AwaitedAgent is what an agent does. The rest tells of its last turn, as far as
// it is known: why it ended, and the task it completed last.
type AwaitedAgent struct {
	Name          string
	State         AgentState
	Done          bool
	Reason        protocol.IdleReason
	Failure       string
	CompletedTask string // an id
}

// AgentState is what an agent does.
type AgentState string

// The states. An agent with unread mail, or an open task to take, is at work: it
// is about to be.
const (
	AgentIdle    AgentState = "idle"
	AgentWorking AgentState = "working"
	AgentGone    AgentState = "gone"
)

// lookAgain is how long a wait goes without a look where no signal may come: for
// agents in other processes, and for those that are about to do something.
const lookAgain = time.Second

// lookSoon is how long after a note of an agent its roster entry is read again: it
// posts the note first, and writes into the roster that it is idle a moment later.
const lookSoon = 50 * time.Millisecond

// Await blocks until any or all of what it is told is there, or ctx ends, and
// returns how far things are. The end of ctx is no error: the caller knows why it
// ended it. Errors, at once: [*roster.UnknownMemberError], ErrNotFound of package task,
// [ErrNoTeam], [ErrEndlessWait] as far as this process knows who waits for whom.
func (t *Teams) Await(ctx context.Context, by tool.Caller, w Awaited) (Progress, error) {
	reading := context.WithoutCancel(ctx) // a wait that is over still says how far things are
	a, err := t.newWait(reading, by, w)
	if err != nil {
		return Progress{}, err
	}
	if err := t.waits.begin(a.agentWait); err != nil {
		return Progress{}, err
	}
	defer t.waits.end(a.agentWait)
	tasks, stop := t.tasks.Watch(a.list)
	defer stop()
	var notes <-chan struct{}
	if len(a.agents) > 0 {
		notes, stop = t.mail.Watch(mailbox.Address{Team: a.team, Agent: mailbox.LeadName})
		defer stop()
	}
	again := time.NewTimer(lookAgain)
	defer again.Stop()
	pause := lookAgain
	for {
		changed := t.changes.wait()
		p, unsure, err := a.look(reading)
		if err != nil || p.Done {
			return p, err
		}
		again.Stop()
		if unsure {
			again.Reset(pause)
		}
		pause = lookAgain
		select {
		case <-changed:
		case <-tasks:
		case <-notes:
			pause = lookSoon
		case <-again.C:
		case <-ctx.Done():
			return p, nil
		}
	}
}

// wait is one call of Await.
type wait struct {
	teams *Teams
	list  string   // of the tasks
	team  string   // "" without one
	tasks []string // ids
	*agentWait
}

// newWait checks what is to be waited for.
func (t *Teams) newWait(ctx context.Context, by tool.Caller, w Awaited) (*wait, error) {
	team, inTeam := t.teamOf(by)
	a := &wait{teams: t, list: t.TaskList(by), team: team, agentWait: &agentWait{all: w.All, tasks: len(w.Tasks) > 0}}
	self := ""
	if seat, ok := t.Seat(by); ok {
		self, a.who = seat.Name, seat.Address()
	}
	if err := a.addTasks(ctx, self, w.Tasks); err != nil {
		return nil, err
	}
	everybody := len(w.Tasks)+len(w.Agents) == 0
	if !everybody && len(w.Agents) == 0 {
		return a, nil
	}
	if !inTeam {
		return nil, ErrNoTeam
	}
	config, err := t.store.Load(ctx, team)
	if err != nil {
		return nil, err
	}
	if everybody {
		for _, m := range config.Teammates() {
			if m.Name != self {
				a.agents = append(a.agents, m.Name)
			}
		}
		return a, nil
	}
	if err := a.addAgents(ctx, &config, self, w.Agents); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *wait) addTasks(ctx context.Context, self string, ids []string) error {
	for _, id := range ids {
		id = strings.TrimPrefix(strings.TrimSpace(id), "#")
		item, err := a.teams.tasks.Get(ctx, a.list, id)
		if err != nil {
			return err
		}
		if item.Owner == self && self != "" && item.Status != task.Completed {
			return fmt.Errorf("wait for task #%s, which is your own: %w", id, ErrEndlessWait)
		}
		if !slices.Contains(a.tasks, id) {
			a.tasks = append(a.tasks, id)
		}
	}
	return nil
}

func (a *wait) addAgents(ctx context.Context, c *roster.Roster, self string, names []string) error {
	for _, asked := range names {
		m, err := a.teams.member(ctx, c, asked)
		name := m.Name
		if unknown, ok := errors.AsType[*roster.UnknownMemberError](err); ok && unknown.Departed {
			name, err = strings.TrimSuffix(unknown.Name, "@"+c.Name), nil // it is gone, which is what ends a wait for it
		}
		switch {
		case err != nil:
			return err
		case name == self:
			return fmt.Errorf("wait for %s, who is you: %w", name, ErrEndlessWait)
		case name == mailbox.LeadName:
			return &roster.NameError{Name: name, Reason: "is the lead: wait for teammates or tasks"}
		}
		if !slices.Contains(a.agents, name) {
			a.agents = append(a.agents, name)
		}
	}
	return nil
}

// look says how far things are. unsure means that they may change without a
// signal.
func (a *wait) look(ctx context.Context) (p Progress, unsure bool, err error) {
	list, err := a.teams.tasks.List(ctx, a.list)
	if err != nil {
		return Progress{}, false, err
	}
	done := 0
	for _, id := range a.tasks {
		at := AwaitedTask{ID: id, Status: task.Deleted}
		if i := slices.IndexFunc(list, func(t task.Task) bool { return t.ID == id }); i >= 0 {
			at = AwaitedTask{
				ID: id, Subject: list[i].Subject, Owner: list[i].Owner, Status: list[i].Status,
				WaitsFor: task.Blockers(list, list[i]), Unproved: list[i].IsUnproved(),
			}
		}
		if at.Done = at.Status == task.Completed || at.Status == task.Deleted; at.Done {
			done++
		}
		p.Tasks = append(p.Tasks, at)
	}
	if len(a.agents) > 0 {
		seen, err := a.teams.observe(ctx, a.team, list)
		if err != nil {
			return Progress{}, false, err
		}
		for _, name := range a.agents {
			agent, known, err := seen.agent(ctx, name)
			if err != nil {
				return Progress{}, false, err
			}
			if agent.Done = agent.State != AgentWorking; agent.Done {
				done++
			}
			unsure = unsure || !known
			p.Agents = append(p.Agents, agent)
		}
	}
	all := len(a.tasks) + len(a.agents)
	p.Done = done == all || !a.all && done > 0
	return p, unsure, nil
}

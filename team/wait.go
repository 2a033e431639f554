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
	Done   bool // what was waited for has come about
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

// AwaitedAgent is what an agent does. The rest describes its last turn, as far as
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

// checkEvery is how often a wait checks what may change without a signal: agents in other
// processes, and those that are about to do something.
const checkEvery = time.Second

// checkSoon is how long after a note of an agent its roster entry is read again: the
// agent posts the note first, and writes into the roster that it is idle a moment later.
const checkSoon = 50 * time.Millisecond

// Await blocks until any or all of what is awaited has come about, or ctx ends, and
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
	tasks, stop := t.options.Tasks.Watch(a.list)
	defer stop()
	var notes <-chan struct{}
	if len(a.agents) > 0 {
		notes, stop = t.options.Mail.Watch(mailbox.Address{Team: a.team, Agent: mailbox.LeadName})
		defer stop()
	}
	again := time.NewTimer(checkEvery)
	defer again.Stop()
	pause := checkEvery
	for {
		changed := t.changes.next()
		p, unsure, err := a.progress(reading)
		if err != nil || p.Done {
			return p, err
		}
		again.Stop()
		if unsure {
			again.Reset(pause)
		}
		pause = checkEvery
		select {
		case <-changed:
		case <-tasks:
		case <-notes:
			pause = checkSoon
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
	team, inTeam := t.crews.teamOf(by)
	a := &wait{teams: t, list: t.Tasks.ListOf(by), team: team, agentWait: &agentWait{all: w.All, tasks: len(w.Tasks) > 0}}
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
	config, err := t.members.rosters.Load(ctx, team)
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
		item, err := a.teams.options.Tasks.Get(ctx, a.list, id)
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
		m, err := a.teams.members.find(ctx, c, asked)
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

// progress says how far things are. unsure means that they may change without a
// signal.
func (a *wait) progress(ctx context.Context) (p Progress, unsure bool, err error) {
	list, err := a.teams.options.Tasks.List(ctx, a.list)
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

// agentWait is whom an agent waits for.
type agentWait struct {
	who    mailbox.Address // the zero Address: nobody can wait for the waiting one
	agents []string        // of its team
	all    bool
	tasks  bool // it waits for tasks too
}

// waits are the waits of this process's agents. The zero value has none.
type waits struct {
	mu  sync.Mutex
	all map[*agentWait]struct{}
}

// begin adds a wait, unless it could never end: [ErrEndlessWait].
func (w *waits) begin(a *agentWait) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[*agentWait]struct{})
	}
	w.all[a] = struct{}{}
	if w.endless()[a] {
		delete(w.all, a)
		return fmt.Errorf("wait for %s, who waits for you: %w", strings.Join(a.agents, ", "), ErrEndlessWait)
	}
	return nil
}

func (w *waits) end(a *agentWait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, a)
}

// endless are the waits that none but each other could end: what remains when
// those that may end are removed, again and again.
func (w *waits) endless() map[*agentWait]bool {
	stuck := make(map[*agentWait]bool, len(w.all))
	for a := range w.all {
		stuck[a] = true
	}
	for again := true; again; {
		again = false
		for a := range maps.Clone(stuck) {
			if a.mayEnd(stuck) {
				delete(stuck, a)
				again = true
			}
		}
	}
	return stuck
}

// mayEnd reports whether the wait can end while the stuck ones do not.
func (a *agentWait) mayEnd(stuck map[*agentWait]bool) bool {
	waits := func(name string) bool {
		for other := range stuck {
			if other.who == (mailbox.Address{Team: a.who.Team, Agent: name}) {
				return true
			}
		}
		return false
	}
	if a.all {
		return !slices.ContainsFunc(a.agents, waits)
	}
	return a.tasks || len(a.agents) == 0 || slices.ContainsFunc(a.agents, func(name string) bool { return !waits(name) })
}

// broadcast wakes everybody who waits for a change. The zero value is ready.
type broadcast struct {
	mu     sync.Mutex
	change chan struct{}
}

// next returns a channel that the next announcement closes. Whoever calls it before
// looking at what may have changed misses nothing.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.change == nil {
		b.change = make(chan struct{})
	}
	return b.change
}

// announce wakes all that wait.
func (b *broadcast) announce() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.change != nil {
		close(b.change)
		b.change = nil
	}
}

// Waiting says in a few words what goes on in the caller's team that the caller's
// process does not see in its own sessions: a teammate in another process is at
// work, mail is not marked read that a running agent will get, without anything new
// having to come ([Seat.Stall]), or there is a task that one may claim. For a
// teammate with a process of its own, only what concerns itself counts. "" when
// there is nothing, and without a team.
func (t *Teams) Waiting(ctx context.Context, by tool.Caller) (what string, err error) {
	seat, ok := t.Seat(by)
	if !ok {
		return "", nil
	}
	mates, err := t.members.running(ctx, seat.Team)
	if err != nil {
		return "", err
	}
	seen := &observation{teams: t, config: roster.Roster{Name: seat.Team}}
	if seat.own {
		mates = slices.DeleteFunc(mates, func(m roster.Member) bool { return m.Name != seat.Name })
	} else if dead, err := seen.diedUnnoticed(ctx, mates); dead != "" || err != nil {
		return dead, err
	}
	// An agent writes into the roster that it is at work before it marks its mail read,
	// and that it is idle after it has posted its note to the lead. So the agents' mail
	// is read first, then the roster, then the lead's mail: nothing slips through.
	for _, m := range mates {
		if waits, err := seen.hasMail(ctx, seat, m); waits != "" || err != nil {
			return waits, err
		}
	}
	if !seat.own {
		if busy, err := seen.busyElsewhere(ctx, mates); busy != "" || err != nil {
			return busy, err
		}
		if waits, err := seen.hasMail(ctx, seat, roster.Member{Name: mailbox.LeadName}); waits != "" || err != nil {
			return waits, err
		}
	}
	claimable, err := seen.claimable(ctx, mates)
	if err != nil || !claimable {
		return "", err
	}
	return "a task can be claimed", nil
}

// stalled is how much of its mail an agent is not going to read before something
// new comes: as its seat in this process says, else as its newest idle note says.
func (o *observation) stalled(ctx context.Context, by *Seat, m roster.Member) (int, error) {
	if m.Name == by.Name {
		return by.turn.unread(), nil
	}
	if seat := o.teams.crews.mate(mailbox.Address{Team: by.Team, Agent: m.Name}); seat != nil && seat.backend == roster.InProcess {
		return seat.turn.unread(), nil
	}
	_, last, err := o.notes(ctx, m.Name, joinedAt(&m))
	return last.stalled, err
}

// hasMail says that an agent has mail that it is going to read, if it has.
func (o *observation) hasMail(ctx context.Context, by *Seat, m roster.Member) (string, error) {
	unread, err := o.teams.options.Mail.Unread(ctx, mailbox.Address{Team: by.Team, Agent: m.Name})
	if err != nil || len(unread) == 0 {
		return "", err
	}
	stalled, err := o.stalled(ctx, by, m)
	if err != nil || len(unread) <= stalled {
		return "", err
	}
	return fmt.Sprintf("%s has not read its mail (%d)", m.Name, len(unread)), nil
}

// busyElsewhere names one of these teammates that is at work in a process of its own.
func (o *observation) busyElsewhere(ctx context.Context, mates []roster.Member) (string, error) {
	mates = slices.DeleteFunc(slices.Clone(mates), func(m roster.Member) bool { return !m.Apart() })
	if len(mates) == 0 {
		return "", nil
	}
	seen, err := o.teams.observe(ctx, o.config.Name, nil) // it is not by their tasks that they are known to work
	if err != nil {
		return "", err
	}
	for _, m := range mates {
		a, _, err := seen.agent(ctx, m.Name)
		if err != nil {
			return "", err
		}
		if a.State == AgentWorking {
			return m.Name + " is at work", nil
		}
	}
	return "", nil
}

// diedUnnoticed names a teammate whose process this one has started and which is not
// running any more: its lead is about to be notified, and may have to act.
func (o *observation) diedUnnoticed(ctx context.Context, alive []roster.Member) (string, error) {
	config, err := o.teams.members.rosters.Load(ctx, o.config.Name)
	if errors.Is(err, roster.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, m := range config.Teammates() {
		lives := slices.ContainsFunc(alive, func(a roster.Member) bool { return a.Name == m.Name })
		if m.Apart() && !lives && o.teams.crews.mate(mailbox.Address{Team: config.Name, Agent: m.Name}) != nil {
			return m.Name + " has ended, and its lead does not know yet", nil
		}
	}
	return "", nil
}

// claimable reports whether one of these teammates may take a task.
func (o *observation) claimable(ctx context.Context, mates []roster.Member) (bool, error) {
	if len(mates) == 0 {
		return false, nil
	}
	list, err := o.teams.options.Tasks.List(ctx, o.config.Name)
	if err != nil || task.FirstClaimable(list) < 0 {
		return false, err
	}
	return slices.ContainsFunc(mates, func(m roster.Member) bool { return !hasBegun(list, m.Name) }), nil
}

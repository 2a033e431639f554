package team

import (
	"context"
	"errors"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
)

// observation is one look at what the agents of a team do.
type observation struct {
	teams    *Teams
	config   Config
	list     []task.Task
	openTask bool // a task waits for an agent to take it

	mail []mailbox.Message // the lead's inbox; read when it is needed
	read bool
}

// observe begins a look at the agents of a team with this task list.
func (t *Teams) observe(ctx context.Context, team string, list []task.Task) (*observation, error) {
	config, err := t.store.Load(ctx, team)
	if err != nil && !errors.Is(err, ErrNotFound) { // without a roster, everybody is gone
		return nil, err
	}
	config.Name = team
	return &observation{teams: t, config: config, list: list, openTask: task.FirstClaimable(list) >= 0}, nil
}

// agent says what an agent does. sure is false when that may change without a
// signal of this process's.
func (o *observation) agent(ctx context.Context, name string) (a AwaitedAgent, sure bool, err error) {
	who := mailbox.Address{Team: o.config.Name, Agent: name}
	m := o.config.Find(name)
	if m == nil || o.teams.departing(who.Team, name) {
		return AwaitedAgent{Name: name, State: AgentGone}, true, nil
	}
	unread, err := o.teams.mail.Unread(ctx, who)
	if err != nil {
		return AwaitedAgent{}, false, err
	}
	if seat := o.teams.mate(who); seat != nil && !m.apart() {
		working, last := seat.lastTurn()
		a = last.of(name)
		if working {
			return a, true, nil
		}
		if len(unread) <= last.stalled && (!o.openTask || hasBegun(o.list, name)) {
			a.State = AgentIdle
			return a, true, nil
		}
		return a, false, nil
	}
	a, err = o.elsewhere(ctx, who, m, len(unread))
	return a, false, err
}

// elsewhere says what an agent of another process does: whether that runs, what
// the agent writes into the roster, and what it last told the lead.
func (o *observation) elsewhere(ctx context.Context, who mailbox.Address, m *Member, unread int) (AwaitedAgent, error) {
	last, at, err := o.lastNote(ctx, who.Agent)
	if err != nil {
		return AwaitedAgent{}, err
	}
	a := last.of(who.Agent)
	if m.IsActive != nil {
		present, known, err := o.teams.Present(ctx, who)
		if err != nil {
			return AwaitedAgent{}, err
		}
		switch {
		case known && !present:
			a.State = AgentGone
		case !*m.IsActive && unread <= last.stalled:
			a.State = AgentIdle
		}
		return a, nil
	}
	if last.reason == "" || unread > last.stalled || hasBegun(o.list, who.Agent) {
		return a, nil
	}
	mails, err := o.teams.mail.All(ctx, who)
	if err != nil {
		return AwaitedAgent{}, err
	}
	// Timestamps of the format sort as text.
	if !slices.ContainsFunc(mails, func(m mailbox.Message) bool { return m.Timestamp > at }) {
		a.State = AgentIdle
	}
	return a, nil
}

// lastNote is what an agent last told the lead of the end of a turn, and when.
func (o *observation) lastNote(ctx context.Context, name string) (last lastTurn, at string, err error) {
	if !o.read {
		o.mail, err = o.teams.mail.All(ctx, mailbox.Address{Team: o.config.Name, Agent: LeadName})
		if err != nil {
			return lastTurn{}, "", err
		}
		o.read = true
	}
	for _, m := range slices.Backward(o.mail) {
		if m.From != name {
			continue
		}
		c, _ := Parse(m.Text)
		if note, ok := c.(IdleNotification); ok {
			return lastTurn{note.IdleReason, note.FailureReason, note.CompletedTaskID, note.Unread}, m.Timestamp, nil
		}
	}
	return lastTurn{}, "", nil
}

// of is an agent that works, after this turn.
func (l lastTurn) of(name string) AwaitedAgent {
	return AwaitedAgent{Name: name, State: AgentWorking, Reason: l.reason, Failure: l.failure, CompletedTask: l.completed}
}

func (s *Seat) lastTurn() (working bool, last lastTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working || s.telling, s.idle
}

// mate is the seat of a teammate that this process knows, or nil.
func (t *Teams) mate(who mailbox.Address) *Seat {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[who.Team]; ok {
		return crew.mates[who.Agent]
	}
	return nil
}

package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

// observation is one look at what the agents of a team do.
type observation struct {
	teams    *Teams
	config   roster.Roster
	list     []task.Task
	openTask bool // a task waits for an agent to take it

	mail []mailbox.Message // the lead's inbox; read when it is needed
	read bool
}

// observe begins a look at the agents of a team with this task list.
func (t *Teams) observe(ctx context.Context, team string, list []task.Task) (*observation, error) {
	config, err := t.store.Load(ctx, team)
	if err != nil && !errors.Is(err, roster.ErrNotFound) { // without a roster, everybody is gone
		return nil, err
	}
	config.Name = team
	return &observation{teams: t, config: config, list: list, openTask: task.FirstClaimable(list) >= 0}, nil
}

// States says what each teammate on a team's roster does, as far as that shows outside
// its process, by name. It works from any process. Of a team that is gone there are
// none.
func (t *Teams) States(ctx context.Context, team string) (map[string]AgentState, error) {
	list, err := t.tasks.List(ctx, team)
	if err != nil {
		return nil, err
	}
	seen, err := t.observe(ctx, team, list)
	if err != nil {
		return nil, err
	}
	states := make(map[string]AgentState)
	for _, m := range seen.config.Teammates() {
		a, _, err := seen.agent(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		states[m.Name] = a.State
	}
	return states, nil
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
	if seat := o.teams.mate(who); seat != nil && !m.Apart() {
		working, last := seat.lastTurn()
		a = last.Of(name)
		if working {
			return a, true, nil
		}
		if len(unread) <= last.stalled && (!o.openTask || hasBegun(o.list, name)) {
			a.State = AgentIdle
			return a, true, nil
		}
		return a, false, nil
	}
	a, err = o.elsewhere(ctx, who, len(unread))
	return a, false, err
}

// elsewhere says what an agent of another process does, after it was looked how much
// mail it has not read: it says that it is at work before it marks that.
func (o *observation) elsewhere(ctx context.Context, who mailbox.Address, unread int) (AwaitedAgent, error) {
	config, err := o.teams.store.Load(ctx, who.Team)
	if err != nil && !errors.Is(err, roster.ErrNotFound) {
		return AwaitedAgent{}, err
	}
	m := config.Find(who.Agent)
	if m == nil {
		return AwaitedAgent{Name: who.Agent, State: AgentGone}, nil
	}
	w, err := o.gatherEvidence(ctx, who, m)
	if err != nil {
		return AwaitedAgent{}, err
	}
	a := w.last.Of(who.Agent)
	switch {
	case w.flag != nil && w.known && !w.present:
		a.State = AgentGone
	case unread <= w.last.stalled && !w.atWork(time.Now()):
		a.State = AgentIdle
	}
	return a, nil
}

// Of is an agent that works, after this turn.
func (l lastTurn) Of(name string) AwaitedAgent {
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

// LeadPresent reports whether a process leads the team. known is false when the
// lead is another program, which takes no place: only a roster that is gone
// tells then, and that is known.
func (t *Teams) LeadPresent(ctx context.Context, team string) (present, known bool, err error) {
	if _, err := t.store.Load(ctx, team); errors.Is(err, roster.ErrNotFound) {
		return false, true, nil
	}
	return t.Present(ctx, mailbox.Address{Team: team, Agent: mailbox.LeadName})
}

// Present reports whether a process reads an agent's mail: the agent's own, or
// for one that runs inside its lead's process that. known is false when it is
// another program's, which takes no place. It says nothing about who is on the
// roster: a teammate that is not on it is known not to be present.
func (t *Teams) Present(ctx context.Context, who mailbox.Address) (present, known bool, err error) {
	config, err := t.store.Load(ctx, who.Team)
	if err != nil {
		return false, false, err
	}
	at := who
	if who.Agent != mailbox.LeadName {
		m := config.Find(who.Agent)
		if m == nil {
			return false, true, nil
		}
		if !m.Apart() {
			at.Agent = mailbox.LeadName
		}
	}
	ours, err := t.isOurs(ctx, at)
	if err != nil {
		return false, false, err
	}
	_, present, err = t.presence.Find(ctx, at)
	return present, present || ours, err
}

// Signs reports whether an agent's program is ours, which seals what it posts and
// shows its questions on the desk.
func (t *Teams) Signs(ctx context.Context, who mailbox.Address) (bool, error) {
	return t.isOurs(ctx, who)
}

// isOurs reports whether an agent is run by our own runtime: it takes a place,
// and what it posts carries a seal.
func (t *Teams) isOurs(ctx context.Context, who mailbox.Address) (bool, error) {
	if who.Agent == mailbox.LeadName {
		return t.isFounded(ctx, who.Team)
	}
	record, _, err := t.record(ctx, who)
	return record.Signs, err
}

// runs reports whether a teammate on the roster of a team that this process leads
// runs, as far as can be known: another program's in a pane is believed to, once
// its lead has seen it run.
func (t *Teams) runs(ctx context.Context, team string, m roster.Member) (bool, error) {
	if !m.Apart() {
		return t.runsHere(team, m.Name), nil
	}
	who := mailbox.Address{Team: team, Agent: m.Name}
	_, present, err := t.presence.Find(ctx, who)
	if present || err != nil {
		return present, err
	}
	record, kept, err := t.record(ctx, who)
	return err == nil && !record.Signs && !record.Starting && (kept || m.PaneID != ""), err
}

// runsHere reports whether a teammate was started by this process and has not
// departed.
func (t *Teams) runsHere(team, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[team]
	return ok && crew.mates[name] != nil
}

// aliveIn lists the teammates on a roster that run, as far as can be known. A team
// that is gone has none.
func (t *Teams) aliveIn(ctx context.Context, team string) ([]roster.Member, error) {
	config, err := t.store.Load(ctx, team)
	if errors.Is(err, roster.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var alive []roster.Member
	for _, m := range config.Teammates() {
		runs, err := t.runs(ctx, team, m)
		if err != nil {
			return nil, err
		}
		if runs {
			alive = append(alive, m)
		}
	}
	return alive, nil
}

// SetActive writes into the roster whether the agent is at work, which is how
// programs in other processes see it. It does nothing for an agent that runs in
// its lead's process, nor for a lead: their entries have no such field.
func (s *Seat) SetActive(ctx context.Context, active bool) error {
	config, err := s.config(ctx)
	if err != nil {
		return fmt.Errorf("say whether %s is at work: %w", s.Address(), err)
	}
	if m := config.Find(s.Name); s.Lead || m == nil || !m.Apart() || m.IsActive != nil && *m.IsActive == active {
		return nil
	}
	_, err = s.teams.store.Update(ctx, s.Team, func(c *roster.Roster) error {
		if m := c.Find(s.Name); m != nil {
			m.IsActive = &active
		}
		return nil
	})
	return err
}

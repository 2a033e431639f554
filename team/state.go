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

// observation is what the agents of a team do, as far as it can be seen at one moment.
type observation struct {
	teams    *Teams
	config   roster.Roster
	list     []task.Task
	openTask bool // a task waits for an agent to take it

	mail []mailbox.Message // the lead's inbox; read when it is needed
	read bool
}

// observe begins an observation of a team with this task list.
func (t *Teams) observe(ctx context.Context, team string, list []task.Task) (*observation, error) {
	config, err := t.members.rosters.Load(ctx, team)
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
	list, err := t.options.Tasks.List(ctx, team)
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
	if m == nil || o.teams.crews.isDeparting(who) {
		return AwaitedAgent{Name: name, State: AgentGone}, true, nil
	}
	unread, err := o.teams.options.Mail.Unread(ctx, who)
	if err != nil {
		return AwaitedAgent{}, false, err
	}
	if seat := o.teams.crews.mate(who); seat != nil && !m.Apart() {
		working, last := seat.turn.now()
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

// elsewhere says what an agent of another process does. unread, how much mail it has not
// read, must have been counted before: an agent sets its flag that it is at work before
// it marks its mail read.
func (o *observation) elsewhere(ctx context.Context, who mailbox.Address, unread int) (AwaitedAgent, error) {
	config, err := o.teams.members.rosters.Load(ctx, who.Team)
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
	_, err = s.teams.members.rosters.Update(ctx, s.Team, func(c *roster.Roster) error {
		if m := c.Find(s.Name); m != nil {
			m.IsActive = &active
		}
		return nil
	})
	return err
}

package team

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tool"
)

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
	mates, err := t.aliveIn(ctx, seat.Team)
	if err != nil {
		return "", err
	}
	look := &observation{teams: t, config: roster.Roster{Name: seat.Team}}
	if seat.own {
		mates = slices.DeleteFunc(mates, func(m roster.Member) bool { return m.Name != seat.Name })
	} else if dead, err := t.diedUnnoticed(ctx, seat.Team, mates); dead != "" || err != nil {
		return dead, err
	}
	// An agent writes into the roster that it is at work before it marks its mail read,
	// and that it is idle after it has posted its note to the lead. So the agents' mail
	// is read first, then the roster, then the lead's mail: nothing slips through.
	for _, m := range mates {
		if waits, err := look.hasMail(ctx, seat, m); waits != "" || err != nil {
			return waits, err
		}
	}
	if !seat.own {
		if busy, err := t.busyElsewhere(ctx, seat.Team, mates); busy != "" || err != nil {
			return busy, err
		}
		if waits, err := look.hasMail(ctx, seat, roster.Member{Name: mailbox.LeadName}); waits != "" || err != nil {
			return waits, err
		}
	}
	claimable, err := t.claimable(ctx, seat.Team, mates)
	if err != nil || !claimable {
		return "", err
	}
	return "a task can be claimed", nil
}

// stalled is how much of its mail an agent is not going to read before something
// new comes: as its seat in this process says, else as it told the lead itself.
func (o *observation) stalled(ctx context.Context, by *Seat, m roster.Member) (int, error) {
	if m.Name == by.Name {
		return by.stalledNow(), nil
	}
	if seat := o.teams.mate(mailbox.Address{Team: by.Team, Agent: m.Name}); seat != nil && seat.backend == roster.InProcess {
		return seat.stalledNow(), nil
	}
	_, last, err := o.notes(ctx, m.Name, joinedAt(&m))
	return last.stalled, err
}

// hasMail says that an agent has mail that it is going to read, if it has.
func (o *observation) hasMail(ctx context.Context, by *Seat, m roster.Member) (string, error) {
	unread, err := o.teams.mail.Unread(ctx, mailbox.Address{Team: by.Team, Agent: m.Name})
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
func (t *Teams) busyElsewhere(ctx context.Context, team string, mates []roster.Member) (string, error) {
	mates = slices.DeleteFunc(slices.Clone(mates), func(m roster.Member) bool { return !m.Apart() })
	if len(mates) == 0 {
		return "", nil
	}
	seen, err := t.observe(ctx, team, nil) // it is not by their tasks that they are known to work
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
// alive any more: its lead is about to be told, and may have to do something.
func (t *Teams) diedUnnoticed(ctx context.Context, team string, alive []roster.Member) (string, error) {
	config, err := t.store.Load(ctx, team)
	if errors.Is(err, roster.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, m := range config.Teammates() {
		lives := slices.ContainsFunc(alive, func(a roster.Member) bool { return a.Name == m.Name })
		if m.Apart() && !lives && t.runsHere(team, m.Name) {
			return m.Name + " has ended, and its lead does not know yet", nil
		}
	}
	return "", nil
}

// claimable reports whether one of these teammates may take a task.
func (t *Teams) claimable(ctx context.Context, team string, mates []roster.Member) (bool, error) {
	if len(mates) == 0 {
		return false, nil
	}
	list, err := t.tasks.List(ctx, team)
	if err != nil || task.FirstClaimable(list) < 0 {
		return false, err
	}
	return slices.ContainsFunc(mates, func(m roster.Member) bool { return !hasBegun(list, m.Name) }), nil
}

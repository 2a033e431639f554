package team

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
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
	readers := []string{LeadName}
	look := &observation{teams: t, config: Config{Name: seat.Team}}
	if !seat.own {
		if dead, err := t.diedUnnoticed(ctx, seat.Team, mates); dead != "" || err != nil {
			return dead, err
		}
	} else {
		readers = nil
		mates = slices.DeleteFunc(mates, func(m Member) bool { return m.Name != seat.Name })
	}
	for _, m := range mates {
		if m.apart() && m.Name != seat.Name && m.IsActive != nil && *m.IsActive {
			return m.Name + " is at work", nil
		}
		readers = append(readers, m.Name)
	}
	for _, name := range readers {
		unread, err := t.mail.Unread(ctx, mailbox.Address{Team: seat.Team, Agent: name})
		if err != nil {
			return "", err
		}
		if len(unread) == 0 {
			continue
		}
		stalled, err := look.stalled(ctx, seat, name)
		if err != nil {
			return "", err
		}
		if len(unread) > stalled {
			return fmt.Sprintf("%s has not read its mail (%d)", name, len(unread)), nil
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
func (o *observation) stalled(ctx context.Context, by *Seat, name string) (int, error) {
	if name == by.Name {
		return by.stalledNow(), nil
	}
	if seat := o.teams.mate(mailbox.Address{Team: by.Team, Agent: name}); seat != nil && seat.backend == InProcess {
		return seat.stalledNow(), nil
	}
	last, _, err := o.lastNote(ctx, name)
	return last.stalled, err
}

// diedUnnoticed names a teammate whose process this one has started and which is not
// alive any more: its lead is about to be told, and may have to do something.
func (t *Teams) diedUnnoticed(ctx context.Context, team string, alive []Member) (string, error) {
	config, err := t.store.Load(ctx, team)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, m := range config.Teammates() {
		lives := slices.ContainsFunc(alive, func(a Member) bool { return a.Name == m.Name })
		if m.apart() && !lives && t.runsHere(team, m.Name) {
			return m.Name + " has ended, and its lead does not know yet", nil
		}
	}
	return "", nil
}

// claimable reports whether one of these teammates may take a task.
func (t *Teams) claimable(ctx context.Context, team string, mates []Member) (bool, error) {
	if len(mates) == 0 {
		return false, nil
	}
	list, err := t.tasks.List(ctx, team)
	if err != nil || task.FirstClaimable(list) < 0 {
		return false, err
	}
	return slices.ContainsFunc(mates, func(m Member) bool { return !hasBegun(list, m.Name) }), nil
}

package team

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tool"
)

// Waiting reports whether something goes on in the caller's team that the
// caller's process does not see in its own sessions: a teammate in another
// process is at work, mail is not marked read that a running agent will get, or
// there is a task that one may claim. For a teammate with a process of its own,
// only what concerns itself counts. Without a team nothing does.
func (t *Teams) Waiting(ctx context.Context, by tool.Caller) (bool, error) {
	seat, ok := t.Seat(by)
	if !ok {
		return false, nil
	}
	mates, err := t.aliveIn(ctx, seat.Team)
	if err != nil {
		return false, err
	}
	readers := []string{LeadName}
	if seat.own {
		readers = nil
		mates = slices.DeleteFunc(mates, func(m Member) bool { return m.Name != seat.Name })
	}
	for _, m := range mates {
		if m.apart() && m.Name != seat.Name && m.IsActive != nil && *m.IsActive {
			return true, nil
		}
		readers = append(readers, m.Name)
	}
	for _, name := range readers {
		unread, err := t.mail.Unread(ctx, mailbox.Address{Team: seat.Team, Agent: name})
		if err != nil || len(unread) > 0 {
			return len(unread) > 0, err
		}
	}
	return t.claimable(ctx, seat.Team, mates)
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

package team

import (
	"context"
	"errors"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// Deletion says what became of a team that was to be deleted.
type Deletion struct {
	Team   string   // "" when the caller has none
	Active []string // teammates on the roster: the team stays
}

// Delete removes the team that the caller leads, with its inboxes and its task
// list, unless teammates are on its roster. Approvals of shutdowns that wait in
// the lead's inbox count; its other unread mail is kept for the lead's [Inbox].
// Errors: [ErrNotLead].
func (t *Teams) Delete(ctx context.Context, by tool.Caller) (Deletion, error) {
	if by.Depth > 0 || by.Team != "" {
		return Deletion{}, ErrNotLead
	}
	seat, ok := t.Seat(by)
	if !ok {
		return Deletion{}, nil
	}
	if err := t.settleApprovals(ctx, seat); err != nil {
		return Deletion{}, err
	}
	config, err := seat.config(ctx)
	if err != nil && !errors.Is(err, roster.ErrNotFound) {
		return Deletion{}, err
	}
	if mates := config.Teammates(); len(mates) > 0 {
		active := make([]string, len(mates))
		for i, m := range mates {
			active[i] = m.Name
		}
		return Deletion{seat.Team, active}, nil
	}
	if err := t.remove(ctx, seat); err != nil {
		return Deletion{}, err
	}
	return Deletion{Team: seat.Team}, nil
}

// leavePlace gives up the lead's place in a team.
func (t *Teams) leavePlace(team string) error {
	t.mu.Lock()
	var leave func() error
	if crew, ok := t.crews[team]; ok {
		leave, crew.leave = crew.leave, nil
	}
	t.mu.Unlock()
	if leave == nil {
		return nil
	}
	return leave()
}

// remove deletes a team without teammates, and forgets it.
func (t *Teams) remove(ctx context.Context, seat *Seat) error {
	t.mu.Lock()
	inbox := t.leadOf(seat.session).inbox
	t.mu.Unlock()
	var rest []Mail
	if inbox != nil {
		var err error
		if rest, _, err = inbox.read(ctx, seat); err != nil {
			t.note(seat.session, rest...)
			return err
		}
	}
	if err := t.store.Remove(ctx, seat.Team); err != nil {
		t.note(seat.session, rest...)
		return err
	}
	if err := t.leavePlace(seat.Team); err != nil {
		t.note(seat.session, rest...)
		return err
	}
	if err := t.tasks.Remove(ctx, seat.Team); err != nil {
		t.note(seat.session, rest...)
		return err
	}
	if inbox != nil {
		inbox.deliveries.dropInbox(seat.Address())
	}
	seat.leave()
	t.mu.Lock()
	delete(t.crews, seat.Team)
	l := t.leadOf(seat.session)
	l.seat = nil
	l.notes = append(l.notes, rest...)
	l.change()
	t.mu.Unlock()
	t.publish(seat.agent(), event.TeamChanged{Team: seat.Team})
	return nil
}

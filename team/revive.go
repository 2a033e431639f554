package team

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/tool"
)

// Revive brings back a teammate that [Teams.Reopen] found absent, by the backend
// of this process, whatever it ran in before: its conversation goes on, its tasks
// are still its own, and its unread mail comes by itself. One whose conversation
// never began is started with its prompt. When it cannot be brought back it is
// absent as before, to be reported to [Teams.Gone]. Errors: [ErrNotLead],
// [ErrNoRecord] when nothing was kept of it, as of another program's teammate.
func (t *Teams) Revive(ctx context.Context, by tool.Caller, m Member) (Member, error) {
	lead, ok := t.Seat(by)
	switch {
	case !ok || !lead.Lead:
		return m, ErrNotLead
	case t.backend == nil:
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, errors.ErrUnsupported)
	}
	seat := newSeat(t, lead.Team, m.Name, lead.session)
	record, ok, err := t.record(ctx, seat.Address())
	if err == nil && !ok {
		err = ErrNoRecord
	}
	var kind string
	if err == nil {
		kind, err = t.backend.Kind(ctx)
	}
	if err != nil {
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, err)
	}
	config, m, err := t.rehouse(ctx, lead, m.Name, kind)
	if err != nil {
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, err)
	}
	seat = t.seat(config, m)
	spawn := firstSpawn(by, seat, &config, m, SpawnRequest{Description: record.Description, Prompt: m.Prompt})
	if record.SessionID != "" {
		spawn.Record, spawn.Introduction = &record, ""
		if spawn.Input, err = seat.backNote(ctx); err != nil {
			t.unseat(seat)
			return m, err
		}
	}
	if m, err = t.start(ctx, lead, spawn); err != nil {
		t.unseat(seat)
		return m, fmt.Errorf("bring teammate %q back: %w", m.Name, err)
	}
	t.changes.beat()
	return m, nil
}

// rehouse writes into the roster that a member runs where this process runs its
// teammates, and is not at work.
func (t *Teams) rehouse(ctx context.Context, lead *Seat, name, kind string) (Config, Member, error) {
	config, err := t.updateRoster(ctx, lead.Team, lead.agent(), func(c *Config) error {
		m := c.Find(name)
		if m == nil {
			return &UnknownMemberError{Name: name, Team: lead.Team}
		}
		m.BackendType, m.PaneID, m.IsActive = kind, firstPane(kind), nil
		return nil
	})
	if err != nil {
		return Config{}, Member{Name: name}, err
	}
	return config, *config.Find(name), nil
}

// unseat takes away the seat of a teammate that did not start, which stays a
// member.
func (t *Teams) unseat(seat *Seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[seat.Team]; ok && crew.mates[seat.Name] == seat {
		delete(crew.mates, seat.Name)
	}
}

// backNote is what a teammate that was brought back is told.
func (s *Seat) backNote(ctx context.Context) (string, error) {
	state, err := s.teams.recap(ctx, s)
	if err != nil {
		return "", err
	}
	return reminder("You were stopped, and are back. What you were doing when it happened may be half done: " +
		"look before you do it again. Then go on with your work.\n\n" + state), nil
}

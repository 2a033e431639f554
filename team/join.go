package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// Join takes the place of a teammate that has this process to itself, in the
// team and under the name that the caller has. Its lead may be another program,
// and may add it to the roster only after it was started: Join blocks until then, at
// most until ctx ends. What it takes to bring the teammate
// back is kept. From then on [Teams.Seat], [Teams.Inbox] and the rest work for
// the caller; [Teams.Close] gives the place up. Errors: [*roster.PresentError] when
// another process is this teammate already.
func (t *Teams) Join(ctx context.Context, by tool.Caller) (*Seat, error) {
	who := mailbox.Address{Team: by.Team, Agent: by.AgentName}
	config, member, err := t.members.await(ctx, who)
	if err != nil {
		return nil, fmt.Errorf("join as %s: %w", who, err)
	}
	leave, err := t.options.Presence.Enter(ctx, who)
	if err != nil {
		return nil, fmt.Errorf("join as %s: %w", who, err)
	}
	seat := newSeat(t, by.Team, by.AgentName, by.SessionID)
	seat.Color, seat.paneID, seat.backend, seat.own = member.Color, member.PaneID, member.BackendType, true
	seat.ending.release = leave
	if err := seat.rememberSelf(ctx, by); err != nil {
		return nil, errors.Join(fmt.Errorf("join as %s: %w", who, err), leave())
	}
	t.crews.addSelf(seat, config.LeadSessionID)
	t.options.Publish(seat.agent(), event.TeamChanged{Team: by.Team, Members: rosterOf(config)})
	return seat, nil
}

// joinPoll is how often a teammate checks whether its lead has added it to the roster.
const joinPoll = 50 * time.Millisecond

// Remember keeps what it takes to bring the teammate back, in place of what was
// kept before.
func (s *Seat) Remember(ctx context.Context, r roster.AgentRecord) error {
	r.Name = s.Name
	if r.Since.IsZero() {
		r.Since = time.Now().UTC()
	}
	return s.teams.options.Records.Put(ctx, s.Team, roster.RecordAgent, s.Name, jsonx.MustMarshal(r))
}

// rememberSelf adds to what was kept of a teammate what its own process knows:
// that it is ours, and where its conversation lies.
func (s *Seat) rememberSelf(ctx context.Context, by tool.Caller) error {
	r, _, err := s.teams.members.record(ctx, s.Address())
	if err != nil {
		return err
	}
	r.AgentID, r.SessionID, r.Project, r.Backend = by.AgentID, by.SessionID, by.Cwd, s.backend
	r.Signs, r.Starting, r.Orphaned, r.Ended = true, false, false, nil
	return s.Remember(ctx, r)
}

// EndWithoutLead reports whether the process of the agent may end because its lead
// is gone. The record says that it ends before the lead's presence is checked
// once more. So either the lead is found here, or a lead that comes back just now finds
// in the record that it has to start the teammate again, although that still runs for a
// moment ([Panes.Adopt]).
func (s *Seat) EndWithoutLead(ctx context.Context) (bool, error) {
	if _, err := s.config(ctx); errors.Is(err, roster.ErrNotFound) {
		return true, nil // there is no team to come back to
	}
	r, _, err := s.teams.members.record(ctx, s.Address())
	if err != nil {
		return false, err
	}
	r.Orphaned = true
	if err := s.Remember(ctx, r); err != nil {
		return false, err
	}
	present, known, err := s.teams.members.leadPresent(ctx, s.Team)
	if err == nil && known && !present {
		return true, nil
	}
	r.Orphaned = false
	return false, errors.Join(err, s.Remember(ctx, r))
}

// CheckedIn records that a teammate with a process of its own has been seen running.
// It does nothing for a program of ours, which records that itself ([Teams.Join]).
func (s *Seat) CheckedIn(ctx context.Context) error {
	r, _, err := s.teams.members.record(ctx, s.Address())
	if err != nil || r.Signs || !r.Starting {
		return err
	}
	if _, ours, err := s.teams.options.Presence.Find(ctx, s.Address()); ours || err != nil {
		return err
	}
	r.Starting = false
	return s.Remember(ctx, r)
}

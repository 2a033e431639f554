package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// lead makes the caller's session the lead of a team that it has created or
// found: it takes the lead's place, and the team is marked as one that our own
// runtime leads. Errors: [*roster.PresentError] when another process leads it.
func (t *Teams) lead(ctx context.Context, c *roster.Roster) (*Seat, error) {
	leave, err := t.presence.Enter(ctx, mailbox.Address{Team: c.Name, Agent: mailbox.LeadName})
	if err != nil {
		return nil, fmt.Errorf("lead team %q: %w", c.Name, err)
	}
	if err := t.found(ctx, c.Name); err != nil {
		return nil, errors.Join(err, leave())
	}
	return t.takeLead(c, leave), nil
}

// found keeps that our own runtime leads a team, unless it is kept already.
func (t *Teams) found(ctx context.Context, team string) error {
	founded, err := t.isFounded(ctx, team)
	if err != nil || founded {
		return err
	}
	return t.records.Put(ctx, team, roster.RecordTeam, team, jsonx.MustMarshal(roster.Founding{Version: foundingVersion, At: time.Now().UTC()}))
}

// foundingVersion is the version of what is ours alone about a team.
const foundingVersion = "1"

// isFounded reports whether our own runtime leads a team. What is sent in its
// lead's name carries a seal then.
func (t *Teams) isFounded(ctx context.Context, team string) (bool, error) {
	t.mu.Lock()
	crew := t.crews[team]
	known := crew != nil && crew.founded
	t.mu.Unlock()
	if known {
		return true, nil
	}
	_, err := t.records.Get(ctx, team, roster.RecordTeam, team)
	if errors.Is(err, roster.ErrNoRecord) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out who leads team %q: %w", team, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew := t.crews[team]; crew != nil {
		crew.founded = true
	}
	return true, nil
}

// Reopen finds the team that a resumed main session leads, by the session's id
// in the rosters, and takes the lead's place in it. It returns the teammates on
// its roster that run nowhere: whoever is not brought back ([Teams.Revive]) must
// be reported to [Teams.Gone]. Another program's teammate in a pane is not among
// them: whether it runs, only its pane tells. Departures that a crash has cut
// short are carried out, and teammates that have vanished from the roster are put
// back ([roster.RepairingStore]). ok is false when the session leads no team. Errors:
// [*roster.PresentError] when another process leads it.
func (t *Teams) Reopen(ctx context.Context, by tool.Caller) (absent []roster.Member, ok bool, err error) {
	configs, err := t.store.List(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("find the team of session %s: %w", by.SessionID, err)
	}
	at := slices.IndexFunc(configs, func(c roster.Roster) bool { return c.LeadSessionID == by.SessionID })
	if by.SessionID == "" || at < 0 {
		return nil, false, nil
	}
	config := &configs[at]
	seat, err := t.lead(ctx, config)
	if err != nil {
		return nil, false, err
	}
	if err := t.store.Restore(ctx, *config); err != nil {
		return nil, true, err
	}
	now, err := seat.config(ctx)
	if err != nil {
		return nil, true, err
	}
	if err := t.finishDepartures(ctx, &now); err != nil {
		return nil, true, err
	}
	if err := t.settleApprovals(ctx, seat); err != nil {
		return nil, true, err
	}
	now, err = seat.config(ctx)
	if err != nil {
		return nil, true, err
	}
	for _, m := range now.Teammates() {
		runs, err := t.runs(ctx, config.Name, m)
		if err != nil {
			return nil, true, err
		}
		switch {
		case !runs:
			absent = append(absent, m)
		case m.Apart():
			t.seat(now, m) // this process looks after it from now on
		}
	}
	return absent, true, nil
}

// takeLead seats the lead of a team, whose place leave gives up.
func (t *Teams) takeLead(c *roster.Roster, leave func() error) *Seat {
	seat := newSeat(t, c.Name, mailbox.LeadName, c.LeadSessionID)
	seat.Lead = true
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[c.Name]
	if !ok {
		crew = newCrew()
		t.crews[c.Name] = crew
	}
	crew.leadSession, crew.founded, crew.leave = c.LeadSessionID, true, leave
	crew.colors = max(crew.colors, roster.ColorsGiven(c))
	l := t.leadOf(c.LeadSessionID)
	l.seat = seat
	l.change()
	return seat
}

// Close gives up the places of this process, as its end would: the teams stay as
// they are, to be resumed. Nothing of the Teams may be used after it.
func (t *Teams) Close() error {
	t.mu.Lock()
	var leaving []func() error
	for _, crew := range t.crews {
		if crew.leave != nil {
			leaving = append(leaving, crew.leave)
			crew.leave = nil
		}
		for _, seat := range crew.mates {
			if leave := seat.takeRelease(); leave != nil {
				leaving = append(leaving, leave)
			}
		}
	}
	t.mu.Unlock()
	var errs []error
	for _, leave := range leaving {
		errs = append(errs, leave())
	}
	return errors.Join(errs...)
}

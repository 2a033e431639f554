package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/tool"
)

// ReopenTeam finds the team of a resumed lead and takes the lead's place in it, before
// the main session is opened. The lead's model gets a recap of its team before its
// next input, which must not depend on what it remembers. It returns the teammates that
// run nowhere, for [Backends.Resume].
func (h *Host) ReopenTeam(ctx context.Context, spec *session.Spec) (absent []roster.Member, err error) {
	absent, ok, err := h.Teams.Reopen(ctx, spec.Caller)
	if err != nil || !ok {
		return nil, err
	}
	caller := spec.Caller
	spec.Preface = func(ctx context.Context) string {
		text, err := h.Teams.Recap(ctx, caller)
		if err != nil {
			h.warn(err)
		}
		return text
	}
	return absent, nil
}

// Resume brings the team of a resumed lead together: teammates that still run in their
// panes are adopted, the absent ones ([team.Teams.Reopen]) are started again. One that
// cannot be started now stays a member, with its tasks and mail, for the next time; one
// of which nothing was stored, or whose pane is gone, leaves the team.
func (b *Backends) Resume(ctx context.Context, lead tool.Caller, absent []roster.Member) {
	seat, ok := b.host.Teams.Seat(lead)
	if !ok || !seat.Lead {
		return
	}
	if err := b.records.Drop(ctx, seat.Team, roster.RecordLeadEnd, seat.Team); err != nil {
		b.host.warn(err)
	}
	members, err := seat.Members(ctx)
	if err != nil {
		b.host.warn(fmt.Errorf("find out who is in the team: %w", err))
	}
	for _, m := range members {
		if m.Name == seat.Name {
			continue
		}
		who := mailbox.Address{Team: seat.Team, Agent: m.Name}
		isAbsent := slices.ContainsFunc(absent, func(a roster.Member) bool { return a.Name == m.Name })
		lost, err := b.resumeOne(ctx, lead, who, m, isAbsent)
		if err != nil {
			b.host.warn(err)
		}
		if !lost {
			continue
		}
		if err := b.host.Teams.Gone(ctx, who, "it could not be brought back"); err != nil {
			b.host.warn(fmt.Errorf("remove %s from its team: %w", who, err))
		}
	}
}

// resumeOne reports whether a teammate is lost for good. One of ours that ran a moment
// ago, and has ended since, is started again like those that did not run: it was dying,
// or left because it had no lead.
func (b *Backends) resumeOne(ctx context.Context, lead tool.Caller, who mailbox.Address, m roster.Member, absent bool) (lost bool, err error) {
	if !absent {
		lives, err := b.adopt(ctx, who)
		if lives || err != nil {
			return false, err
		}
		if ours, err := b.host.Teams.Signs(ctx, who); !ours || err != nil {
			return !ours && err == nil, err
		}
	}
	_, err = b.host.Teams.Revive(ctx, lead, m)
	return errors.Is(err, roster.ErrNoRecord), err
}

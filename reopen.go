package cadre

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// resumes reports whether an earlier session goes on, and not a copy of it.
func (r *Runtime) resumes() bool { return (r.cfg.Continue || r.cfg.Resume != "") && !r.cfg.Fork }

// reopenTeam finds the team of a resumed lead, and who of it runs nowhere. The
// lead is told how its team stands before its next input: that must not hang on
// what it remembers.
func (r *Runtime) reopenTeam(ctx context.Context, p *part) ([]roster.Member, error) {
	absent, ok, err := r.teams.Reopen(ctx, p.caller)
	if err != nil || !ok {
		return nil, err
	}
	p.preface = r.recap(p.caller)
	return absent, nil
}

// recap tells an agent that comes back how its team stands.
func (r *Runtime) recap(caller tool.Caller) func(context.Context) string {
	return func(ctx context.Context) string {
		text, err := r.teams.Recap(ctx, caller)
		if err != nil {
			r.warn(err)
		}
		return text
	}
}

// bringBack gathers the team of a resumed lead: teammates that live on in their
// panes are taken under watch, the others are started again. One that cannot be
// started now stays a member, with its tasks and mail, for the next time; one of
// which nothing was kept, or whose pane is gone, leaves the team.
func (r *Runtime) bringBack(ctx context.Context, absent []roster.Member) {
	seat, ok := r.teams.Seat(r.leadCaller())
	if !ok || !seat.Lead {
		return
	}
	members, err := seat.Members(ctx)
	if err != nil {
		r.warn(fmt.Errorf("find out who is in the team: %w", err))
	}
	for _, m := range members {
		if m.Name == seat.Name {
			continue
		}
		who := mailbox.Address{Team: seat.Team, Agent: m.Name}
		isAbsent := slices.ContainsFunc(absent, func(a roster.Member) bool { return a.Name == m.Name })
		lost, err := r.bringBackOne(ctx, who, m, isAbsent)
		if err != nil {
			r.warn(err)
		}
		if !lost {
			continue
		}
		if err := r.teams.Gone(ctx, who, "it could not be brought back"); err != nil {
			r.warn(fmt.Errorf("take %s off its team: %w", who, err))
		}
	}
}

// bringBackOne reports whether a teammate is lost for good. One of ours that ran when
// it was looked for, and has ended since, is started again like those that did not
// run: it was dying, or left because it had no lead.
func (r *Runtime) bringBackOne(ctx context.Context, who mailbox.Address, m roster.Member, absent bool) (lost bool, err error) {
	if !absent {
		lives, err := r.backends.adopt(ctx, who)
		if lives || err != nil {
			return false, err
		}
		if ours, err := r.teams.Signs(ctx, who); !ours || err != nil {
			return !ours && err == nil, err
		}
	}
	_, err = r.teams.Revive(ctx, r.leadCaller(), m)
	return errors.Is(err, roster.ErrNoRecord), err
}

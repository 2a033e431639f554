package filestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/cadre-dev/cadre/internal/lease"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// presence implements [roster.Presence]: a lease per agent in the team's folder.
type presence struct{ *Store }

func (p *presence) Enter(ctx context.Context, who mailbox.Address) (leave func() error, err error) {
	held, err := p.enter(ctx, who)
	var present *roster.PresentError
	if errors.As(err, &present) {
		return nil, err // it names the agent itself
	}
	if err != nil {
		return nil, fmt.Errorf("enter the place of %s: %w", who, err)
	}
	if err := p.giveBackLocks(ctx, who.Team); err != nil {
		p.warn(err) // others wait until they are stale
	}
	return sync.OnceValue(func() error {
		if err := held.Release(); err != nil {
			return fmt.Errorf("leave the place of %s: %w", who, err)
		}
		return nil
	}), nil
}

func (p *presence) enter(ctx context.Context, who mailbox.Address) (*lease.Lease, error) {
	path, err := p.place(ctx, who)
	if err != nil {
		return nil, err
	}
	if err := p.makeTeamSide(who.Team, filepath.Base(filepath.Dir(path))); err != nil {
		return nil, err
	}
	held, err := lease.Acquire(ctx, p.fsys, path)
	var other *lease.HeldError
	if errors.As(err, &other) {
		return nil, &roster.PresentError{Who: who, By: process(other.Holder)}
	}
	return held, teamGone(err)
}

func (p *presence) Find(ctx context.Context, who mailbox.Address) (roster.Process, bool, error) {
	path, err := p.place(ctx, who)
	var holder lease.Holder
	var ok bool
	if err == nil {
		holder, ok, err = lease.Look(ctx, p.fsys, path)
	}
	if err != nil {
		return roster.Process{}, false, fmt.Errorf("find the process of %s: %w", who, err)
	}
	return process(holder), ok, nil
}

// place is the lease of an agent.
func (p *presence) place(ctx context.Context, who mailbox.Address) (string, error) {
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case who.Team == "":
		return "", errNoName
	case who.Agent == "":
		return "", errNobody
	}
	return p.root.Presence(who.Team, who.Agent), nil
}

func process(h lease.Holder) roster.Process {
	return roster.Process{PID: h.PID, Host: h.Host, Since: h.Since}
}

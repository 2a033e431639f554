package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/lease"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// presence implements [roster.Presence]: a lease per agent in the team's folder.
type presence struct {
	*files
	mail  *mail
	tasks *tasks
}

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

// Who is killed while it writes a shared file leaves its lock. Our processes take
// that over when they need it. Other programs cannot know that its owner is dead:
// they wait until it is stale, or do without what they wanted to write. So whoever
// takes a place in a team gives back first what its predecessor may have left there.

// leftLocksTime bounds how long one who comes into a team is kept from its work.
const leftLocksTime = time.Second

// giveBackLocks takes over, and gives back, the locks that dead processes of ours have
// left on a team's roster, inboxes and task list. One that a living process has is
// waited for.
func (p *presence) giveBackLocks(ctx context.Context, team string) error {
	ctx, cancel := context.WithTimeout(ctx, leftLocksTime)
	defer cancel()
	return errors.Join(
		p.giveBack(p.root.TeamConfig(team), func(path string) error {
			return p.locked(ctx, path, func(*dirlock.Lock) error { return nil })
		}),
		p.giveBackInboxes(ctx, filepath.Dir(p.root.Inbox(team, "any"))),
		p.giveBack(filepath.Join(p.root.TaskList(team), lockTarget), func(path string) error {
			return p.tasks.changeExisting(ctx, filepath.Dir(path), loggedChanges, func(*taskTx) error { return nil })
		}),
	)
}

// giveBackInboxes does so in a folder of inboxes. Whoever takes over a lock mends what
// was half written.
func (p *presence) giveBackInboxes(ctx context.Context, folder string) error {
	entries, err := p.fsys.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), dirlock.Suffix)
		if !ok || !isShared(name) {
			continue
		}
		errs = append(errs, p.giveBack(filepath.Join(folder, name), func(path string) error {
			return p.mail.changeExisting(ctx, path, leave, func(tx *inboxTx) error { return tx.markRead(ctx, nil) })
		}))
	}
	return errors.Join(errs...)
}

// giveBack has a lock taken and given back if it is one of ours.
func (p *presence) giveBack(target string, take func(target string) error) error {
	ours, err := dirlock.Ours(p.fsys, target)
	if err == nil && ours {
		err = take(target)
	}
	if err != nil {
		return fmt.Errorf("give back the lock of %s: %w", target, err)
	}
	return nil
}

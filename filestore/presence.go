package filestore

import (
	"context"
	"errors"
	"fmt"
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
	held, err := p.acquire(ctx, who)
	var present *roster.PresentError
	if errors.As(err, &present) {
		return nil, err // it names the agent itself
	}
	if err != nil {
		return nil, fmt.Errorf("enter the place of %s: %w", who, err)
	}
	if err := p.releaseAbandoned(ctx, who.Team); err != nil {
		p.warn(err) // other programs wait until the locks are stale
	}
	return sync.OnceValue(func() (err error) {
		defer wrap(&err, "leave the place of %s", who)
		return held.Release()
	}), nil
}

func (p *presence) acquire(ctx context.Context, who mailbox.Address) (*lease.Lease, error) {
	path, err := p.path(ctx, who)
	if err != nil {
		return nil, err
	}
	if err := p.makeTeamFolder(who.Team, filepath.Base(filepath.Dir(path))); err != nil {
		return nil, err
	}
	held, err := lease.Acquire(ctx, p.fsys, path)
	var other *lease.HeldError
	if errors.As(err, &other) {
		return nil, &roster.PresentError{Who: who, By: process(other.Holder)}
	}
	return held, asNoTeam(err)
}

func (p *presence) Find(ctx context.Context, who mailbox.Address) (found roster.Process, ok bool, err error) {
	defer wrap(&err, "find the process of %s", who)
	path, err := p.path(ctx, who)
	if err != nil {
		return found, false, err
	}
	holder, ok, err := lease.Inspect(ctx, p.fsys, path)
	return process(holder), ok, err
}

// path is where the lease of an agent lies.
func (p *presence) path(ctx context.Context, who mailbox.Address) (string, error) {
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

// A process that is killed while it writes a shared file leaves its lock. Our processes
// take such a lock over when they need it. Other programs cannot know that its owner is
// dead: they wait until the lock is stale, or give up what they wanted to write. So a
// process that takes a place in a team first releases the locks that dead ones of ours
// have left on the team's files.

// releaseTime bounds how long an agent that enters a team is kept from its work by that.
const releaseTime = time.Second

// releaseAbandoned takes over and releases the locks that dead processes of ours have
// left on a team's roster, inboxes and task list. A lock of a living process is waited
// for.
func (p *presence) releaseAbandoned(ctx context.Context, team string) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	return errors.Join(
		p.release(p.root.TeamConfig(team), func(path string) error {
			return p.locked(ctx, path, func(*dirlock.Lock) error { return nil })
		}),
		p.releaseInboxes(ctx, filepath.Dir(p.root.Inbox(team, "any"))),
		p.release(filepath.Join(p.root.TaskList(team), lockTarget), func(path string) error {
			return p.tasks.changeExisting(ctx, filepath.Dir(path), loggedChanges, func(*taskTx) error { return nil })
		}),
	)
}

// releaseInboxes does so in a folder of inboxes. To take over the lock of an inbox also
// repairs what was half written.
func (p *presence) releaseInboxes(ctx context.Context, folder string) error {
	entries, err := p.readDir(folder)
	errs := []error{err}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), dirlock.Suffix)
		if !ok || !isShared(name) {
			continue
		}
		errs = append(errs, p.release(filepath.Join(folder, name), func(path string) error {
			return p.mail.changeExisting(ctx, path, refuse, func(tx *inboxTx) error { return tx.markRead(ctx, nil) })
		}))
	}
	return errors.Join(errs...)
}

// release has the lock of target taken and released, if it is one of ours.
func (p *presence) release(target string, lockOnce func(target string) error) (err error) {
	defer wrap(&err, "release the lock of %s", target)
	ours, err := dirlock.Ours(p.fsys, target)
	if err != nil || !ours {
		return err
	}
	return lockOnce(target)
}

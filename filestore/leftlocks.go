package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
)

// Who is killed while it writes a shared file leaves its lock. Our processes take
// that over when they need it. Other programs cannot know that its owner is dead:
// they wait until it is stale, or do without what they wanted to write. So whoever
// takes a place in a team gives back first what its predecessor may have left there.

// leftLocksTime bounds how long one who comes into a team is kept from its work.
const leftLocksTime = time.Second

// giveBackLocks takes over, and gives back, the locks that dead processes of ours have
// left on a team's roster, inboxes and task list. One that a living process has is
// waited for.
func (s *Store) giveBackLocks(ctx context.Context, team string) error {
	ctx, cancel := context.WithTimeout(ctx, leftLocksTime)
	defer cancel()
	return errors.Join(
		s.giveBack(s.root.TeamConfig(team), func(path string) error {
			return s.locked(ctx, path, func(*dirlock.Lock) error { return nil })
		}),
		s.giveBackInboxes(ctx, filepath.Dir(s.root.Inbox(team, "any"))),
		s.giveBack(filepath.Join(s.root.TaskList(team), lockTarget), func(path string) error {
			return s.tasks.changeExisting(ctx, filepath.Dir(path), loggedChanges, func(*taskTx) error { return nil })
		}),
	)
}

// giveBackInboxes does so in a folder of inboxes. Whoever takes over a lock mends what
// was half written.
func (s *Store) giveBackInboxes(ctx context.Context, folder string) error {
	entries, err := s.fsys.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), dirlock.Suffix)
		if !ok || !isShared(name) {
			continue
		}
		errs = append(errs, s.giveBack(filepath.Join(folder, name), func(path string) error {
			return s.mail.changeExisting(ctx, path, leave, func(tx *inboxTx) error { return tx.markRead(ctx, nil) })
		}))
	}
	return errors.Join(errs...)
}

// giveBack has a lock taken and given back if it is one of ours.
func (s *Store) giveBack(target string, take func(target string) error) error {
	ours, err := dirlock.Ours(s.fsys, target)
	if err == nil && ours {
		err = take(target)
	}
	if err != nil {
		return fmt.Errorf("give back the lock of %s: %w", target, err)
	}
	return nil
}

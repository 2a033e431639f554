package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

// teams implements [roster.Store]: one config.json per team, replaced under the
// lock "config.json.lock". Other programs write it without a lock (facts:
// claude-code §2.3), so a change starts over when the file is not what was read.
type teams struct {
	*files
	mu     sync.Mutex
	seen   map[string]*rosterFile // by path: the newest versions that we know
	coming map[string]*rosterFile // by path: what we are writing at this moment
}

func (ts *teams) path(name string) string { return ts.root.TeamConfig(name) }

func (ts *teams) Create(ctx context.Context, c roster.Roster) error {
	if err := ts.create(ctx, c); err != nil {
		return fmt.Errorf("create team %q: %w", c.Name, err)
	}
	return nil
}

func (ts *teams) create(ctx context.Context, c roster.Roster) error {
	if c.Name == "" {
		return errNoName
	}
	if err := fsx.MkdirOwn(ts.fsys, ts.root.TeamDir(c.Name), layout.DirMode); err != nil {
		return err
	}
	path := ts.path(c.Name)
	return ts.locked(ctx, path, func(lock *dirlock.Lock) error {
		exists, err := ts.exists(path)
		if err != nil {
			return err
		}
		if exists {
			return roster.ErrExists
		}
		return ts.save(path, new(rosterFile), c, lock)
	})
}

var errNoName = errors.New("the team's name is empty")

// save makes old, which is the zero roster for a new team, one with the content c.
func (ts *teams) save(path string, old *rosterFile, c roster.Roster, lock *dirlock.Lock) error {
	next, err := old.with(c)
	if err != nil {
		return err
	}
	ts.writing(path, next)
	defer ts.writing(path, nil)
	key, err := ts.replace(path, next.data, old.key, lock)
	if err == nil {
		ts.see(path, ts.known(path), next.at(key)) // the lock is held, so nothing newer is known
	}
	return err
}

// writing says what is about to stand at path; nil: nothing is. Who finds it
// there meanwhile need not decode it.
func (ts *teams) writing(path string, r *rosterFile) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.coming == nil {
		ts.coming = make(map[string]*rosterFile)
	}
	ts.coming[path] = r
}

// decode is the roster that a file's content says.
func (ts *teams) decode(path string, data []byte) (*rosterFile, error) {
	ts.mu.Lock()
	next := ts.coming[path]
	ts.mu.Unlock()
	if next != nil && bytes.Equal(next.data, data) {
		return next, nil
	}
	return readRoster(data)
}

func (ts *teams) Load(ctx context.Context, name string) (roster.Roster, error) {
	if name == "" {
		return roster.Roster{}, errNoName
	}
	r, err := ts.read(ctx, ts.path(name))
	if err != nil {
		return roster.Roster{}, fmt.Errorf("load team %q: %w", name, err)
	}
	return r.config, nil
}

// clockTick is more than the step of the clock by which file systems date files.
const clockTick = 50 * time.Millisecond

// read returns the roster at path. It is decoded only when it is new: every
// message asks who is in the team.
func (ts *teams) read(ctx context.Context, path string) (*rosterFile, error) {
	known := ts.known(path)
	for !ts.stands(path, known) {
		newer := ts.known(path)
		if newer == known {
			return ts.readAnew(ctx, path, known)
		}
		known = newer // it was written by us meanwhile
	}
	return known, nil
}

func (ts *teams) known(path string) *rosterFile {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.seen[path]
}

// stands reports whether a file is still the version that we know. One that was
// written just now could be written in place once more without looking changed,
// so its content is compared.
func (ts *teams) stands(path string, r *rosterFile) bool {
	if r == nil {
		return false
	}
	if r.certain.Load() {
		key, err := fsx.KeyAt(ts.fsys, path)
		return err == nil && key == r.key
	}
	began := time.Now()
	same, err := fsx.Holds(ts.fsys, path, r.key, r.data)
	if err == nil && same && ts.isOld(path, r.key, began) {
		r.certain.Store(true)
	}
	return err == nil && same
}

// readAnew reads and decodes a roster, and remembers it in place of known.
func (ts *teams) readAnew(ctx context.Context, path string, known *rosterFile) (*rosterFile, error) {
	began := time.Now()
	r, err := ts.readWhole(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = roster.ErrNotFound
	}
	if err != nil {
		ts.see(path, known, nil)
		return nil, err
	}
	r.certain.Store(ts.isOld(path, r.key, began))
	ts.see(path, known, r)
	return r, nil
}

// rosterReads is how often a roster is read anew that is torn for longer than other
// files are: programs that start together write it all at once, in place and without
// a lock, so it can take some of them until one has written it whole.
const rosterReads = 4

func (ts *teams) readWhole(ctx context.Context, path string) (r *rosterFile, err error) {
	for range rosterReads {
		var key fsx.Key
		key, err = ts.readShared(ctx, path, maxRoster, func(data []byte) (err error) {
			r, err = ts.decode(path, data)
			return err
		})
		if err == nil {
			return r.at(key), nil
		}
		var torn *TornError
		if !errors.As(err, &torn) {
			break
		}
	}
	return nil, err
}

// isOld reports whether the version key of a file is from well before a time: what
// was read from it after that is all that it will ever be.
func (ts *teams) isOld(path string, key fsx.Key, before time.Time) bool {
	info, err := ts.fsys.Lstat(path)
	return err == nil && fsx.KeyOf(info) == key && before.Sub(info.ModTime()) >= clockTick
}

// see remembers a roster, or nil for none, unless what was known has been replaced
// already.
func (ts *teams) see(path string, was, r *rosterFile) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	switch {
	case ts.seen[path] != was:
	case r == nil:
		delete(ts.seen, path)
	case ts.seen == nil:
		ts.seen = map[string]*rosterFile{path: r}
	default:
		ts.seen[path] = r
	}
}

func (ts *teams) Update(ctx context.Context, name string, change func(*roster.Roster) error) (roster.Roster, error) {
	c, err := ts.update(ctx, name, change)
	if err != nil {
		return roster.Roster{}, fmt.Errorf("update team %q: %w", name, err)
	}
	return c, nil
}

func (ts *teams) update(ctx context.Context, name string, change func(*roster.Roster) error) (c roster.Roster, err error) {
	if name == "" {
		return c, errNoName
	}
	path := ts.path(name)
	exists, err := ts.exists(path)
	if err == nil && !exists {
		err = roster.ErrNotFound
	}
	if err == nil {
		err = fsx.IsFolder(ts.fsys, filepath.Dir(path))
	}
	if err != nil {
		return c, err
	}
	err = ts.locked(ctx, path, func(lock *dirlock.Lock) error {
		for range maxUnlocked {
			var r *rosterFile
			if r, err = ts.read(ctx, path); err != nil {
				return err
			}
			c = ownRoster(r.config)
			if err = change(&c); err != nil {
				return err
			}
			if err = ts.save(path, r, c, lock); !errors.Is(err, errMoved) {
				return err
			}
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = roster.ErrNotFound // removed while we waited
	}
	return c, err
}

func (ts *teams) Remove(ctx context.Context, name string) error {
	err := errNoName
	if name != "" {
		err = ts.unshow(ctx, name)
	}
	if name != "" && err == nil {
		err = ts.removeFolder(ctx, ts.root.TeamDir(name), filepath.Base(ts.path(name)), func() error { return nil })
	}
	if err != nil {
		return fmt.Errorf("remove team %q: %w", name, err)
	}
	return nil
}

func (ts *teams) List(ctx context.Context) ([]roster.Roster, error) {
	entries, err := ts.fsys.ReadDir(ts.root.TeamsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list teams: %w", err)
	}
	var configs []roster.Roster
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		r, err := ts.read(ctx, ts.path(e.Name()))
		switch {
		case err == nil:
			configs = append(configs, r.config)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("list teams: %w", context.Cause(ctx))
		case !errors.Is(err, roster.ErrNotFound):
			ts.warn(err)
		}
	}
	slices.SortStableFunc(configs, func(a, b roster.Roster) int { return strings.Compare(a.Name, b.Name) })
	return configs, nil
}

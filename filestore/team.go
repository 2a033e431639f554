package filestore

import (
	"bytes"
	"context"
	"errors"
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
// lock "config.json.lock". Other programs write it without a lock (facts: claude-code
// §2.3), so a change starts over when they were faster.
type teams struct {
	*files
	mu      sync.Mutex
	cached  map[string]*rosterFile // by path: the newest version that was read or written
	writing map[string]*rosterFile // by path: what is being written at this moment
}

func (ts *teams) path(name string) string { return ts.root.TeamConfig(name) }

func (ts *teams) Create(ctx context.Context, c roster.Roster) (err error) {
	defer wrap(&err, "create team %q", c.Name)
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

// save replaces the roster old, which is the zero one of a new team, by one with the
// content c.
func (ts *teams) save(path string, old *rosterFile, c roster.Roster, lock *dirlock.Lock) error {
	next, err := old.with(c)
	if err != nil {
		return err
	}
	ts.setWriting(path, next)
	defer ts.setWriting(path, nil)
	key, err := ts.replace(path, next.data, old.key, lock)
	if err == nil {
		ts.remember(path, ts.cachedAt(path), next.at(key)) // the lock is held, so there is nothing newer
	}
	return err
}

// setWriting notes what is about to be written at path, or with nil, that it is done: who
// reads it there meanwhile need not decode it.
func (ts *teams) setWriting(path string, r *rosterFile) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.writing == nil {
		ts.writing = make(map[string]*rosterFile)
	}
	ts.writing[path] = r
}

// decode reads a roster from the content of its file.
func (ts *teams) decode(path string, data []byte) (*rosterFile, error) {
	ts.mu.Lock()
	next := ts.writing[path]
	ts.mu.Unlock()
	if next != nil && bytes.Equal(next.data, data) {
		return next, nil
	}
	return readRoster(data)
}

func (ts *teams) Load(ctx context.Context, name string) (c roster.Roster, err error) {
	if name == "" {
		return c, errNoName
	}
	defer wrap(&err, "load team %q", name)
	r, err := ts.read(ctx, ts.path(name))
	if err != nil {
		return c, err
	}
	return r.config, nil
}

// clockTick is more than the resolution of the times that file systems give to files.
const clockTick = 50 * time.Millisecond

// read returns the roster at path. It is decoded only when it has changed, since every
// message asks who is in the team.
func (ts *teams) read(ctx context.Context, path string) (*rosterFile, error) {
	known := ts.cachedAt(path)
	for !ts.isCurrent(path, known) {
		newer := ts.cachedAt(path)
		if newer == known {
			return ts.reload(ctx, path, known)
		}
		known = newer // this process has written it meanwhile
	}
	return known, nil
}

func (ts *teams) cachedAt(path string) *rosterFile {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.cached[path]
}

// isCurrent reports whether a file is still the version r. A file that was written just
// now may be written in place once more and keep its key, so then the content is
// compared.
func (ts *teams) isCurrent(path string, r *rosterFile) bool {
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

// reload reads and decodes a roster, and caches it in place of known.
func (ts *teams) reload(ctx context.Context, path string, known *rosterFile) (*rosterFile, error) {
	began := time.Now()
	r, err := ts.readWhole(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = roster.ErrNotFound
	}
	if err != nil {
		ts.remember(path, known, nil)
		return nil, err
	}
	r.certain.Store(ts.isOld(path, r.key, began))
	ts.remember(path, known, r)
	return r, nil
}

// rosterReads is how often a torn roster is read again, beyond what is done for every
// file: programs that start together write it at the same time, in place and without a
// lock, so it may take several of them until one has written it whole.
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

// isOld reports whether a file still has a key, and got it well before a time: what was
// read of this version since that time is all that it will ever hold.
func (ts *teams) isOld(path string, key fsx.Key, before time.Time) bool {
	info, err := ts.fsys.Lstat(path)
	return err == nil && fsx.KeyOf(info) == key && before.Sub(info.ModTime()) >= clockTick
}

// remember caches a roster, or nil for none, unless the cached version was has been
// replaced already.
func (ts *teams) remember(path string, was, r *rosterFile) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	switch {
	case ts.cached[path] != was:
	case r == nil:
		delete(ts.cached, path)
	case ts.cached == nil:
		ts.cached = map[string]*rosterFile{path: r}
	default:
		ts.cached[path] = r
	}
}

func (ts *teams) Update(ctx context.Context, name string, change func(*roster.Roster) error) (c roster.Roster, err error) {
	defer wrap(&err, "update team %q", name)
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
		for range maxRetries {
			var r *rosterFile
			if r, err = ts.read(ctx, path); err != nil {
				return err
			}
			c = r.config.Clone()
			if err = change(&c); err != nil {
				return err
			}
			if err = ts.save(path, r, c, lock); !errors.Is(err, errChanged) {
				return err
			}
		}
		return err
	})
	if err != nil {
		return roster.Roster{}, asNoTeam(err) // it may have been removed while we waited for the lock
	}
	return c, nil
}

func (ts *teams) Remove(ctx context.Context, name string) (err error) {
	defer wrap(&err, "remove team %q", name)
	if name == "" {
		return errNoName
	}
	if err := ts.unlink(ctx, name); err != nil {
		return err
	}
	return ts.removeFolder(ctx, ts.root.TeamDir(name), filepath.Base(ts.path(name)), func() error { return nil })
}

func (ts *teams) List(ctx context.Context) (configs []roster.Roster, err error) {
	defer wrap(&err, "list teams")
	entries, err := ts.readDir(ts.root.TeamsDir())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		r, err := ts.read(ctx, ts.path(e.Name()))
		switch {
		case err == nil:
			configs = append(configs, r.config)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.Is(err, roster.ErrNotFound):
			ts.warn(err)
		}
	}
	slices.SortStableFunc(configs, func(a, b roster.Roster) int { return strings.Compare(a.Name, b.Name) })
	return configs, nil
}

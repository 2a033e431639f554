package filestore

import (
	"context"
	"encoding/json"
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
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/team"
)

// teams implements [team.Store]: one config.json per team, replaced under the
// lock "config.json.lock". Other programs write it without a lock (facts:
// claude-code §2.3), so a change starts over when the file is not what was read.
type teams struct {
	*Store
	mu   sync.Mutex
	seen map[string]roster // by path: the newest versions that were loaded
}

// roster is a roster file as it was read.
type roster struct {
	key    fsx.Key
	doc    jsonx.Object
	config team.Config
}

func (ts *teams) Path(name string) string { return ts.root.TeamConfig(name) }

func (ts *teams) Create(ctx context.Context, c team.Config) error {
	if err := ts.create(ctx, c); err != nil {
		return fmt.Errorf("create team %q: %w", c.Name, err)
	}
	return nil
}

func (ts *teams) create(ctx context.Context, c team.Config) error {
	if c.Name == "" {
		return errNoName
	}
	if err := fsx.MkdirOwn(ts.fsys, ts.root.TeamDir(c.Name), layout.DirMode); err != nil {
		return err
	}
	path := ts.Path(c.Name)
	return ts.locked(ctx, path, func(lock *dirlock.Lock) error {
		exists, err := ts.exists(path)
		if err != nil {
			return err
		}
		if exists {
			return team.ErrExists
		}
		return ts.save(path, roster{}, c, lock)
	})
}

var errNoName = errors.New("the team's name is empty")

func (ts *teams) save(path string, old roster, c team.Config, lock *dirlock.Lock) error {
	doc, err := encodeRoster(old.doc, c)
	if err != nil {
		return err
	}
	data, err := jsonx.MarshalIndent(doc)
	if err != nil {
		return err
	}
	_, err = ts.replace(path, data, old.key, lock)
	return err
}

func (ts *teams) Load(ctx context.Context, name string) (team.Config, error) {
	if name == "" {
		return team.Config{}, errNoName
	}
	path := ts.Path(name)
	if c, ok := ts.seenLast(path); ok {
		return c, nil
	}
	r, err := ts.read(ctx, path)
	if err != nil {
		return team.Config{}, fmt.Errorf("load team %q: %w", name, err)
	}
	ts.see(path, r)
	return r.config, nil
}

// seenLast is the roster as it was loaded last, if the file is still that version:
// every message asks who is in the team.
func (ts *teams) seenLast(path string) (team.Config, bool) {
	key, err := fsx.KeyAt(ts.fsys, path)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	r, ok := ts.seen[path]
	if err != nil || !ok || r.key != key {
		delete(ts.seen, path)
		return team.Config{}, false
	}
	return ownRoster(r.config), true
}

// see remembers a roster, unless the file is so new that it could be written in
// place again without looking changed.
func (ts *teams) see(path string, r roster) {
	info, err := ts.fsys.Lstat(path)
	if err != nil || time.Since(info.ModTime()) < clockTick {
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.seen == nil {
		ts.seen = make(map[string]roster)
	}
	ts.seen[path] = roster{key: r.key, config: ownRoster(r.config)}
}

// clockTick is more than the step of the clock by which file systems date files.
const clockTick = 50 * time.Millisecond

// ownRoster is a copy whose members the caller may change.
func ownRoster(c team.Config) team.Config {
	c.Members = slices.Clone(c.Members)
	return c
}

func (ts *teams) read(ctx context.Context, path string) (roster, error) {
	var r roster
	key, err := ts.readShared(ctx, path, maxRoster, func(data []byte) (err error) {
		r = roster{}
		if err := json.Unmarshal(data, &r.doc); err != nil {
			return err
		}
		r.config, err = decodeRoster(&r.doc)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = team.ErrNotFound
	}
	r.key = key
	return r, err
}

func (ts *teams) Update(ctx context.Context, name string, change func(*team.Config) error) (team.Config, error) {
	c, err := ts.update(ctx, name, change)
	if err != nil {
		return team.Config{}, fmt.Errorf("update team %q: %w", name, err)
	}
	return c, nil
}

func (ts *teams) update(ctx context.Context, name string, change func(*team.Config) error) (c team.Config, err error) {
	if name == "" {
		return c, errNoName
	}
	path := ts.Path(name)
	exists, err := ts.exists(path)
	if err == nil && !exists {
		err = team.ErrNotFound
	}
	if err != nil {
		return c, err
	}
	err = ts.locked(ctx, path, func(lock *dirlock.Lock) error {
		for range maxUnlocked {
			var r roster
			if r, err = ts.read(ctx, path); err != nil {
				return err
			}
			c = r.config
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
		err = team.ErrNotFound // removed while we waited
	}
	return c, err
}

func (ts *teams) Remove(ctx context.Context, name string) error {
	err := errNoName
	if name != "" {
		err = ts.removeFolder(ctx, ts.root.TeamDir(name), filepath.Base(ts.Path(name)))
	}
	if err != nil {
		return fmt.Errorf("remove team %q: %w", name, err)
	}
	return nil
}

func (ts *teams) List(ctx context.Context) ([]team.Config, error) {
	entries, err := ts.fsys.ReadDir(ts.root.TeamsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list teams: %w", err)
	}
	var configs []team.Config
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		r, err := ts.read(ctx, ts.Path(e.Name()))
		switch {
		case err == nil:
			configs = append(configs, r.config)
		case ctx.Err() != nil:
			return nil, fmt.Errorf("list teams: %w", context.Cause(ctx))
		case !errors.Is(err, team.ErrNotFound):
			ts.warn(err)
		}
	}
	slices.SortStableFunc(configs, func(a, b team.Config) int { return strings.Compare(a.Name, b.Name) })
	return configs, nil
}

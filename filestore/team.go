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

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/team"
)

// teams implements [team.Store]: one config.json per team, replaced under the
// lock "config.json.lock". Other programs write it without a lock (facts:
// claude-code §2.3), so a change starts over when the file is not what was read.
type teams struct{ *Store }

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
	r, err := ts.read(ctx, ts.Path(name))
	if err != nil {
		return team.Config{}, fmt.Errorf("load team %q: %w", name, err)
	}
	return r.config, nil
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

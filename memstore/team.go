package memstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/roster"
)

type teams struct {
	mu      sync.Mutex
	configs map[string]roster.Roster // by the path that their file would have
}

// wholeTeams removes with a team what would be in its folder.
type wholeTeams struct {
	*teams
	store *Store
}

func (ts *wholeTeams) Remove(ctx context.Context, name string) error {
	if err := ts.teams.remove(ctx, name); err != nil {
		return fmt.Errorf("remove team %q: %w", name, err)
	}
	ts.store.mail.removeTeam(name)
	ts.store.seals.removeTeam(name)
	ts.store.records.removeTeam(name)
	ts.store.presence.removeTeam(name)
	return nil
}

var errNoName = errors.New("the team's name is empty")

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
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if _, ok := ts.configs[ts.key(c.Name)]; ok {
		return roster.ErrExists
	}
	if ts.configs == nil {
		ts.configs = make(map[string]roster.Roster)
	}
	ts.configs[ts.key(c.Name)] = c.Clone()
	return nil
}

func (ts *teams) exists(name string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	_, ok := ts.configs[ts.key(name)]
	return ok
}

func (ts *teams) Load(_ context.Context, name string) (roster.Roster, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	c, ok := ts.configs[ts.key(name)]
	if !ok {
		return roster.Roster{}, fmt.Errorf("load team %q: %w", name, roster.ErrNotFound)
	}
	return c.Clone(), nil
}

func (ts *teams) Update(ctx context.Context, name string, change func(*roster.Roster) error) (roster.Roster, error) {
	c, err := ts.update(ctx, name, change)
	if err != nil {
		return roster.Roster{}, fmt.Errorf("update team %q: %w", name, err)
	}
	return c.Clone(), nil
}

func (ts *teams) update(ctx context.Context, name string, change func(*roster.Roster) error) (roster.Roster, error) {
	if ctx.Err() != nil {
		return roster.Roster{}, context.Cause(ctx)
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	c, ok := ts.configs[ts.key(name)]
	if !ok {
		return c, roster.ErrNotFound
	}
	c = c.Clone()
	if err := change(&c); err != nil {
		return c, err
	}
	ts.configs[ts.key(name)] = c.Clone()
	return c, nil
}

func (ts *teams) remove(ctx context.Context, name string) error {
	if name == "" {
		return errNoName
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.configs, ts.key(name))
	return nil
}

func (ts *teams) List(context.Context) ([]roster.Roster, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var list []roster.Roster
	for _, c := range ts.configs {
		list = append(list, c.Clone())
	}
	slices.SortFunc(list, func(a, b roster.Roster) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// key is the same for two names of one team.
func (ts *teams) key(name string) string { return root.TeamConfig(name) }

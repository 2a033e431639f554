package team

import (
	"context"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/roster"
)

// updateRoster changes a roster and tells of it. Of changes that are made at the
// same time, an older one is not told after a newer one.
func (t *Teams) updateRoster(ctx context.Context, team string, by event.Agent, change func(*roster.Roster) error) (roster.Roster, error) {
	var turn int
	config, err := t.store.Update(ctx, team, func(c *roster.Roster) error {
		if err := change(c); err != nil {
			return err
		}
		turn = t.countChange(team)
		return nil
	})
	if err != nil {
		return roster.Roster{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[team]; ok && turn > crew.told {
		crew.told = turn
		t.publish(by, event.TeamChanged{Team: team, Members: rosterOf(config)})
	}
	return config, nil
}

// countChange numbers a change of a roster, while the store's lock is held.
func (t *Teams) countChange(team string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[team]
	if !ok {
		return 0
	}
	crew.changes++
	return crew.changes
}

// rosterOf is a roster as events carry it.
func rosterOf(c roster.Roster) []event.Member {
	members := make([]event.Member, len(c.Members))
	for i, m := range c.Members {
		members[i] = event.Member{
			Name: m.Name, AgentType: m.AgentType, Model: m.Model, Color: m.Color, Backend: m.BackendType,
			Lead: m.AgentID == c.LeadAgentID,
		}
	}
	return members
}

package team

import (
	"context"
	"errors"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/tool"
)

// Created is a new team.
type Created struct {
	Config
	Path string // of its roster
}

// Create forms a team led by the caller's session and empties its task list. A
// name that is taken is replaced by a random one (facts: claude-code §2.1).
// Errors: [*NameError], [*LeadingError], [ErrNotMain].
func (t *Teams) Create(ctx context.Context, by tool.Caller, name, description, agentType string) (Created, error) {
	name, err := cleanTeamName(name)
	if err != nil {
		return Created{}, err
	}
	if by.Depth > 0 || by.Team != "" {
		return Created{}, ErrNotMain
	}
	if seat, ok := t.Seat(by); ok {
		return Created{}, &LeadingError{seat.Team}
	}
	config, err := t.keepUnderFreeName(ctx, newConfig(by, description, agentType), name)
	if err != nil {
		return Created{}, err
	}
	err = t.tasks.Reset(ctx, config.Name)
	var seat *Seat
	if err == nil {
		seat, err = t.lead(ctx, &config)
	}
	if err != nil {
		return Created{}, errors.Join(err, t.store.Remove(ctx, config.Name))
	}
	t.publish(seat.agent(), event.TeamChanged{Team: config.Name, Members: rosterOf(config)})
	return Created{config, t.store.Path(config.Name)}, nil
}

// keepUnderFreeName keeps a new team under the name, or under the first random one that is
// free.
func (t *Teams) keepUnderFreeName(ctx context.Context, c Config, name string) (Config, error) {
	const tries = 20
	for n := 0; ; n++ {
		if n > 0 || mailKey(name) == noTeamFolder {
			name = ids.Words()
		}
		c.Name = name
		c.LeadAgentID = AgentID(LeadName, name)
		c.Members[0].AgentID = c.LeadAgentID
		err := t.store.Create(ctx, c)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, ErrExists) || n == tries {
			return Config{}, err
		}
	}
}

// noTeamFolder holds the mail of agents without a team (facts: claude-code
// §5.1): no team may have it.
const noTeamFolder = "default"

func newConfig(by tool.Caller, description, agentType string) Config {
	if agentType == "" {
		agentType = LeadName
	}
	now := time.Now().UnixMilli()
	return Config{
		Description: description, CreatedAt: now, LeadSessionID: by.SessionID,
		Members: []Member{{
			Name: LeadName, AgentType: agentType, Model: by.Model, JoinedAt: now, Cwd: by.Cwd, Subscriptions: []string{},
		}},
	}
}

// AgentID is the id of an agent in a team.
func AgentID(name, team string) string { return name + "@" + team }

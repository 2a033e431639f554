package team

import (
	"context"
	"errors"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/tool"
)

// Create forms a team led by the caller's session and empties its task list. A
// name that is taken is replaced by a random one (facts: claude-code §2.1).
// Errors: [*roster.NameError], [*LeadingError], [ErrNotMain].
func (t *Teams) Create(ctx context.Context, by tool.Caller, name, description, agentType string) (roster.Roster, error) {
	name, err := roster.CleanTeamName(name)
	if err != nil {
		return roster.Roster{}, err
	}
	if by.Depth > 0 || by.Team != "" {
		return roster.Roster{}, ErrNotMain
	}
	if seat, ok := t.Seat(by); ok {
		return roster.Roster{}, &LeadingError{seat.Team}
	}
	config, err := t.keepUnderFreeName(ctx, newConfig(by, description, agentType), name)
	if err != nil {
		return roster.Roster{}, err
	}
	err = t.tasks.Reset(ctx, config.Name)
	var seat *Seat
	if err == nil {
		seat, err = t.lead(ctx, &config)
	}
	if err != nil {
		return roster.Roster{}, errors.Join(err, t.store.Remove(ctx, config.Name))
	}
	t.publish(seat.agent(), event.TeamChanged{Team: config.Name, Members: rosterOf(config)})
	return config, nil
}

// keepUnderFreeName keeps a new team under the name, or under the first random one that is
// free.
func (t *Teams) keepUnderFreeName(ctx context.Context, c roster.Roster, name string) (roster.Roster, error) {
	const tries = 20
	for n := 0; ; n++ {
		if n > 0 || roster.MailKey(name) == noTeamFolder {
			name = ids.Words()
		}
		c.Name = name
		c.LeadAgentID = roster.AgentID(mailbox.LeadName, name)
		c.Members[0].AgentID = c.LeadAgentID
		err := t.store.Create(ctx, c)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, roster.ErrExists) || n == tries {
			return roster.Roster{}, err
		}
	}
}

// noTeamFolder holds the mail of agents without a team (facts: claude-code
// §5.1): no team may have it.
const noTeamFolder = "default"

func newConfig(by tool.Caller, description, agentType string) roster.Roster {
	if agentType == "" {
		agentType = mailbox.LeadName
	}
	now := time.Now().UnixMilli()
	return roster.Roster{
		Description: description, CreatedAt: now, LeadSessionID: by.SessionID,
		Members: []roster.Member{{
			Name: mailbox.LeadName, AgentType: agentType, Model: by.Model, JoinedAt: now, Cwd: by.Cwd, Subscriptions: []string{},
		}},
	}
}

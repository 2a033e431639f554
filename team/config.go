package team

import (
	"github.com/cadre-dev/cadre/internal/jsonx"
)

// LeadName is the name of every team's lead.
const LeadName = "team-lead"

// Config is the roster file of a team (facts: claude-code §2.1, §4.1). Unknown
// fields that another program wrote are kept in Extra.
type Config struct {
	Name          string
	Description   string // "" when absent
	CreatedAt     int64  // milliseconds since 1970
	LeadAgentID   string
	LeadSessionID string
	Members       []Member
	Extra         jsonx.Object
}

// Member is one agent of a team.
type Member struct {
	AgentID          string
	Name             string
	AgentType        string
	Model            string
	Prompt           string // "" for the lead
	Color            string // "" for the lead
	PlanModeRequired bool
	JoinedAt         int64  // milliseconds since 1970
	PaneID           string // "tmuxPaneId": "in-process", "%3", or "" for the lead
	Cwd              string
	Subscriptions    []string
	BackendType      string // "" for the lead
	IsActive         *bool  // only pane teammates write it
	Extra            jsonx.Object
}

// Find returns the member with this name, or nil.
func (c *Config) Find(name string) *Member {
	for i := range c.Members {
		if c.Members[i].Name == name {
			return &c.Members[i]
		}
	}
	return nil
}

// Teammates lists the members other than the lead.
func (c *Config) Teammates() []Member {
	var mates []Member
	for _, m := range c.Members {
		if m.AgentID != c.LeadAgentID {
			mates = append(mates, m)
		}
	}
	return mates
}

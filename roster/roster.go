package roster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// InProcess is the kind of the backend that runs teammates in the lead's own
// process, as rosters name it.
const InProcess = "in-process"

// Roster is the roster file of a team (facts: claude-code §2.1, §4.1). Unknown
// fields that another program wrote are kept in Extra.
type Roster struct {
	Name          string
	Description   string // "" when absent
	CreatedAt     int64  // milliseconds since 1970
	LeadAgentID   string
	LeadSessionID string
	Members       []Member
	Extra         jsonx.Object
}

// Member is one agent of a team. The tags are those of our own records ([Enrolment]);
// how a roster spells it is its store's to know.
type Member struct {
	AgentID          string       `json:"agentId"`
	Name             string       `json:"name"`
	AgentType        string       `json:"agentType,omitempty"`
	Model            string       `json:"model,omitempty"`
	Prompt           string       `json:"prompt,omitempty"` // "" for the lead
	Color            string       `json:"color,omitempty"`  // "" for the lead
	PlanModeRequired bool         `json:"planModeRequired,omitempty"`
	JoinedAt         int64        `json:"joinedAt"`             // milliseconds since 1970
	PaneID           string       `json:"tmuxPaneId,omitempty"` // "in-process", "%3", or "" for the lead
	Cwd              string       `json:"cwd,omitempty"`
	Subscriptions    []string     `json:"subscriptions,omitempty"`
	BackendType      string       `json:"backendType,omitempty"` // "" for the lead
	IsActive         *bool        `json:"isActive,omitempty"`    // only pane teammates write it
	Extra            jsonx.Object `json:"extra"`
}

// Clone is a copy of which every part may be changed.
func (c *Roster) Clone() Roster {
	copied := *c
	copied.Extra = c.Extra.Clone()
	copied.Members = slices.Clone(c.Members)
	for i := range copied.Members {
		m := &copied.Members[i]
		m.Subscriptions, m.Extra = slices.Clone(m.Subscriptions), m.Extra.Clone()
		if m.IsActive != nil {
			m.IsActive = new(*m.IsActive)
		}
	}
	return copied
}

// Find returns the member with this name, or nil.
func (c *Roster) Find(name string) *Member {
	for i := range c.Members {
		if c.Members[i].Name == name {
			return &c.Members[i]
		}
	}
	return nil
}

// Teammates lists the members other than the lead.
func (c *Roster) Teammates() []Member {
	var mates []Member
	for _, m := range c.Members {
		if m.AgentID != c.LeadAgentID {
			mates = append(mates, m)
		}
	}
	return mates
}

// UnknownMemberError says that nobody of this name is on the roster, and who is.
type UnknownMemberError struct {
	Name, Team string
	Departed   bool     // it was, and has shut down
	Near       []string // names it may have been meant for
	Members    []string
}

func (e *UnknownMemberError) Error() string {
	var b strings.Builder
	if e.Departed {
		fmt.Fprintf(&b, "%q has left team %q", e.Name, e.Team)
	} else {
		fmt.Fprintf(&b, "nobody is called %q in team %q", e.Name, e.Team)
	}
	if len(e.Near) > 0 {
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(e.Near, " or "))
	}
	fmt.Fprintf(&b, " (members: %s)", strings.Join(e.Members, ", "))
	return b.String()
}

// Apart reports whether a teammate has a process of its own.
func (m *Member) Apart() bool { return m.BackendType != "" && m.BackendType != InProcess }

package cadre

import (
	"path/filepath"

	"github.com/cadre-dev/cadre/internal/layout"
)

// Teammate says whose place a main session takes in a team that another process
// leads (facts: claude-code §4.3).
type Teammate struct {
	AgentID     string // name@team; may be ""
	Name, Team  string
	Color       string
	LeadSession string // id of the lead's session; may be ""
	Type        string // agent type; may be ""
	MustPlan    bool   // it starts in plan mode, and has a plan approved first
}

// rootOfTeam is where the teammate's team lies: a lead that is another program
// keeps its teams in ~/.claude, unless it was told otherwise, and says nothing of it
// to whom it starts.
func (c *Config) rootOfTeam() layout.Root {
	home := c.Getenv("HOME")
	if c.Getenv("CADRE_HOME") != "" || c.Getenv("CLAUDE_CONFIG_DIR") != "" || home == "" || exists(c.Root.TeamConfig(c.Teammate.Team)) {
		return c.Root
	}
	if other := layout.Root(filepath.Join(home, ".claude")); exists(other.TeamConfig(c.Teammate.Team)) {
		return other
	}
	return c.Root
}

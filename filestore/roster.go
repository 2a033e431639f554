package filestore

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/roster"
)

// The orders of a roster and of its members (facts: claude-code §2.1, §4.1).
var (
	rosterKeys = []string{"name", "description", "createdAt", "leadAgentId", "leadSessionId", "members"}
	memberKeys = []string{"agentId", "name", "agentType", "model", "prompt", "color", "planModeRequired", "joinedAt",
		"tmuxPaneId", "cwd", "subscriptions", "backendType", "isActive"}
)

// decodeHead reads what a roster has beside its members. Without a name it is
// none; what else does not fit is left out, and stands in Extra.
func decodeHead(doc *jsonx.Object) (roster.Roster, error) {
	c := roster.Roster{Extra: extraOf(doc, rosterKeys)}
	if _, err := doc.Get("name", &c.Name); err != nil || c.Name == "" {
		return c, errors.Join(errors.New("the file names no team"), err)
	}
	take(doc, &c.Extra, "description", &c.Description)
	take(doc, &c.Extra, "createdAt", (*millis)(&c.CreatedAt))
	take(doc, &c.Extra, "leadAgentId", &c.LeadAgentID)
	take(doc, &c.Extra, "leadSessionId", &c.LeadSessionID)
	return c, nil
}

func decodeMember(doc *jsonx.Object) roster.Member {
	m := roster.Member{Extra: extraOf(doc, memberKeys)}
	take(doc, &m.Extra, "agentId", &m.AgentID)
	take(doc, &m.Extra, "name", &m.Name)
	take(doc, &m.Extra, "agentType", &m.AgentType)
	take(doc, &m.Extra, "model", &m.Model)
	take(doc, &m.Extra, "prompt", &m.Prompt)
	take(doc, &m.Extra, "color", &m.Color)
	take(doc, &m.Extra, "planModeRequired", &m.PlanModeRequired)
	take(doc, &m.Extra, "joinedAt", (*millis)(&m.JoinedAt))
	take(doc, &m.Extra, "tmuxPaneId", &m.PaneID)
	take(doc, &m.Extra, "cwd", &m.Cwd)
	take(doc, &m.Extra, "subscriptions", &m.Subscriptions)
	take(doc, &m.Extra, "backendType", &m.BackendType)
	take(doc, &m.Extra, "isActive", &m.IsActive)
	return m
}

// encodeHead writes what c has beside its members over a roster's old content
// (empty for a new one).
func encodeHead(doc jsonx.Object, c roster.Roster) jsonx.Object {
	amend(&doc, "name", c.Name, true)
	amend(&doc, "description", c.Description, false)
	amend(&doc, "createdAt", millis(c.CreatedAt), true)
	amend(&doc, "leadAgentId", c.LeadAgentID, true)
	amend(&doc, "leadSessionId", c.LeadSessionID, true)
	if !doc.Has(membersKey) {
		doc.Set(membersKey, noMembers)
	}
	amendExtra(&doc, rosterKeys, c.Extra)
	return doc
}

// encodeMember writes m over the member's old content. A lead has no prompt,
// colour, plan mode and backend at all (facts: claude-code §2.1, §4.1).
func encodeMember(doc jsonx.Object, m roster.Member) jsonx.Object {
	mate := m.BackendType != ""
	amend(&doc, "agentId", m.AgentID, true)
	amend(&doc, "name", m.Name, true)
	amend(&doc, "agentType", m.AgentType, true)
	amend(&doc, "model", m.Model, true)
	amend(&doc, "prompt", m.Prompt, mate)
	amend(&doc, "color", m.Color, mate)
	amend(&doc, "planModeRequired", m.PlanModeRequired, mate)
	amend(&doc, "joinedAt", millis(m.JoinedAt), true)
	amend(&doc, "tmuxPaneId", m.PaneID, true)
	amend(&doc, "cwd", m.Cwd, true)
	amend(&doc, "subscriptions", list(m.Subscriptions), true)
	amend(&doc, "backendType", m.BackendType, false)
	if m.IsActive == nil {
		doc.Delete("isActive")
	}
	amend(&doc, "isActive", m.IsActive, false)
	amendExtra(&doc, memberKeys, m.Extra)
	return doc
}

// millis is a time in milliseconds; other programs may write a fraction.
type millis int64

func (m *millis) UnmarshalJSON(data []byte) error {
	var n float64
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("time in milliseconds: %w", err)
	}
	*m = millis(n)
	return nil
}

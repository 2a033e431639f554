package format

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/roster"
)

// MembersKey is the field of a roster's members.
const MembersKey = "members"

// NoMembers stands for the members where a roster is read or written without them.
var NoMembers = json.RawMessage("[]")

// rosterFields are those of a roster but for its members (facts: claude-code §2.1).
func rosterFields(r *roster.Roster) fields {
	return fields{
		{"name", &r.Name, true},
		{"description", &r.Description, false},
		{"createdAt", (*millis)(&r.CreatedAt), true},
		{"leadAgentId", &r.LeadAgentID, true},
		{"leadSessionId", &r.LeadSessionID, true},
	}
}

// memberFields are those of a member. A lead has no prompt, colour, plan mode and backend
// at all (facts: claude-code §2.1, §4.1).
func memberFields(m *roster.Member) fields {
	mate := m.BackendType != ""
	return fields{
		{"agentId", &m.AgentID, true},
		{"name", &m.Name, true},
		{"agentType", &m.AgentType, true},
		{"model", &m.Model, true},
		{"prompt", &m.Prompt, mate},
		{"color", &m.Color, mate},
		{"planModeRequired", &m.PlanModeRequired, mate},
		{"joinedAt", (*millis)(&m.JoinedAt), true},
		{"tmuxPaneId", &m.PaneID, true},
		{"cwd", &m.Cwd, true},
		{"subscriptions", &m.Subscriptions, true},
		{"backendType", &m.BackendType, false},
		{"isActive", &m.IsActive, false},
	}
}

var (
	rosterKeys = append(rosterFields(new(roster.Roster)).keys(), MembersKey)
	memberKeys = memberFields(new(roster.Member)).keys()
)

// DecodeRoster reads what a roster has beside its members. Without a name it is none.
func DecodeRoster(doc *jsonx.Object) (roster.Roster, error) {
	var r roster.Roster
	r.Extra = rosterFields(&r).decode(doc, rosterKeys)
	if r.Name == "" {
		return r, errors.New("the file names no team")
	}
	return r, nil
}

// DecodeMember reads a member of any shape.
func DecodeMember(doc *jsonx.Object) roster.Member {
	var m roster.Member
	m.Extra = memberFields(&m).decode(doc, memberKeys)
	return m
}

// EncodeRoster writes what r has beside its members over a roster's old content (empty
// for a new one).
func EncodeRoster(doc jsonx.Object, r roster.Roster) jsonx.Object {
	rosterFields(&r).encode(&doc, rosterKeys, r.Extra)
	if !doc.Has(MembersKey) {
		doc.Set(MembersKey, NoMembers)
	}
	return doc
}

// EncodeMember writes m over the member's old content.
func EncodeMember(doc jsonx.Object, m roster.Member) jsonx.Object {
	m.Subscriptions = orEmpty(m.Subscriptions)
	if m.IsActive == nil {
		doc.Delete("isActive")
	}
	memberFields(&m).encode(&doc, memberKeys, m.Extra)
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

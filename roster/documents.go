package roster

import "time"

// Kinds of records.
const (
	// RecordTeam holds one document, under the team's own name: [Founding].
	RecordTeam = "team"
	// RecordAgent holds an [AgentRecord] per teammate, under its name.
	RecordAgent = "agent"
	// RecordPane holds a [PaneRecord] per pane that we opened, under the
	// teammate's name.
	RecordPane = "pane"
	// RecordMember holds an [Enrolment] per teammate, under its name, also after
	// it has left.
	RecordMember = "member"
	// RecordActivity holds an [Activity] per teammate that is another program,
	// under its name.
	RecordActivity = "activity"
	// RecordUsage holds, under the name of a teammate with a process of its own, what it
	// has used of its model there.
	RecordUsage = "usage"
	// RecordLeadEnd holds a [LeadEnd] under the team's own name, while its lead is away.
	RecordLeadEnd = "leadend"
)

// Founding says that our runtime created a team. In a team without it, another
// program leads, and the protocol messages of its members carry no seal.
type Founding struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

// LeadEnd says that the process of a lead has ended in order, and that nobody has to wait
// for it to come back: a killed one stores nothing.
type LeadEnd struct {
	At time.Time `json:"at"`
}

// AgentRecord is what it takes to resume a teammate: who it is and where its
// conversation is stored.
type AgentRecord struct {
	Name        string    `json:"name"`
	AgentID     string    `json:"agentId,omitempty"` // of its transcript; "" when it is a main session
	SessionID   string    `json:"sessionId"`
	Project     string    `json:"project"` // the working folder that names the transcript's project
	Backend     string    `json:"backend"`
	Description string    `json:"description,omitempty"`
	Mode        string    `json:"mode,omitempty"`     // its permission mode; "" for the lead's
	PlanFile    string    `json:"planFile,omitempty"` // of a teammate that must plan first
	Signs       bool      `json:"signs"`              // its program is ours, and seals its protocol messages
	Starting    bool      `json:"starting,omitempty"` // in a pane, where its lead has not seen it run yet
	Orphaned    bool      `json:"orphaned,omitempty"` // its process ends because the lead is gone
	Since       time.Time `json:"since"`
	Ended       *Ending   `json:"ended,omitempty"` // it is leaving, and its lead has not been notified yet
}

// Ending is the notice that the lead gets of a teammate that has ended. It is stored
// before the teammate is removed from the roster, so that no crash loses it.
type Ending struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// PaneRecord is a pane that we opened. Only a recorded pane is ever closed.
type PaneRecord struct {
	Agent    string    `json:"agent"`
	Terminal string    `json:"terminal"` // the kind of terminal: tmux, iterm2
	Socket   string    `json:"socket,omitempty"`
	Pane     string    `json:"pane"`   // "%3"
	Mark     string    `json:"mark"`   // the label on the pane: terminals give the same id again
	Window   bool      `json:"window"` // it has a window of its own
	Opened   time.Time `json:"opened"`
}

// Enrolment is a teammate's membership as its lead granted it. After the teammate has
// left, only its identity is kept.
type Enrolment struct {
	Member Member `json:"member"`
	Left   bool   `json:"left,omitempty"`
}

// is reports whether an enrolment is of this very member, and not of another that had
// the name before.
func (e Enrolment) is(m Member) bool {
	return e.Member.Name == m.Name && e.Member.JoinedAt == m.JoinedAt
}

// Activity is the last change that the lead observed in the isActive flag of a
// teammate that is another program. It outlives the lead's process: only an observer
// that saw a value stand for a while knows that the teammate itself wrote it.
type Activity struct {
	Active bool   `json:"active"`
	Since  string `json:"since"` // a mail timestamp
}

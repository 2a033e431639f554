package team

import (
	"context"
	"errors"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
)

// ErrNoRecord says that a record is not kept.
var ErrNoRecord = errors.New("no such record")

// Records keeps what is ours alone about a team, beside the files that other
// programs share: small JSON documents, each with a kind and a name. They go when
// the team is removed. Implementations pass the suite in internal/storetest. All
// methods may be called from any goroutine and any process at once.
type Records interface {
	// Put keeps a document in the place of an older one. When it returns nil the
	// document survives the kill of any process; a reader sees the old or the
	// new one. name may be any agent's name.
	Put(ctx context.Context, team, kind, name string, doc []byte) error
	// Get returns a document, or [ErrNoRecord].
	Get(ctx context.Context, team, kind, name string) ([]byte, error)
	// All returns the documents of a kind, ordered by name. Those that cannot be
	// read are left out.
	All(ctx context.Context, team, kind string) ([][]byte, error)
	// Drop removes a document; a missing one is no error.
	Drop(ctx context.Context, team, kind, name string) error
}

// Kinds of records.
const (
	// RecordTeam holds one document, under the team's own name: [Founding].
	RecordTeam = "team"
	// RecordAgent holds an [AgentRecord] per teammate, under its name.
	RecordAgent = "agent"
	// RecordPane holds a [PaneRecord] per pane that we opened, under the
	// teammate's name.
	RecordPane = "pane"
)

// Founding says that our runtime created a team. In a team without it, another
// program leads: what its members say as protocol carries no seal.
type Founding struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

// AgentRecord is what it takes to bring a teammate back: who it is and where its
// conversation lies.
type AgentRecord struct {
	Name        string    `json:"name"`
	AgentID     string    `json:"agentId,omitempty"` // of its transcript; "" when it is a main session
	SessionID   string    `json:"sessionId"`
	Project     string    `json:"project"` // the working folder that names the transcript's project
	Backend     string    `json:"backend"`
	Description string    `json:"description,omitempty"`
	Mode        string    `json:"mode,omitempty"`     // permission mode it works in; "" the lead's
	PlanFile    string    `json:"planFile,omitempty"` // of a teammate that has to plan
	Signs       bool      `json:"signs"`              // it is ours: its protocol messages carry a seal
	Starting    bool      `json:"starting,omitempty"` // in a pane, where its lead has not seen it run yet
	Since       time.Time `json:"since"`
	Ended       *Ending   `json:"ended,omitempty"` // it is leaving, and its lead does not know yet
}

// Ending is what the lead is to be told of a teammate that has ended. It is kept
// before the teammate goes off the roster, so that no crash keeps it back.
type Ending struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// PaneRecord is a pane that we opened. Only what is recorded is ever closed.
type PaneRecord struct {
	Agent    string    `json:"agent"`
	Terminal string    `json:"terminal"` // the pane room's kind: tmux, iterm2
	Socket   string    `json:"socket,omitempty"`
	Pane     string    `json:"pane"`   // "%3"
	Mark     string    `json:"mark"`   // what the pane is marked with: its id is given again
	Window   bool      `json:"window"` // it has a window of its own
	Opened   time.Time `json:"opened"`
}

// Presence says which agents of a team have a process of their own, or lead it.
// A place is given up by leaving or by the death of the process, however it dies.
// In-process teammates take no place: they are where their lead is.
// Implementations pass the suite in internal/storetest. All methods may be called
// from any goroutine and any process at once.
type Presence interface {
	// Enter takes an agent's place until leave is called: [*PresentError] when
	// somebody has it. The team's folder must exist.
	Enter(ctx context.Context, who mailbox.Address) (leave func() error, err error)
	// Find says which process has an agent's place; ok is false when none has.
	Find(ctx context.Context, who mailbox.Address) (p Process, ok bool, err error)
}

// Process is where an agent runs.
type Process struct {
	PID   int
	Host  string
	Since time.Time
}

// PresentError says that an agent runs already.
type PresentError struct {
	Who mailbox.Address
	By  Process
}

func (e *PresentError) Error() string {
	return "agent " + e.Who.String() + " runs already, in another process"
}

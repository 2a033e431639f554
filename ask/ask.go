// Package ask is the vocabulary of pending questions to a person: may this tool
// run, is this plan good, which of these choices. It keeps them until they are
// answered or their deadline passes.
package ask

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"
)

// Kind is what is asked.
type Kind string

// The kinds of asks.
const (
	Permission Kind = "permission"
	Choice     Kind = "choice"
	Plan       Kind = "plan"
)

// Ask is one pending question.
type Ask struct {
	ID          string          `json:"id"`
	Kind        Kind            `json:"kind"`
	SessionID   string          `json:"sessionId"`
	AgentID     string          `json:"agentId,omitempty"`
	AgentName   string          `json:"agentName,omitempty"`
	Team        string          `json:"team,omitempty"`
	Tool        string          `json:"tool"`
	ToolUseID   string          `json:"toolUseId"`
	Input       json.RawMessage `json:"input"`
	Digest      string          `json:"digest"`   // of tool and input: an answer is for exactly this call
	Question    string          `json:"question"` // one line for a person
	Reason      string          `json:"reason,omitempty"`
	Suggestions []Suggestion    `json:"suggestions,omitempty"`
	Asked       time.Time       `json:"asked"`
	Deadline    time.Time       `json:"deadline,omitzero"` // zero: none
	// Answer is set when the answer is known and has not reached the asker: its process
	// was killed while the call waited, so the model has to learn of the answer and make
	// the call again.
	Answer *Answer `json:"answer,omitempty"`
}

// Suggestion is a change of the permission rules: one that would make this ask
// unnecessary next time, or one that a person made with an answer (facts:
// sdk-contract §3.2, PermissionUpdate).
type Suggestion struct {
	Type        string   `json:"type"` // one of those below
	Rules       []Rule   `json:"rules,omitempty"`
	Behavior    string   `json:"behavior,omitempty"`
	Mode        string   `json:"mode,omitempty"`
	Directories []string `json:"directories,omitempty"`
	Destination string   `json:"destination"` // one of those below
}

// The values of Suggestion.Type.
const (
	AddRules          = "addRules"
	ReplaceRules      = "replaceRules" // of a behavior, at the destination
	RemoveRules       = "removeRules"
	SetMode           = "setMode"
	AddDirectories    = "addDirectories"
	RemoveDirectories = "removeDirectories"
)

// The values of Suggestion.Destination. The first two count until the session ends; the
// others are settings files.
const (
	Session         = "session"
	CLIArg          = "cliArg" // as if it had been said with a flag
	LocalSettings   = "localSettings"
	ProjectSettings = "projectSettings"
	UserSettings    = "userSettings"
)

// Rule names a tool and, optionally, what of it.
type Rule struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// Answer ends an ask.
type Answer struct {
	Allow        bool            `json:"allow"`
	Message      string          `json:"message,omitempty"`      // a denial's reason, or a note with an approval
	UpdatedInput json.RawMessage `json:"updatedInput,omitempty"` // an approval may change the input; nil keeps it
	Updates      []Suggestion    `json:"updates,omitempty"`      // rule changes the person accepted
	Interrupt    bool            `json:"interrupt,omitempty"`    // a denial may also end the turn
	By           string          `json:"by"`                     // who answered: one of those below, "interrupt", "rule", "relay"
	// Kept says that the updates meant for settings files were written where they
	// were accepted, in another process. Here they count until the session ends.
	Kept bool `json:"kept,omitempty"`
}

// Values of Answer.By.
const (
	ByPerson   = "person"
	ByDeadline = "deadline" // nobody, until then
	// ByElsewhere: the question was answered where it was asked, in another process. What
	// the answer was is not known here.
	ByElsewhere = "elsewhere"
)

// Outcome says in a few words how the question ended.
func (a Answer) Outcome() string {
	switch {
	case a.By == ByDeadline:
		return "was denied: nobody answered in time"
	case a.By == "rule":
		return "was answered by a rule"
	case a.By == ByElsewhere:
		return "was answered elsewhere"
	case a.By == "interrupt":
		return "is closed: the call was interrupted"
	case a.Allow:
		return "was answered: yes"
	case a.Message != "":
		return "was answered: no (" + a.Message + ")"
	}
	return "was answered: no"
}

// DigestOf binds an answer to exactly this call.
func DigestOf(tool string, input json.RawMessage) string {
	h := sha256.New()
	h.Write([]byte(tool))
	h.Write([]byte{0})
	h.Write(input)
	return hex.EncodeToString(h.Sum(nil))
}

// Errors of answering.
var (
	ErrUnknown  = errors.New("no such pending question")
	ErrAnswered = errors.New("the question is answered already")
)

// Store keeps the asks of one session. Implementations pass the suite in
// internal/storetest. Only the session's owner calls it.
type Store interface {
	// Put keeps a pending ask, in the place of an older version of it.
	Put(ctx context.Context, a Ask) error
	// Resolve keeps the answer of an ask: [ErrUnknown] when it is not kept,
	// [ErrAnswered] when it has one.
	Resolve(ctx context.Context, id string, answer Answer) error
	// Pending lists the asks that are not resolved, oldest first.
	Pending(ctx context.Context) ([]Ask, error)
}

package protocol

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/transcript"
)

// Control is a message of the team protocol: one of the types below. Their
// fields stand in the order in which they are written.
type Control interface{ kind() string }

// KindOf is the value of "type" in a message.
func KindOf(c Control) string { return c.kind() }

// The values of "type" in the protocol.
const (
	TypeIdle             = "idle_notification"
	TypeShutdownRequest  = "shutdown_request"
	TypeShutdownApproved = "shutdown_approved"
	TypeShutdownRejected = "shutdown_rejected"
	TypeTerminated       = "teammate_terminated"
	TypeAssignment       = "task_assignment"
	TypePlanRequest      = "plan_approval_request"
	TypePlanResponse     = "plan_approval_response"

	TypePermissionRequest  = "permission_request"
	TypePermissionResponse = "permission_response"
	TypePermissionSettled  = "permission_settled" // ours: no other program knows it
)

// otherTypes belong to the protocol and are not acted on here, either because their
// meaning is not known to us or because a message of a type that is has fields of
// another shape. A model must not send them either (facts: claude-code §5.6, §7). The
// value says whether the runtime consumes such a message without showing it (§4.5).
var otherTypes = map[string]bool{
	TypePermissionRequest:         false,
	TypePermissionResponse:        true,
	TypePermissionSettled:         true,
	"mode_set_request":            true,
	"team_permission_update":      true,
	"sandbox_permission_request":  false,
	"sandbox_permission_response": true,
}

// IsConsumed reports whether the runtime consumes a message without showing it to
// the recipient's model (facts: claude-code §4.5).
func IsConsumed(c Control) bool { return otherTypes[c.kind()] }

// IdleReason says why an agent went idle.
type IdleReason string

// The reasons.
const (
	Available       IdleReason = "available"
	IdleInterrupted IdleReason = "interrupted"
	IdleFailed      IdleReason = "failed"
)

// IdleNotification tells the lead that an agent ended its turn (facts:
// claude-code §5.4).
type IdleNotification struct {
	Type            string     `json:"type"`
	From            string     `json:"from"`
	Timestamp       string     `json:"timestamp"`
	IdleReason      IdleReason `json:"idleReason"`
	Summary         string     `json:"summary,omitempty"` // of the turn's last mail to a peer
	CompletedTaskID string     `json:"completedTaskId,omitempty"`
	CompletedStatus string     `json:"completedStatus,omitempty"`
	FailureReason   string     `json:"failureReason,omitempty"`
	Unread          int        `json:"unread,omitempty"` // ours: messages that the agent left unread when its turn failed
}

// ShutdownRequest asks an agent to end (facts: claude-code §5.5).
type ShutdownRequest struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	From      string `json:"from"`
	Reason    string `json:"reason,omitempty"`
	Timestamp string `json:"timestamp"`
}

// ShutdownApproved says that the agent ends now.
type ShutdownApproved struct {
	Type        string `json:"type"`
	RequestID   string `json:"requestId"`
	From        string `json:"from"`
	Timestamp   string `json:"timestamp"`
	PaneID      string `json:"paneId,omitempty"`
	BackendType string `json:"backendType,omitempty"`
}

// ShutdownRejected says that the agent goes on, and why.
type ShutdownRejected struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	From      string `json:"from"`
	Reason    string `json:"reason"`
	Timestamp string `json:"timestamp"`
}

// Terminated tells the lead's model that an agent is gone (facts: claude-code
// §5.6). It is never posted.
type Terminated struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Assignment tells an agent that a task is its own now (facts: claude-code
// §3.5).
type Assignment struct {
	Type        string `json:"type"`
	TaskID      string `json:"taskId"`
	Subject     string `json:"subject"`
	Description string `json:"description"`
	AssignedBy  string `json:"assignedBy"`
	Check       string `json:"check,omitempty"` // ours: the command that proves the task
	Timestamp   string `json:"timestamp"`
}

// PlanRequest asks the lead to approve a plan (facts: claude-code §6).
type PlanRequest struct {
	Type         string `json:"type"`
	From         string `json:"from"`
	Timestamp    string `json:"timestamp"`
	PlanFilePath string `json:"planFilePath"`
	PlanContent  string `json:"planContent"`
	RequestID    string `json:"requestId"`
}

// PlanResponse answers it: with the permission mode to work in, or with what
// to change.
type PlanResponse struct {
	Type           string `json:"type"`
	RequestID      string `json:"requestId"`
	Approved       bool   `json:"approved"`
	Feedback       string `json:"feedback,omitempty"`
	Timestamp      string `json:"timestamp"`
	PermissionMode string `json:"permissionMode,omitempty"`
}

// PermissionRequest asks the lead for somebody's leave to make a call (facts:
// claude-code §7).
type PermissionRequest struct {
	Type        string           `json:"type"`
	RequestID   string           `json:"request_id"`
	AgentID     string           `json:"agent_id"` // the asker's name
	ToolName    string           `json:"tool_name"`
	ToolUseID   string           `json:"tool_use_id"`
	Description string           `json:"description"`
	Input       json.RawMessage  `json:"input"`
	Suggestions []ask.Suggestion `json:"permission_suggestions"`
}

// PermissionResponse answers it. A success without a response allows the call as
// it was asked for.
type PermissionResponse struct {
	Type      string      `json:"type"`
	RequestID string      `json:"request_id"`
	Subtype   string      `json:"subtype"`             // success or error
	Response  *Permission `json:"response,omitempty"`  // of a success
	Error     string      `json:"error,omitempty"`     // why not
	Interrupt bool        `json:"interrupt,omitempty"` // ours: a denial ends the turn too
}

// Permission is what was permitted.
type Permission struct {
	UpdatedInput json.RawMessage  `json:"updated_input,omitempty"` // to call the tool with
	Updates      []ask.Suggestion `json:"permission_updates"`
	Note         string           `json:"note,omitempty"` // ours: for the model
}

// The values of PermissionResponse.Subtype.
const (
	permissionSuccess = "success"
	permissionError   = "error"
)

// PermissionSettled tells a lead of ours that a request needs no answer any more.
type PermissionSettled struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
}

// OtherControl is a message of the protocol that this package only recognises.
type OtherControl struct{ Type string }

func (IdleNotification) kind() string   { return TypeIdle }
func (ShutdownRequest) kind() string    { return TypeShutdownRequest }
func (ShutdownApproved) kind() string   { return TypeShutdownApproved }
func (ShutdownRejected) kind() string   { return TypeShutdownRejected }
func (Terminated) kind() string         { return TypeTerminated }
func (Assignment) kind() string         { return TypeAssignment }
func (PlanRequest) kind() string        { return TypePlanRequest }
func (PlanResponse) kind() string       { return TypePlanResponse }
func (c OtherControl) kind() string     { return c.Type }
func (PermissionRequest) kind() string  { return TypePermissionRequest }
func (PermissionResponse) kind() string { return TypePermissionResponse }
func (PermissionSettled) kind() string  { return TypePermissionSettled }

// Parse reads the text of a message as protocol. It says nothing about who
// wrote the text: only a message that the runtime posted as protocol may be
// acted on.
func Parse(text string) (Control, bool) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"))
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(text), &head) != nil {
		return nil, false
	}
	switch head.Type {
	case TypeIdle:
		return decode[IdleNotification](text)
	case TypeShutdownRequest:
		return decode[ShutdownRequest](text)
	case TypeShutdownApproved:
		return decode[ShutdownApproved](text)
	case TypeShutdownRejected:
		return decode[ShutdownRejected](text)
	case TypeTerminated:
		return decode[Terminated](text)
	case TypeAssignment:
		return decode[Assignment](text)
	case TypePlanRequest:
		return decode[PlanRequest](text)
	case TypePlanResponse:
		return decode[PlanResponse](text)
	case TypePermissionRequest:
		return decode[PermissionRequest](text)
	case TypePermissionResponse:
		return decode[PermissionResponse](text)
	case TypePermissionSettled:
		return decode[PermissionSettled](text)
	}
	if c, ok := parseOurs(head.Type, text); ok {
		return c, true
	}
	_, known := otherTypes[head.Type]
	return OtherControl{head.Type}, known
}

// decode reads text as C. Fields of another shape make it an [OtherControl]:
// still protocol, but nothing to act on.
func decode[C Control](text string) (Control, bool) {
	var c C
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return OtherControl{c.kind()}, true
	}
	return c, true
}

// Encode is the text of a control message.
func Encode(c Control) string { return string(jsonx.MustMarshal(c)) }

// Stamp is a moment as shared files write it.
func Stamp(at time.Time) string { return at.UTC().Format(transcript.TimeFormat) }

// RequestID names a request as observed: what, when, and the agent that it
// goes to or, for a plan, comes from (facts: claude-code §5.3, §6).
func RequestID(what string, at time.Time, agent string) string {
	return what + "-" + strconv.FormatInt(at.UnixMilli(), 10) + "@" + agent
}

package team

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

// The values of "type" in the protocol.
const (
	typeIdle             = "idle_notification"
	typeShutdownRequest  = "shutdown_request"
	typeShutdownApproved = "shutdown_approved"
	typeShutdownRejected = "shutdown_rejected"
	typeTerminated       = "teammate_terminated"
	typeAssignment       = "task_assignment"
	typePlanRequest      = "plan_approval_request"
	typePlanResponse     = "plan_approval_response"

	typePermissionRequest  = "permission_request"
	typePermissionResponse = "permission_response"
	typePermissionSettled  = "permission_settled" // ours: no other program knows it
)

// otherTypes belong to the protocol and are not acted on, either because this
// package does not know them or because their fields are of another shape: a
// model must not send them either (facts: claude-code §5.6, §7). The value says
// whether the runtime consumes such a message without showing it (§4.5).
var otherTypes = map[string]bool{
	typePermissionRequest:         false,
	typePermissionResponse:        true,
	typePermissionSettled:         true,
	"mode_set_request":            true,
	"team_permission_update":      true,
	"sandbox_permission_request":  false,
	"sandbox_permission_response": true,
}

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

func (IdleNotification) kind() string { return typeIdle }
func (ShutdownRequest) kind() string  { return typeShutdownRequest }
func (ShutdownApproved) kind() string { return typeShutdownApproved }
func (ShutdownRejected) kind() string { return typeShutdownRejected }
func (Terminated) kind() string       { return typeTerminated }
func (Assignment) kind() string       { return typeAssignment }
func (PlanRequest) kind() string      { return typePlanRequest }
func (PlanResponse) kind() string     { return typePlanResponse }
func (c OtherControl) kind() string   { return c.Type }

func (PermissionRequest) kind() string  { return typePermissionRequest }
func (PermissionResponse) kind() string { return typePermissionResponse }
func (PermissionSettled) kind() string  { return typePermissionSettled }

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
	case typeIdle:
		return decode[IdleNotification](text)
	case typeShutdownRequest:
		return decode[ShutdownRequest](text)
	case typeShutdownApproved:
		return decode[ShutdownApproved](text)
	case typeShutdownRejected:
		return decode[ShutdownRejected](text)
	case typeTerminated:
		return decode[Terminated](text)
	case typeAssignment:
		return decode[Assignment](text)
	case typePlanRequest:
		return decode[PlanRequest](text)
	case typePlanResponse:
		return decode[PlanResponse](text)
	case typePermissionRequest:
		return decode[PermissionRequest](text)
	case typePermissionResponse:
		return decode[PermissionResponse](text)
	case typePermissionSettled:
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

// encode is the text of a control message.
func encode(c Control) string { return string(jsonx.MustMarshal(c)) }

// stamp is a moment as shared files write it.
func stamp(at time.Time) string { return at.UTC().Format(transcript.TimeFormat) }

// requestID names a request as observed: what, when, and the agent that it
// goes to or, for a plan, comes from (facts: claude-code §5.3, §6).
func requestID(what string, at time.Time, agent string) string {
	return what + "-" + strconv.FormatInt(at.UnixMilli(), 10) + "@" + agent
}

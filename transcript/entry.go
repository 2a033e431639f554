package transcript

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// Kind is the "type" of a transcript line.
type Kind string

// The kinds that make up the conversation. Lines of any other kind (progress,
// system, queue-operation, …) are skipped when reading.
const (
	KindUser      Kind = "user"
	KindAssistant Kind = "assistant"
)

// TimeFormat is how timestamps are written in every shared file: UTC,
// milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Entry is one line of a transcript (facts: claude-code §11, golden t1). An
// assistant message is kept as one entry per content block, the blocks sharing
// Message.ID.
type Entry struct {
	UUID       string
	ParentUUID string // the entry before it; "" for the first
	Kind       Kind
	Sidechain  bool // a sub-agent's or in-process teammate's transcript
	TeamName   string
	AgentName  string
	AgentID    string // "" for a main session
	SessionID  string
	Cwd        string
	Version    string
	GitBranch  string
	At         time.Time
	RequestID  string // assistant: the provider's id of the request
	Message    Message

	ToolUseResult   json.RawMessage // structured twin of a tool result
	SourceAssistant string          // uuid of the assistant entry whose call this result answers

	// Receipts are the identities of the mail, notices and claims that this
	// entry shows to the model. They are ours alone: a store keeps them beside
	// the transcript, never in it, and returns them when reading.
	Receipts []string
}

// wirePrefix is what every line starts with; the two kinds go on differently.
type wirePrefix struct {
	ParentUUID  *string `json:"parentUuid"`
	IsSidechain bool    `json:"isSidechain"`
	TeamName    string  `json:"teamName,omitempty"`
	AgentName   string  `json:"agentName,omitempty"`
	UserType    string  `json:"userType"`
	Cwd         string  `json:"cwd"`
	SessionID   string  `json:"sessionId"`
	Version     string  `json:"version"`
	GitBranch   string  `json:"gitBranch"`
	AgentID     string  `json:"agentId,omitempty"`
}

type wireUser struct {
	wirePrefix
	Type                    Kind            `json:"type"`
	Message                 wireMessage     `json:"message"`
	UUID                    string          `json:"uuid"`
	Timestamp               string          `json:"timestamp"`
	ToolUseResult           json.RawMessage `json:"toolUseResult,omitempty"`
	SourceToolAssistantUUID string          `json:"sourceToolAssistantUUID,omitempty"`
}

type wireAssistant struct {
	wirePrefix
	Message   wireReply `json:"message"`
	RequestID string    `json:"requestId,omitempty"`
	Type      Kind      `json:"type"`
	UUID      string    `json:"uuid"`
	Timestamp string    `json:"timestamp"`
}

type wireMessage struct {
	Role    Role            `json:"role"`
	Content json.RawMessage `json:"content"`
}

type wireReply struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         Role    `json:"role"`
	Model        string  `json:"model"`
	Content      []Block `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        Usage   `json:"usage"`
}

// MarshalJSON writes the entry as one transcript line without its newline.
func (e Entry) MarshalJSON() ([]byte, error) {
	prefix := wirePrefix{
		IsSidechain: e.Sidechain, TeamName: e.TeamName, AgentName: e.AgentName, UserType: "external",
		Cwd: e.Cwd, SessionID: e.SessionID, Version: e.Version, GitBranch: e.GitBranch, AgentID: e.AgentID,
	}
	if e.ParentUUID != "" {
		prefix.ParentUUID = &e.ParentUUID
	}
	at := e.At.UTC().Format(TimeFormat)
	if e.Kind == KindAssistant {
		return jsonx.Marshal(wireAssistant{prefix, replyOf(e.Message), e.RequestID, e.Kind, e.UUID, at})
	}
	content, err := userContent(e.Message.Content)
	if err != nil {
		return nil, err
	}
	return jsonx.Marshal(wireUser{
		prefix, e.Kind, wireMessage{User, content}, e.UUID, at, e.ToolUseResult, e.SourceAssistant,
	})
}

func replyOf(m Message) wireReply {
	r := wireReply{ID: m.ID, Type: "message", Role: Assistant, Model: m.Model, Content: m.Content, Usage: m.Usage}
	if m.StopReason != "" {
		r.StopReason = &m.StopReason
	}
	return r
}

// userContent spells a lone text block as a plain string, as Claude Code does.
func userContent(blocks []Block) (json.RawMessage, error) {
	if len(blocks) == 1 && blocks[0].Type == Text {
		return jsonx.Marshal(blocks[0].Text)
	}
	return jsonx.Marshal(blocks)
}

// UnmarshalJSON reads a transcript line of any kind; for kinds other than user
// and assistant only the common fields are set.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var w struct {
		ParentUUID              *string         `json:"parentUuid"`
		IsSidechain             bool            `json:"isSidechain"`
		TeamName                string          `json:"teamName"`
		AgentName               string          `json:"agentName"`
		Cwd                     string          `json:"cwd"`
		SessionID               string          `json:"sessionId"`
		Version                 string          `json:"version"`
		GitBranch               string          `json:"gitBranch"`
		AgentID                 string          `json:"agentId"`
		Type                    Kind            `json:"type"`
		Message                 json.RawMessage `json:"message"`
		RequestID               string          `json:"requestId"`
		UUID                    string          `json:"uuid"`
		Timestamp               time.Time       `json:"timestamp"`
		ToolUseResult           json.RawMessage `json:"toolUseResult"`
		SourceToolAssistantUUID string          `json:"sourceToolAssistantUUID"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*e = Entry{
		UUID: w.UUID, Kind: w.Type, Sidechain: w.IsSidechain, TeamName: w.TeamName, AgentName: w.AgentName,
		AgentID: w.AgentID, SessionID: w.SessionID, Cwd: w.Cwd, Version: w.Version, GitBranch: w.GitBranch,
		At: w.Timestamp, RequestID: w.RequestID, ToolUseResult: w.ToolUseResult, SourceAssistant: w.SourceToolAssistantUUID,
	}
	if w.ParentUUID != nil {
		e.ParentUUID = *w.ParentUUID
	}
	if w.Type != KindUser && w.Type != KindAssistant {
		return nil
	}
	return e.unmarshalMessage(w.Message)
}

func (e *Entry) unmarshalMessage(data json.RawMessage) error {
	var w struct {
		ID         string          `json:"id"`
		Role       Role            `json:"role"`
		Model      string          `json:"model"`
		Content    json.RawMessage `json:"content"`
		StopReason *string         `json:"stop_reason"`
		Usage      Usage           `json:"usage"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("message of entry %s: %w", e.UUID, err)
	}
	blocks, err := ContentBlocks(w.Content)
	if err != nil {
		return fmt.Errorf("content of entry %s: %w", e.UUID, err)
	}
	e.Message = Message{ID: w.ID, Role: w.Role, Model: w.Model, Content: blocks, Usage: w.Usage}
	if w.StopReason != nil {
		e.Message.StopReason = *w.StopReason
	}
	return nil
}

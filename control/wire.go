package control

import (
	"encoding/json"

	"github.com/cadre-dev/cadre/transcript"
)

// Types and subtypes of the lines.
const (
	typeSystem    = "system"
	typeAssistant = "assistant"
	typeUser      = "user"
	typeResult    = "result"

	subtypeInit     = "init"
	subtypeAPIRetry = "api_retry"
	subtypeDenied   = "permission_denied"
)

// Subtypes of a result (facts: sdk-contract §2.3).
const (
	Success              = "success"
	ErrorMaxTurns        = "error_max_turns"
	ErrorDuringExecution = "error_during_execution"
)

// Why a run ended, in the field terminal_reason of a result (facts:
// sdk-contract §2.3). OpenWork is ours: the team was still working when the
// time to wait for it was up.
const (
	Completed        = "completed"
	MaxTurns         = "max_turns"
	APIError         = "api_error"
	ModelError       = "model_error"
	AbortedStreaming = "aborted_streaming"
	AbortedTools     = "aborted_tools"
	OpenWork         = "open_work"
)

// syntheticModel is the model of an assistant message that no model wrote.
const syntheticModel = "<synthetic>"

// wireInit is the first line of every turn. Lists are never null.
type wireInit struct {
	Type           string      `json:"type"`
	Subtype        string      `json:"subtype"`
	Cwd            string      `json:"cwd"`
	SessionID      string      `json:"session_id"`
	Tools          []string    `json:"tools"`
	MCPServers     []mcpServer `json:"mcp_servers"`
	Model          string      `json:"model"`
	PermissionMode string      `json:"permissionMode"`
	SlashCommands  []string    `json:"slash_commands"`
	APIKeySource   string      `json:"apiKeySource"`
	Version        string      `json:"claude_code_version"`
	OutputStyle    string      `json:"output_style"`
	Agents         []string    `json:"agents"`
	Skills         []string    `json:"skills"`
	Plugins        []plugin    `json:"plugins"`
	UUID           string      `json:"uuid"`
	FastModeState  string      `json:"fast_mode_state"`
}

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type plugin struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// wireAssistant is one content block of a reply.
type wireAssistant struct {
	Type            string    `json:"type"`
	Message         wireReply `json:"message"`
	ParentToolUseID *string   `json:"parent_tool_use_id"`
	SessionID       string    `json:"session_id"`
	UUID            string    `json:"uuid"`

	// Set in a message that reports an error of the model's API.
	Error             string `json:"error,omitempty"`
	IsAPIErrorMessage bool   `json:"is_api_error_message,omitempty"`
	APIErrorStatus    int    `json:"api_error_status,omitempty"`
}

type wireReply struct {
	ID                string             `json:"id"`
	Type              string             `json:"type"`
	Role              transcript.Role    `json:"role"`
	Model             string             `json:"model"`
	Content           []transcript.Block `json:"content"`
	StopReason        *string            `json:"stop_reason"`
	StopSequence      *string            `json:"stop_sequence"`
	Usage             replyUsage         `json:"usage"`
	ContextManagement *struct{}          `json:"context_management"`
}

type replyUsage struct {
	transcript.Usage
	ServiceTier string `json:"service_tier"`
}

// wireUser is a tool's result, a sub-agent's prompt, or the mark of an
// interruption.
type wireUser struct {
	Type            string          `json:"type"`
	Message         wireUserMessage `json:"message"`
	ParentToolUseID *string         `json:"parent_tool_use_id"`
	SessionID       string          `json:"session_id"`
	UUID            string          `json:"uuid"`
	ToolUseResult   json.RawMessage `json:"tool_use_result,omitempty"`
}

type wireUserMessage struct {
	Role    transcript.Role    `json:"role"`
	Content []transcript.Block `json:"content"`
}

// wireRetry reports that a request to the model is sent again.
type wireRetry struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype"`
	Attempt      int             `json:"attempt"`
	MaxRetries   int             `json:"max_retries"`
	RetryDelayMS int64           `json:"retry_delay_ms"`
	ErrorStatus  *int            `json:"error_status"`
	Error        string          `json:"error"`
	NoResponse   *wireNoResponse `json:"no_response,omitempty"`
	SessionID    string          `json:"session_id"`
	UUID         string          `json:"uuid"`
}

// wireNoResponse is the error of a wireRetry when the server was silent for too long.
type wireNoResponse struct {
	WaitedMS    int64 `json:"waited_ms"`
	RetryWaitMS int64 `json:"retry_wait_ms"`
}

// wireDenied reports that a call was denied without asking anybody.
type wireDenied struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	ToolName  string `json:"tool_name"`
	ToolUseID string `json:"tool_use_id"`
	Message   string `json:"message"`
	AgentID   string `json:"agent_id,omitempty"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
}

// Result is how a run ended: the last line of stream-json, and all of the
// output format json (facts: sdk-contract §2.3). Result is set when Subtype is
// [Success], Errors otherwise.
type Result struct {
	Type              string                `json:"type"`
	Subtype           string                `json:"subtype"`
	IsError           bool                  `json:"is_error"`
	DurationMS        int64                 `json:"duration_ms"`
	DurationAPIMS     int64                 `json:"duration_api_ms"`
	NumTurns          int                   `json:"num_turns"`
	Result            *string               `json:"result,omitempty"`
	StopReason        *string               `json:"stop_reason"`
	SessionID         string                `json:"session_id"`
	TotalCostUSD      float64               `json:"total_cost_usd"`
	Usage             Usage                 `json:"usage"`      // of the main session
	ModelUsage        map[string]ModelUsage `json:"modelUsage"` // of all agents
	PermissionDenials []Denial              `json:"permission_denials"`
	UUID              string                `json:"uuid"`
	TerminalReason    string                `json:"terminal_reason,omitempty"`
	APIErrorStatus    *int                  `json:"api_error_status,omitempty"`
	Errors            []string              `json:"errors,omitzero"`
	OpenTasks         []OpenTask            `json:"open_tasks,omitempty"`
}

// OpenTask is a task that is not completed at the end of a run. SDKs do not know it.
type OpenTask struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	Status  string `json:"status"`
	Owner   string `json:"owner,omitempty"`
}

// Usage counts the tokens of the main session.
type Usage struct {
	transcript.Usage
	ServerToolUse ServerToolUse `json:"server_tool_use"`
	ServiceTier   string        `json:"service_tier"`
	CacheCreation CacheCreation `json:"cache_creation"`
}

// ServerToolUse counts tools that ran at the API. We use none.
type ServerToolUse struct {
	WebSearchRequests int `json:"web_search_requests"`
	WebFetchRequests  int `json:"web_fetch_requests"`
}

// CacheCreation splits the tokens written to the cache by how long they live.
type CacheCreation struct {
	Ephemeral1h int `json:"ephemeral_1h_input_tokens"`
	Ephemeral5m int `json:"ephemeral_5m_input_tokens"`
}

// ModelUsage is what one model cost, over all agents. CostUSD is 0 when the
// price is unknown, and CostBasis says so.
type ModelUsage struct {
	InputTokens              int     `json:"inputTokens"`
	OutputTokens             int     `json:"outputTokens"`
	CacheReadInputTokens     int     `json:"cacheReadInputTokens"`
	CacheCreationInputTokens int     `json:"cacheCreationInputTokens"`
	WebSearchRequests        int     `json:"webSearchRequests"`
	CostUSD                  float64 `json:"costUSD"`
	ContextWindow            int     `json:"contextWindow"`
	MaxOutputTokens          int     `json:"maxOutputTokens"`
	CostBasis                string  `json:"costBasis,omitempty"`
}

// Denial is a call that was denied.
type Denial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input"`
}

package control

import (
	"fmt"
	"io"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/transcript"
)

// Identity is what the lines say of the session they are about.
type Identity struct {
	SessionID      string
	Cwd            string
	Model          string
	PermissionMode string
	APIKeySource   string
	Version        string // of the protocol, as claude_code_version
	Tools          []string
	Agents         []string
}

// Writer turns the events of a session tree into lines. The traffic of
// teammates is left out; that of sub-agents carries the call that started them
// (facts: claude-code §12). One goroutine at a time may use it.
type Writer struct {
	out io.Writer
	id  Identity
	// calls are the tool_use ids on the wire: a sub-agent's traffic follows
	// only when its own call is there.
	calls map[string]bool
	mates map[string]bool // agent ids of teammates
}

// NewWriter makes a writer of lines to out. It writes nothing yet.
func NewWriter(out io.Writer, id Identity) *Writer {
	return &Writer{out: out, id: id, calls: make(map[string]bool), mates: make(map[string]bool)}
}

// Event writes the lines for an event, often none. It blocks while out does, and
// returns its errors.
func (w *Writer) Event(ev event.Event) error {
	if started, ok := ev.Body.(event.AgentStarted); ok && started.Teammate {
		w.mates[ev.Agent.ID] = true
	}
	if !w.shows(ev.Agent) {
		return nil
	}
	switch body := ev.Body.(type) {
	case event.TurnStarted:
		if ev.Agent.ID == "" {
			return w.line(w.init())
		}
	case event.Stored:
		return w.stored(ev.Agent, body.Entry)
	case event.Retrying:
		return w.line(w.retry(body))
	case event.ToolDenied:
		return w.line(wireDenied{
			Type: typeSystem, Subtype: subtypeDenied, ToolName: body.Tool, ToolUseID: body.Call,
			Message: body.Reason, AgentID: ev.Agent.ID, SessionID: w.id.SessionID, UUID: ids.UUID(),
		})
	case event.TurnEnded:
		if out := body.Outcome; ev.Agent.ID == "" && out.Reason == event.Failed && out.Class != "" {
			return w.line(w.apiError(out))
		}
	}
	return nil
}

// Result writes the line that ends a run.
func (w *Writer) Result(r Result) error { return w.line(r) }

// shows reports whether an agent's traffic belongs on the wire.
func (w *Writer) shows(a event.Agent) bool {
	return a.ID == "" || a.Call != "" && w.calls[a.Call] && !w.mates[a.ID]
}

func (w *Writer) line(v any) error {
	data, err := jsonx.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a stream-json line: %w", err)
	}
	if _, err := w.out.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write a stream-json line: %w", err)
	}
	return nil
}

func (w *Writer) init() wireInit {
	return wireInit{
		Type: typeSystem, Subtype: subtypeInit, Cwd: w.id.Cwd, SessionID: w.id.SessionID,
		Tools: toolNames(w.id.Tools), MCPServers: []mcpServer{}, Model: w.id.Model,
		PermissionMode: w.id.PermissionMode, SlashCommands: []string{}, APIKeySource: w.id.APIKeySource,
		Version: w.id.Version, OutputStyle: "default", Agents: append([]string{}, w.id.Agents...),
		Skills: []string{}, Plugins: []plugin{}, UUID: ids.UUID(), FastModeState: "off",
	}
}

// toolNames are the names by which clients know the tools: the one that the model sees
// as Agent is listed as Task (facts: sdk-contract §2.4).
func toolNames(tools []string) []string {
	names := make([]string, len(tools))
	for i, name := range tools {
		if name == "Agent" {
			name = "Task"
		}
		names[i] = name
	}
	return names
}

func (w *Writer) stored(a event.Agent, e transcript.Entry) error {
	switch e.Kind {
	case transcript.KindAssistant:
		return w.assistant(a, e)
	case transcript.KindUser:
		return w.user(a, e)
	}
	return nil
}

// assistant writes a block of a reply. Of a sub-agent's replies only the calls
// are written (golden t7).
func (w *Writer) assistant(a event.Agent, e transcript.Entry) error {
	uses := e.Message.ToolUses()
	if a.ID != "" && len(uses) == 0 {
		return nil
	}
	for _, use := range uses {
		w.calls[use.ID] = true
	}
	return w.line(wireAssistant{
		Type: typeAssistant, ParentToolUseID: parentOf(a), SessionID: w.id.SessionID, UUID: e.UUID,
		Message: wireReply{
			ID: e.Message.ID, Type: "message", Role: transcript.Assistant, Model: e.Message.Model,
			Content: e.Message.Content, Usage: replyUsage{e.Message.Usage, "standard"},
		},
	})
}

// user writes what is new to a client in a user entry: results,
// interruptions, the prompt of a sub-agent. Its own prompts and the mail of the
// main session are not repeated (golden t1, t11).
func (w *Writer) user(a event.Agent, e transcript.Entry) error {
	if a.ID == "" && !hasResult(e.Message) && e.Message.Interruption() == "" {
		return nil
	}
	return w.line(wireUser{
		Type: typeUser, ParentToolUseID: parentOf(a), SessionID: w.id.SessionID, UUID: e.UUID,
		Message:       wireUserMessage{transcript.User, e.Message.Content},
		ToolUseResult: e.ToolUseResult,
	})
}

func parentOf(a event.Agent) *string {
	if a.Call == "" {
		return nil
	}
	return &a.Call
}

func hasResult(m transcript.Message) bool {
	for _, b := range m.Content {
		if b.Type == transcript.ToolResult {
			return true
		}
	}
	return false
}

func (w *Writer) retry(r event.Retrying) wireRetry {
	line := wireRetry{
		Type: typeSystem, Subtype: subtypeAPIRetry, Attempt: r.Attempt - 1, MaxRetries: max(r.Max, r.Attempt) - 1,
		RetryDelayMS: r.Wait.Milliseconds(), Error: r.Reason, SessionID: w.id.SessionID, UUID: ids.UUID(),
	}
	if r.Status != 0 {
		line.ErrorStatus = &r.Status
	}
	if r.Silent > 0 {
		line.NoResponse = &wireNoResponse{WaitedMS: r.Silent.Milliseconds(), RetryWaitMS: r.Wait.Milliseconds()}
	}
	return line
}

// apiError is the assistant message that reports an error of the model's API
// (facts: sdk-contract §2.3). It is in no transcript.
func (w *Writer) apiError(out event.Outcome) wireAssistant {
	reason := "stop_sequence"
	return wireAssistant{
		Type: typeAssistant, SessionID: w.id.SessionID, UUID: ids.UUID(),
		Message: wireReply{
			ID: ids.UUID(), Type: "message", Role: transcript.Assistant, Model: syntheticModel,
			Content:    []transcript.Block{transcript.TextBlock(apiErrorText(out))},
			StopReason: &reason, Usage: replyUsage{ServiceTier: "standard"},
		},
		Error: errorName(out.Class), IsAPIErrorMessage: true, APIErrorStatus: out.Status,
	}
}

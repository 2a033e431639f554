// Package tool is the contract between the loop and a tool: how it is described to a
// model, what a call touches, what it returns, and who calls.
package tool

import (
	"context"
	"encoding/json"

	"github.com/cadre-dev/cadre/transcript"
)

// Tool is something a model can call. A Tool belongs to one session; its
// methods may be called by several goroutines when its Spec says Parallel.
type Tool interface {
	Spec() Spec
	// Access says what a call would touch, for the permission decision, and itself only
	// reads what it needs for that. It is called with input that
	// passed the schema.
	Access(ctx context.Context, call Call) Access
	// Run makes the call. It blocks until it is done or ctx ends, and then
	// returns what was done so far. A failure is a result for the model that
	// says what to do next; the reason why ctx ended is context.Cause(ctx).
	Run(ctx context.Context, call Call) Result
}

// Spec describes a tool. It is the same value for every session. What kind of tool it
// is stands here and nowhere else: code that offers tools, permits calls or watches
// them decides by these traits, never by names.
type Spec struct {
	Name        string
	Aliases     []string // other names a model may use for it
	Description string   // for the model
	Schema      *Schema

	Parallel bool // may run beside other Parallel calls of the same reply
	ReadOnly bool // changes nothing, neither files nor tasks nor mail
	// Reads: shows the content of files and the like. An agent that only explores has
	// these tools and no others.
	Reads bool
	// Writes: changes files or runs commands. Its use counts as progress of the agent,
	// unlike talking to others.
	Writes bool
	// Outward: reaches beyond this machine, or into another program, in a way that
	// [Access] does not show.
	Outward bool
	// Delegates: assigns work to others, or helps to supervise it. A lead that only
	// delegates has these tools and no others.
	Delegates bool
}

// Call is one call of a tool.
type Call struct {
	ID    string // the tool_use id
	Name  string // as the model wrote it
	Input json.RawMessage
}

// Result is the outcome of a call.
type Result struct {
	Text       string             // for the model
	Blocks     []transcript.Block // for the model instead of Text, when content must be a list of blocks
	IsError    bool
	Structured json.RawMessage // the result for programs (toolUseResult); nil when there is none
	EndTurn    bool            // the turn ends after this round: the model need not answer
}

// Text makes a plain result.
func Text(text string) Result { return Result{Text: text} }

// Error makes a failed result with bare text.
func Error(text string) Result { return Result{Text: text, IsError: true} }

// UseError makes a failed result in the wrapper that says the call itself was
// wrong (facts: claude-code §1).
func UseError(text string) Result {
	return Error("<tool_use_error>" + text + "</tool_use_error>")
}

// Block is the result as the content block that answers call.
func (r Result) Block(call Call) transcript.Block {
	return transcript.Block{
		Type: transcript.ToolResult, ToolUseID: call.ID, Text: r.Text, Content: r.Blocks, IsError: r.IsError,
	}
}

// Access is what a call touches. Paths are absolute and resolved (symlink.Follow).
// The zero value touches nothing outside the program.
type Access struct {
	Read []string // files or folders
	// Named are the paths of Read and Write as the call names them, absolute, before
	// symbolic links are followed: a rule that forbids one of the names counts too.
	Named   []string
	Write   []string
	Command string // a shell command line
	Dir     string // the folder that Command starts in, resolved
	Ask     bool   // the call is itself a question to the person (AskUserQuestion)
	Plan    bool   // the question is whether a plan is good (ExitPlanMode); Ask is set too
	// As names the tool by whose rules the call is judged, when it does what
	// another tool does: a task's check is a command. "" is the tool itself.
	As string
	// Detail is what a person is shown, and approves, instead of the input, when the
	// input alone does not say what would happen: it holds the plan, or the command
	// that is a task's check. With As it is an input of that tool. An answer cannot
	// change it. nil: the input says everything.
	Detail json.RawMessage
}

// Caller is the identity of the session that makes calls. It travels in the
// context of every turn.
type Caller struct {
	SessionID string // the main session's id, also for sub-agents
	AgentID   string // "" for the main session
	AgentName string // name in the team, or the agent type; "" for a plain main session
	AgentType string
	Team      string // the team it was spawned into; a lead's team can change, ask the team room
	Depth     int    // 0 for the main session and for teammates, +1 per sub-agent
	Cwd       string // the working folder the session was started in
	Model     string
}

// Key tells the calling session from all others of the runtime: its agent id,
// or for a main session the session id. It owns the jobs that the caller starts.
func (c Caller) Key() string {
	if c.AgentID != "" {
		return c.AgentID
	}
	return c.SessionID
}

type (
	callerKey  struct{}
	arrivedKey struct{}
)

// WithArrived returns a context that carries the answer of [Arrived].
func WithArrived(ctx context.Context, arrived func() <-chan struct{}) context.Context {
	return context.WithValue(ctx, arrivedKey{}, arrived)
}

// Arrived returns a channel that is closed as soon as input waits for the calling
// session: a tool that only waits returns then, so that the model sees the input.
// Where input is not watched the channel is nil.
func Arrived(ctx context.Context) <-chan struct{} {
	if arrived, ok := ctx.Value(arrivedKey{}).(func() <-chan struct{}); ok {
		return arrived()
	}
	return nil
}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller that ctx carries, or the zero Caller.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

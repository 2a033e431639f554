// Package provider is the contract between the loop and a model: a request, the
// events of its answer, errors by class, the retry policy that all providers
// share, and the table of models with their limits and prices.
package provider

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/cadre-dev/cadre/transcript"
)

// Model answers requests. Implementations are safe for use by many goroutines.
type Model interface {
	// Stream sends req and yields the events of the answer as they arrive. The
	// last event of a sequence without an error is a [Reply]; an error ends the
	// sequence and is a [*Error], or the cause of ctx. Retries happen inside
	// and are announced by [Retrying]; once anything of the answer was yielded
	// there is no retry: what is whole so far comes as a Reply with Broken set.
	// When the consumer breaks off or ctx ends, the request is closed before
	// Stream returns.
	Stream(ctx context.Context, req Request) iter.Seq2[Event, error]
}

// Request is one call of a model. Providers must not change it.
type Request struct {
	Model     string               // as the user named it; providers resolve aliases by [Lookup]
	System    []string             // blocks of the system prompt; the cache mark goes after the last
	Tools     []Tool               // byte-identical for every agent of a team; the cache mark goes after the last
	Messages  []transcript.Message // passes transcript.Check; the newest carry cache marks. What one holds is never changed in place
	MaxTokens int                  // 0: the model's own limit
	Thinking  int                  // budget in tokens; 0: none

	// Outage is that of the Reply before this request, when it broke off: the
	// model waits before it sends, as it would before a retry.
	Outage Outage

	// Agent says who asks. It is never sent; scripts and logs use it.
	Agent Agent
}

// Tool is a tool as a model sees it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

// Agent identifies the asking agent.
type Agent struct {
	Name    string // "team-lead", a teammate's name, a sub-agent's type; "" for a plain main session
	Team    string
	Session string
	ID      string // agent id of a sub-agent or in-process teammate
}

// Event is one of [TextDelta], [ThinkingDelta], [ToolDelta], [Waiting],
// [Retrying] and [Reply].
type Event interface{ event() }

// TextDelta is a piece of the answer's text.
type TextDelta struct {
	Index int // of the content block
	Text  string
}

// ThinkingDelta is a piece of a thinking block.
type ThinkingDelta struct {
	Index int
	Text  string
}

// ToolDelta says that a tool call is being written; its input is not whole
// before the Reply.
type ToolDelta struct {
	Index int
	Name  string
	JSON  string // the new piece of the input
}

// Waiting says that nothing of an answer has come for a while, and that the
// request goes on. It comes again as the silence lasts.
type Waiting struct {
	Host    string // of the server
	Attempt int    // 1 for the first
	Silent  time.Duration
	Limit   time.Duration // of silence, at which the request is given up and sent again
}

// Retrying says that the request failed in a way that may pass, and is sent
// again after Wait.
type Retrying struct {
	Attempt int           // the one that will be made; 1 when the API asked another request to wait, which holds back this one
	Max     int           // about how many there will be if all fail; 0: no end
	Wait    time.Duration //
	Left    time.Duration // after which no more attempts begin; 0 when that is not known, or never
	Err     *Error
}

// Reply is the whole answer. Its blocks are complete: a tool call that was cut
// off is not among them, and one whose input is not a JSON object has the
// input {"invalid_json": "<what came>"}.
type Reply struct {
	Message   transcript.Message
	RequestID string
	// Broken is why the answer ended early; nil for a whole one. A broken
	// reply may have no content.
	Broken error
	// Outage belongs into the next request of this conversation. It is set when
	// Broken is a failure that may pass.
	Outage Outage
}

func (TextDelta) event()     {}
func (ThinkingDelta) event() {}
func (ToolDelta) event()     {}
func (Waiting) event()       {}
func (Retrying) event()      {}
func (Reply) event()         {}

// InvalidJSON is the input key under which a [Reply] carries tool input that
// was not a JSON object.
const InvalidJSON = "invalid_json"

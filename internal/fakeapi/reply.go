package fakeapi

import (
	"io"
	"net/http"
)

// Reply is what the server does with a request. The zero Reply is an answer
// without content.
type Reply struct {
	// An answer, streamed.
	ID     string // "" makes one
	Model  string // "" is "fake-model"
	Blocks []Block
	Stop   string // as the Messages API spells it; "" is tool_use or end_turn, as the blocks ask
	Usage  Usage
	Quirks Quirks

	// Events replace the answer: they are sent as they stand.
	Events [][]byte

	// Something else than a stream: with a Status, Body is sent as it stands.
	Status int
	Header http.Header // added in every case
	Body   io.Reader

	Faults Faults
}

// Usage counts tokens.
type Usage struct{ Input, CacheWrite, CacheRead, Output int }

// Faults are what goes wrong. Nothing here waits for time: gates are channels
// that the test closes, and a client that goes away opens them all.
type Faults struct {
	Gate       <-chan struct{}             // before the headers
	EventGate  func(k int) <-chan struct{} // before event k = 0, 1, …; nil channels do not wait
	Cut        bool                        // close the connection after CutAfter events, without a proper end
	CutAfter   int
	CutHeaders bool // close it before the headers
	Trickle    bool // send one byte at a time
	HoldOpen   bool // after the last event, keep the connection until the client goes away
}

// Quirks are liberties that servers take with Chat Completions.
type Quirks struct {
	NoUsage         bool // no chunk with the usage
	NoDone          bool // no [DONE]
	NoFinish        bool // no finish_reason
	NoIndex         bool // tool calls without an index
	ZeroIndex       bool // tool calls that are all number 0
	WholeArguments  bool // arguments in one chunk, not in pieces
	ObjectArguments bool // arguments as an object, not as a string
}

// Block is one content block of an answer.
type Block struct {
	Type      string // text, thinking, redacted_thinking, tool_use
	Text      string // text, thought, redacted data, or the input as it is written, valid or not
	Signature string // thinking
	ID, Name  string // tool_use
	Pieces    int    // in how many pieces Text is sent; 0 means 3
}

// Text is a block of text.
func Text(text string) Block { return Block{Type: "text", Text: text} }

// Thought is a block of thinking.
func Thought(text, signature string) Block {
	return Block{Type: "thinking", Text: text, Signature: signature}
}

// ToolUse is a tool call with its input as the model writes it.
func ToolUse(id, name, input string) Block {
	return Block{Type: "tool_use", ID: id, Name: name, Text: input}
}

// Answer is a reply of these blocks.
func Answer(blocks ...Block) Reply {
	return Reply{Blocks: blocks, Usage: Usage{Input: 10, Output: 20}}
}

// stop is why the answer ends.
func (r *Reply) stop() string {
	if r.Stop != "" {
		return r.Stop
	}
	for _, b := range r.Blocks {
		if b.Type == "tool_use" {
			return "tool_use"
		}
	}
	return "end_turn"
}

func (r *Reply) model() string {
	if r.Model != "" {
		return r.Model
	}
	return "fake-model"
}

// pieces cuts the text of a block, anywhere between two characters.
func (b Block) pieces() []string {
	n := b.Pieces
	if n == 0 {
		n = 3
	}
	runes := []rune(b.Text)
	var pieces []string
	for i := range n {
		if piece := string(runes[i*len(runes)/n : (i+1)*len(runes)/n]); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
	"github.com/cadre-dev/cadre/transcript"
)

// chunk is one event of the stream.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content          text       `json:"content"`
	Refusal          text       `json:"refusal"`
	ReasoningContent text       `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	Reasoning        text       `json:"reasoning"`         // OpenRouter, Ollama
	ToolCalls        []toolCall `json:"tool_calls"`
}

type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// text is a string, or whatever else a server puts in its place: null and
// objects are no text, of a list of parts the texts count.
type text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(data []byte) error {
	*t = ""
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(t))
	case '[':
		var parts []struct{ Text string }
		if json.Unmarshal(data, &parts) == nil {
			for _, p := range parts {
				*t += text(p.Text)
			}
		}
	}
	return nil
}

// usage counts prompt tokens with those that were cached among them.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	Details          struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) counted() transcript.Usage {
	d := u.Details
	return transcript.Usage{
		InputTokens:              max(0, u.PromptTokens-d.CachedTokens-d.CacheWriteTokens),
		CacheCreationInputTokens: d.CacheWriteTokens,
		CacheReadInputTokens:     d.CachedTokens,
		OutputTokens:             u.CompletionTokens,
	}
}

// stopReasons are those of the Messages API, which cadre speaks within.
var stopReasons = map[string]string{
	"stop":           "end_turn",
	"tool_calls":     "tool_use",
	"function_call":  "tool_use",
	"length":         "max_tokens",
	"content_filter": "refusal",
}

// answer collects one stream: the [wire.Answer] of this dialect.
type answer struct {
	message  transcript.Message
	blocks   []*block // in the order in which they began
	finished string   // finish_reason, as the server spelled it
	refused  bool
	done     bool // [DONE] was seen
}

// block is a piece of the answer that is being written. The API does not say
// where one ends; the beginning of the next one does.
type block struct {
	transcript.Block
	index   int    // position in the answer
	call    int    // of a tool call: the server's index; -1 when it gave none
	written []byte // text, thought, or arguments
}

func newAnswer(model string) *answer {
	return &answer{message: transcript.Message{Role: transcript.Assistant, Model: modelID(model)}}
}

// Done implements [wire.Answer].
func (a *answer) Done() bool { return a.done }

// Whole implements [wire.Answer]. Some servers send no [DONE], some no
// finish_reason.
func (a *answer) Whole() bool { return a.done || a.finished != "" }

// Add implements [wire.Answer].
func (a *answer) Add(ev wire.Event, emit func(provider.Event) bool) (wire.Silence, error) {
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 {
		return wire.NoProgress, nil
	}
	if string(data) == "[DONE]" {
		a.done = true
		return wire.NoProgress, nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return wire.NoProgress, &provider.Error{Class: provider.Malformed, Message: fmt.Sprintf("event of the answer: %s", err), Err: err}
	}
	if string(ev.Name) == "error" || len(c.Error) > 0 && string(c.Error) != "null" {
		return wire.NoProgress, wire.StreamError(data)
	}
	a.head(c)
	silence := wire.NoProgress
	for _, choice := range c.Choices {
		if choice.Index == 0 && a.choice(choice, emit) {
			silence = wire.Short
		}
	}
	return silence, nil
}

func (a *answer) head(c chunk) {
	if a.message.ID == "" {
		a.message.ID = c.ID
	}
	if c.Model != "" {
		a.message.Model = c.Model
	}
	if c.Usage != nil {
		a.message.Usage = c.Usage.counted()
	}
}

// choice processes a piece of the answer, and reports whether it carried any.
func (a *answer) choice(c choice, emit func(provider.Event) bool) bool {
	d := c.Delta
	thought := d.ReasoningContent
	if thought == "" {
		thought = d.Reasoning
	}
	a.write(transcript.Thinking, string(thought), emit)
	a.write(transcript.Text, string(d.Content), emit)
	if d.Refusal != "" {
		a.refused = true
		a.write(transcript.Text, string(d.Refusal), emit)
	}
	for _, call := range d.ToolCalls {
		a.call(call, emit)
	}
	if c.FinishReason != "" {
		a.finished = c.FinishReason
	}
	return thought != "" || d.Content != "" || d.Refusal != "" || len(d.ToolCalls) > 0 || c.FinishReason != ""
}

// begin starts a block at the end of the answer.
func (a *answer) begin(b transcript.Block, call int) *block {
	begun := &block{Block: b, index: len(a.blocks), call: call}
	a.blocks = append(a.blocks, begun)
	return begun
}

// write adds to the text or thought at the end of the answer, or begins one.
func (a *answer) write(kind transcript.BlockType, piece string, emit func(provider.Event) bool) {
	if piece == "" {
		return
	}
	var b *block
	if n := len(a.blocks); n > 0 && a.blocks[n-1].Type == kind {
		b = a.blocks[n-1]
	} else {
		b = a.begin(transcript.Block{Type: kind}, -1)
	}
	b.written = append(b.written, piece...)
	if kind == transcript.Text {
		emit(provider.TextDelta{Index: b.index, Text: piece})
	} else {
		emit(provider.ThinkingDelta{Index: b.index, Text: piece})
	}
}

// call adds to a tool call, or begins one.
func (a *answer) call(c toolCall, emit func(provider.Event) bool) {
	b := a.open(c)
	if b == nil {
		index := -1
		if c.Index != nil {
			index = *c.Index
		}
		b = a.begin(transcript.Block{Type: transcript.ToolUse, ID: c.ID, Name: c.Function.Name}, index)
		emit(provider.ToolDelta{Index: b.index, Name: b.Name})
	}
	if b.ID == "" {
		b.ID = c.ID
	}
	if b.Name == "" {
		b.Name = c.Function.Name
	}
	piece := arguments(c.Function.Arguments)
	if len(piece) == 0 {
		return
	}
	b.written = append(b.written, piece...)
	emit(provider.ToolDelta{Index: b.index, Name: b.Name, JSON: string(piece)})
}

// open finds the call that a piece continues. Servers that number all calls 0,
// or none, begin a new one with another id, or with a name after arguments.
func (a *answer) open(c toolCall) *block {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		b := a.blocks[i]
		if b.Type != transcript.ToolUse || c.Index != nil && b.call != *c.Index {
			continue
		}
		if c.ID != "" && b.ID != "" && c.ID != b.ID {
			if c.Index == nil {
				continue // a piece of an older call, perhaps
			}
			return nil
		}
		if c.Index == nil && c.ID == "" && c.Function.Name != "" && len(b.written) > 0 {
			return nil
		}
		return b
	}
	return nil
}

// arguments is a piece of a call's arguments: a string by the API's rules, an
// object from servers that send them whole.
func arguments(raw json.RawMessage) []byte {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []byte(s)
	}
	return raw
}

// Reply implements [wire.Answer].
func (a *answer) Reply() provider.Reply {
	m := a.message
	m.ID = wire.MessageID(m.ID, "chatcmpl-")
	whole := a.Whole()
	for i, b := range a.blocks {
		if kept, ok := b.finish(whole, i == len(a.blocks)-1); ok {
			m.Content = append(m.Content, kept)
		}
	}
	wire.UniqueIDs(m.Content, "call_")
	if whole {
		m.StopReason = a.stopReason(len(m.ToolUses()) > 0)
	}
	return provider.Reply{Message: m}
}

func (a *answer) stopReason(calls bool) string {
	reason, known := stopReasons[a.finished]
	switch {
	case a.refused:
		return "refusal"
	case !known && a.finished != "":
		return a.finished
	case calls && (!known || reason == "end_turn"): // not all servers tell the two apart
		return "tool_use"
	case !known:
		return "end_turn"
	}
	return reason
}

// finish makes the block of a reply; ok is false for one that is of no use. Of
// an answer that broke off, the last call may lack its end, and others
// count only when their arguments are whole.
func (b *block) finish(whole, last bool) (transcript.Block, bool) {
	kept := b.Block
	if b.Type != transcript.ToolUse {
		kept.Text = string(b.written)
		return kept, b.Type == transcript.Text || whole
	}
	kept.Input = wire.ToolInput(b.written)
	return kept, kept.Name != "" && (whole || !last && json.Valid(b.written))
}

package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
	"github.com/cadre-dev/cadre/transcript"
)

// streamEvent is an event of the stream, with the fields of all types: those
// we do not know are passed over, and missing ones are zero.
type streamEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *struct {
		ID    string   `json:"id"`
		Model string   `json:"model"`
		Usage *counted `json:"usage"`
	} `json:"message"`
	ContentBlock json.RawMessage `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage *counted `json:"usage"`
}

// counted is a usage object. Its numbers are totals so far; what is absent or
// null has not changed.
type counted struct {
	InputTokens              *int `json:"input_tokens"`
	CacheCreationInputTokens *int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     *int `json:"cache_read_input_tokens"`
	OutputTokens             *int `json:"output_tokens"`
}

func (c *counted) into(u *transcript.Usage) {
	if c == nil {
		return
	}
	for _, f := range []struct{ from, to *int }{
		{c.InputTokens, &u.InputTokens},
		{c.CacheCreationInputTokens, &u.CacheCreationInputTokens},
		{c.CacheReadInputTokens, &u.CacheReadInputTokens},
		{c.OutputTokens, &u.OutputTokens},
	} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
}

// answer collects one stream: the [wire.Answer] of this dialect.
type answer struct {
	message transcript.Message
	blocks  []*block // in the order in which they began
	started bool     // message_start was seen
	done    bool     // message_stop was seen
}

// block is a content block that is being written.
type block struct {
	transcript.Block
	index  int
	text   []byte // text, thought, or input, as far as it was written
	closed bool
}

func newAnswer(model string) *answer {
	if info, known := provider.Lookup(model); known {
		model = info.ID
	}
	return &answer{message: transcript.Message{Role: transcript.Assistant, Model: model}}
}

// Done implements [wire.Answer].
func (a *answer) Done() bool { return a.done }

// Whole implements [wire.Answer]. Some servers leave out message_stop.
func (a *answer) Whole() bool { return a.done || a.message.StopReason != "" }

// Add implements [wire.Answer].
func (a *answer) Add(ev wire.Event, emit func(provider.Event) bool) (wire.Silence, error) {
	if len(ev.Data) == 0 {
		return wire.NoProgress, nil
	}
	if string(ev.Name) == "error" {
		return wire.NoProgress, wire.StreamError(ev.Data)
	}
	var e streamEvent
	if err := json.Unmarshal(ev.Data, &e); err != nil && !tolerable(err, e.Type) {
		return wire.NoProgress, &provider.Error{Class: provider.Malformed, Message: fmt.Sprintf("event %q of the answer is damaged", ev.Name), Err: err}
	}
	if e.Type == "" {
		e.Type = string(ev.Name)
	}
	switch e.Type {
	case "error":
		return wire.NoProgress, wire.StreamError(ev.Data)
	case "message_start":
		a.start(e)
	case "content_block_start":
		return a.startBlock(e, emit), nil
	case "content_block_delta":
		return a.delta(e, emit), nil
	case "content_block_stop":
		if b := a.block(e.Index); b != nil {
			b.closed = true
		}
		return wire.Short, nil
	case "message_delta":
		e.Usage.into(&a.message.Usage)
		if e.Delta.StopReason != "" {
			a.message.StopReason = e.Delta.StopReason
		}
		return wire.Short, nil
	case "message_stop":
		a.done = true
	}
	return wire.NoProgress, nil
}

// tolerable reports whether an event may have a field of a shape that we do not
// expect: one that carries a piece of the answer may not.
func tolerable(err error, kind string) bool {
	var shape *json.UnmarshalTypeError
	return errors.As(err, &shape) && kind != "" && !strings.HasPrefix(kind, "content_block")
}

func (a *answer) start(e streamEvent) {
	if a.started || e.Message == nil {
		return
	}
	a.started = true
	a.message.ID = e.Message.ID
	if e.Message.Model != "" {
		a.message.Model = e.Message.Model
	}
	e.Message.Usage.into(&a.message.Usage)
}

// block finds the newest block with an index.
func (a *answer) block(index int) *block {
	for i := len(a.blocks) - 1; i >= 0; i-- {
		if a.blocks[i].index == index {
			return a.blocks[i]
		}
	}
	return nil
}

func (a *answer) startBlock(e streamEvent, emit func(provider.Event) bool) wire.Silence {
	if a.block(e.Index) != nil {
		return wire.NoProgress // started already
	}
	b := &block{index: e.Index}
	if json.Unmarshal(e.ContentBlock, &b.Block) != nil || b.Type == "" {
		return wire.NoProgress
	}
	a.blocks = append(a.blocks, b)
	switch b.Type {
	case transcript.Text:
		b.write(b.Text, emit)
		return wire.Short
	case transcript.Thinking:
		b.write(b.Text, emit)
	case transcript.ToolUse:
		emit(provider.ToolDelta{Index: b.index, Name: b.Name})
	}
	return wire.Long
}

func (a *answer) delta(e streamEvent, emit func(provider.Event) bool) wire.Silence {
	b := a.block(e.Index)
	if b == nil && e.Delta.Type == "text_delta" { // its start was left out
		b = &block{index: e.Index, Block: transcript.TextBlock("")}
		a.blocks = append(a.blocks, b)
	}
	if b == nil || b.closed {
		return wire.NoProgress
	}
	switch d := e.Delta; {
	case d.Type == "text_delta" && b.Type == transcript.Text:
		b.write(d.Text, emit)
		return wire.Short
	case d.Type == "thinking_delta" && b.Type == transcript.Thinking:
		b.write(d.Thinking, emit)
		return wire.Long
	case d.Type == "signature_delta" && b.Type == transcript.Thinking:
		b.Signature += d.Signature
		return wire.Short
	case d.Type == "input_json_delta" && b.Type == transcript.ToolUse:
		b.write(d.PartialJSON, emit)
		return wire.Long
	}
	return wire.NoProgress
}

// write adds a piece to the block, and emits it.
func (b *block) write(piece string, emit func(provider.Event) bool) {
	if piece == "" {
		return
	}
	b.text = append(b.text, piece...)
	switch b.Type {
	case transcript.Text:
		emit(provider.TextDelta{Index: b.index, Text: piece})
	case transcript.Thinking:
		emit(provider.ThinkingDelta{Index: b.index, Text: piece})
	case transcript.ToolUse:
		emit(provider.ToolDelta{Index: b.index, Name: b.Name, JSON: piece})
	}
}

// Reply implements [wire.Answer].
func (a *answer) Reply() provider.Reply {
	m := a.message
	m.ID = wire.MessageID(m.ID, "msg_")
	whole := a.Whole()
	for _, b := range a.blocks {
		if kept, ok := b.finish(whole || b.closed); ok {
			m.Content = append(m.Content, kept)
		}
	}
	wire.UniqueIDs(m.Content, "toolu_")
	return provider.Reply{Message: m}
}

// finish makes the block of a reply; ok is false for one that says nothing, or
// was cut off and is of no use so.
func (b *block) finish(whole bool) (transcript.Block, bool) {
	kept := b.Block
	switch b.Type {
	case transcript.Text:
		kept.Text = string(b.text)
		return kept, kept.Text != ""
	case transcript.Thinking:
		kept.Text = string(b.text)
		return kept, kept.Signature != "" || whole && kept.Text != ""
	case transcript.ToolUse:
		written := b.text
		if len(bytes.TrimSpace(written)) == 0 {
			written = b.Input // it stood in the start already
		}
		kept.Input = wire.ToolInput(written)
		return kept, whole && kept.Name != ""
	}
	return kept, whole
}

// Package transcript is the vocabulary of what is kept of a conversation:
// blocks, messages, entries (one line of a transcript file), the store that
// keeps them, and the rules that turn entries back into a conversation that can
// be sent to a model.
package transcript

import (
	"bytes"
	"encoding/json"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// BlockType is the "type" of a content block on the wire.
type BlockType string

// The block types that we make or read. A block of any other type is kept
// verbatim in [Block.Raw].
const (
	Text             BlockType = "text"
	Thinking         BlockType = "thinking"
	RedactedThinking BlockType = "redacted_thinking"
	ToolUse          BlockType = "tool_use"
	ToolResult       BlockType = "tool_result"
	Image            BlockType = "image"
)

// Block is one content block of a message. Type says which of the fields count.
type Block struct {
	Type BlockType

	Text      string // text; thinking: the thought; tool_result: the content when Content is nil
	Signature string // thinking
	Data      string // redacted_thinking, opaque

	ID    string          // tool_use
	Name  string          // tool_use
	Input json.RawMessage // tool_use: always a valid JSON object

	ToolUseID string  // tool_result: the tool_use it answers
	Content   []Block // tool_result: content as a list of blocks; nil means Text is the content
	IsError   bool    // tool_result

	Raw json.RawMessage // the whole block, for types not named above and for images
}

// TextBlock makes a text block.
func TextBlock(text string) Block { return Block{Type: Text, Text: text} }

type wireText struct {
	Type BlockType `json:"type"`
	Text string    `json:"text"`
}

type wireThinking struct {
	Type      BlockType `json:"type"`
	Thinking  string    `json:"thinking"`
	Signature string    `json:"signature"`
}

type wireRedacted struct {
	Type BlockType `json:"type"`
	Data string    `json:"data"`
}

type wireToolUse struct {
	Type  BlockType       `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// wireToolResult has the key order that transcripts show (golden t1).
type wireToolResult struct {
	ToolUseID string    `json:"tool_use_id"`
	Type      BlockType `json:"type"`
	Content   any       `json:"content"`
	IsError   bool      `json:"is_error,omitempty"`
}

// MarshalJSON writes the block as the Messages API and transcripts spell it.
func (b Block) MarshalJSON() ([]byte, error) {
	switch b.Type {
	case Text:
		return jsonx.Marshal(wireText{b.Type, b.Text})
	case Thinking:
		return jsonx.Marshal(wireThinking{b.Type, b.Text, b.Signature})
	case RedactedThinking:
		return jsonx.Marshal(wireRedacted{b.Type, b.Data})
	case ToolUse:
		input := b.Input
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		return jsonx.Marshal(wireToolUse{b.Type, b.ID, b.Name, input})
	case ToolResult:
		w := wireToolResult{ToolUseID: b.ToolUseID, Type: b.Type, Content: b.Text, IsError: b.IsError}
		if b.Content != nil {
			w.Content = b.Content
		}
		return jsonx.Marshal(w)
	default:
		if len(b.Raw) == 0 {
			return jsonx.Marshal(map[string]any{"type": b.Type})
		}
		return b.Raw, nil
	}
}

// UnmarshalJSON reads a block of any type.
func (b *Block) UnmarshalJSON(data []byte) error {
	var w struct {
		Type      BlockType       `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
	}
	var head struct {
		Type BlockType `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	switch head.Type {
	case Text, Thinking, RedactedThinking, ToolUse, ToolResult:
	default: // its fields may have any shape
		*b = Block{Type: head.Type, Raw: bytes.Clone(data)}
		return nil
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*b = Block{Type: w.Type}
	switch w.Type {
	case Text:
		b.Text = w.Text
	case Thinking:
		b.Text, b.Signature = w.Thinking, w.Signature
	case RedactedThinking:
		b.Data = w.Data
	case ToolUse:
		b.ID, b.Name, b.Input = w.ID, w.Name, bytes.Clone(w.Input)
	case ToolResult:
		b.ToolUseID, b.IsError = w.ToolUseID, w.IsError
		return b.unmarshalContent(w.Content)
	}
	return nil
}

// unmarshalContent reads the content of a tool result: a string, or a list.
func (b *Block) unmarshalContent(data json.RawMessage) error {
	if len(data) == 0 || bytes.Equal(data, []byte("null")) {
		return nil
	}
	if data[0] == '"' {
		return json.Unmarshal(data, &b.Text)
	}
	b.Content = []Block{}
	return json.Unmarshal(data, &b.Content)
}

// ResultText is the text of a tool result, whichever form its content has.
func (b Block) ResultText() string {
	if b.Content == nil {
		return b.Text
	}
	return JoinText(b.Content)
}

// JoinText joins the text blocks among blocks with newlines.
func JoinText(blocks []Block) string {
	var buf bytes.Buffer
	for _, b := range blocks {
		if b.Type != Text {
			continue
		}
		if buf.Len() > 0 {
			buf.WriteByte('\n')
		}
		buf.WriteString(b.Text)
	}
	return buf.String()
}

package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
	"github.com/cadre-dev/cadre/transcript"
)

// body encodes a request (Chat Completions, POST /v1/chat/completions).
func (m *Model) body(req provider.Request) *wire.Body {
	history := m.histories.Encode(req.Agent, req.Messages)
	var body wire.Body
	body.Add(m.encodeParams(req))
	if len(req.Tools) > 0 {
		body.Add(m.tools.Encode(req.Tools))
	}
	body.Add([]byte(`"messages":[`))
	messages := history.Bytes
	if system := m.systems.Encode(req.System); system != nil {
		body.Add(system)
	} else {
		messages = messages[min(1, len(messages)):] // the first comma
	}
	body.Add(messages)
	body.Add([]byte("]}"))
	return &body
}

// modelID is the id to send: our aliases stand for models of another API.
func modelID(name string) string {
	if info, known := provider.Lookup(name); known && info.API == provider.OpenAI {
		return info.ID
	}
	return name
}

func (m *Model) encodeParams(req provider.Request) []byte {
	dst := wire.AppendString([]byte(`{"model":`), modelID(req.Model))
	if req.MaxTokens > 0 {
		// OpenAI's newer models refuse the old name, other servers do not know
		// the new one.
		name := `,"max_tokens":`
		if m.ownAPI {
			name = `,"max_completion_tokens":`
		}
		dst = strconv.AppendInt(append(dst, name...), int64(req.MaxTokens), 10)
	}
	return append(dst, `,"stream":true,"stream_options":{"include_usage":true},`...)
}

// encodeSystem makes one message of the system prompt: many servers accept no
// more.
func encodeSystem(system []string) []byte {
	text := strings.Join(system, "\n\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	dst := wire.AppendString([]byte(`{"role":"system","content":`), text)
	return append(dst, '}')
}

func encodeTools(tools []provider.Tool) []byte {
	dst := append(wire.BufferFor(tools), `"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(append(dst, `{"type":"function","function":{"name":`...), t.Name)
		dst = wire.AppendString(append(dst, `,"description":`...), t.Description)
		dst = append(append(dst, `,"parameters":`...), compact(t.Schema)...)
		dst = append(dst, `}}`...)
	}
	return append(dst, `],`...)
}

// compact is data without white space; what is not JSON becomes the empty object.
func compact(data json.RawMessage) []byte {
	var buf bytes.Buffer
	if json.Compact(&buf, data) != nil {
		return []byte("{}")
	}
	return buf.Bytes()
}

// appendMessage is the [wire.Encode] of this dialect: one message of ours is
// one or more of the API's. Thoughts are never sent.
func appendMessage(dst []byte, m transcript.Message, _ bool) []byte {
	if m.Role == transcript.Assistant {
		return appendAssistant(dst, m)
	}
	var rest []transcript.Block
	for _, b := range m.Content {
		if b.Type != transcript.ToolResult {
			rest = append(rest, b)
			continue
		}
		dst = wire.AppendString(append(dst, `,{"role":"tool","tool_call_id":`...), b.ToolUseID)
		dst = wire.AppendString(append(dst, `,"content":`...), b.ResultText())
		dst = append(dst, '}')
		rest = append(rest, shown(b)...)
	}
	return appendUser(dst, rest)
}

// shown are the parts of a result that are no text, with a word of where they
// come from: a message of role tool holds text only.
func shown(result transcript.Block) []transcript.Block {
	var parts []transcript.Block
	for _, part := range result.Content {
		if part.Type != transcript.Text {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	from := transcript.TextBlock(fmt.Sprintf("From the result of call %s:", result.ToolUseID))
	return append([]transcript.Block{from}, parts...)
}

func appendAssistant(dst []byte, m transcript.Message) []byte {
	text := transcript.JoinText(m.Content)
	calls := m.ToolUses()
	dst = append(dst, `,{"role":"assistant","content":`...)
	switch {
	case text != "":
		dst = wire.AppendString(dst, text)
	case len(calls) > 0:
		dst = append(dst, `null`...)
	default: // only a thought
		dst = append(dst, `"(no text)"`...)
	}
	for i, call := range calls {
		dst = append(dst, separator(i, `,"tool_calls":[`)...)
		dst = wire.AppendString(append(dst, `{"id":`...), call.ID)
		dst = wire.AppendString(append(dst, `,"type":"function","function":{"name":`...), call.Name)
		dst = wire.AppendString(append(dst, `,"arguments":`...), string(compact(call.Input)))
		dst = append(dst, `}}`...)
	}
	if len(calls) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

// appendUser writes a user message: plain text where that is all, which every
// server accepts, else a list of parts.
func appendUser(dst []byte, blocks []transcript.Block) []byte {
	if len(blocks) == 0 {
		return dst
	}
	dst = append(dst, `,{"role":"user","content":`...)
	onlyText := true
	for _, b := range blocks {
		onlyText = onlyText && b.Type == transcript.Text
	}
	if onlyText {
		return append(wire.AppendString(dst, transcript.JoinText(blocks)), '}')
	}
	for i, b := range blocks {
		dst = append(dst, separator(i, "[")...)
		if url := imageURL(b); url != "" {
			dst = wire.AppendString(append(dst, `{"type":"image_url","image_url":{"url":`...), url)
			dst = append(dst, `}}`...)
			continue
		}
		text := b.Text
		if b.Type != transcript.Text {
			text = fmt.Sprintf("(a block of type %s, which this model cannot be shown)", b.Type)
		}
		dst = wire.AppendString(append(dst, `{"type":"text","text":`...), text)
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}

// imageURL is the URL of an image, or its data as one; "" for other blocks.
func imageURL(b transcript.Block) string {
	var image struct {
		Source struct {
			URL       string `json:"url"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
		} `json:"source"`
	}
	if b.Type != transcript.Image || json.Unmarshal(b.Raw, &image) != nil {
		return ""
	}
	if image.Source.Data != "" {
		return "data:" + image.Source.MediaType + ";base64," + image.Source.Data
	}
	return image.Source.URL
}

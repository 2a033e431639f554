package anthropic

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
	"github.com/cadre-dev/cadre/transcript"
)

// cacheMark ends what the API shall remember: everything up to the block that
// carries it. It is written in place of that block's closing brace.
const cacheMark = `,"cache_control":{"type":"ephemeral"}}`

// markedMessages is how many of the newest user messages carry a mark: the
// newest for the next request, the one before to find what the last one wrote.
// With those of the system prompt and the tools that makes the four allowed.
const markedMessages = 2

// Limits that apply to models which the table does not know.
const (
	unknownMaxTokens = 8192
	minThinking      = 1024 // the API's
	minAnswer        = 4096 // left for the answer beside a thinking budget
)

// body encodes a request (Messages API, POST /v1/messages).
func (m *Model) body(req provider.Request) *wire.Body {
	history := m.histories.Encode(req.Agent, req.Messages)
	var body wire.Body
	body.Add(encodeParams(req, mayThink(req.Messages, history.Bare)))
	if len(req.Tools) > 0 {
		body.Add(m.tools.Encode(req.Tools))
	}
	body.Add(m.systems.Encode(req.System))
	body.Add([]byte(`"messages":[`))
	addMessages(&body, req.Messages, history)
	body.Add([]byte("]}"))
	return &body
}

// encodeParams writes the beginning of the body. The order of the fields does
// not matter to the API; ours puts what grows last.
func encodeParams(req provider.Request, think bool) []byte {
	info, known := provider.Lookup(req.Model)
	model := req.Model
	if known {
		model = info.ID
	}
	maxTokens := req.MaxTokens
	if maxTokens <= 0 {
		if maxTokens = info.MaxOutput; maxTokens == 0 {
			maxTokens = unknownMaxTokens
		}
	}
	budget := 0
	if req.Thinking > 0 && !info.Adaptive && think {
		maxTokens, budget = share(maxTokens, max(req.Thinking, minThinking), info.MaxOutput)
	}
	dst := wire.AppendString([]byte(`{"model":`), model)
	dst = append(dst, `,"max_tokens":`...)
	dst = strconv.AppendInt(dst, int64(maxTokens), 10)
	dst = append(dst, `,"stream":true,`...)
	switch {
	case budget > 0:
		dst = append(dst, `"thinking":{"type":"enabled","budget_tokens":`...)
		dst = strconv.AppendInt(dst, int64(budget), 10)
		dst = append(dst, `},`...)
	case req.Thinking > 0 && info.Adaptive:
		dst = append(dst, `"thinking":{"type":"adaptive","display":"summarized"},`...)
	}
	return dst
}

// share divides the tokens of an answer: max_tokens counts the thinking, and
// must be above its budget. limit is the model's own, 0 when unknown.
func share(maxTokens, budget, limit int) (int, int) {
	if maxTokens <= budget {
		maxTokens = budget + minAnswer
	}
	if limit > 0 && maxTokens > limit {
		maxTokens = limit
		budget = min(budget, max(limit-minAnswer, minThinking))
	}
	return maxTokens, budget
}

// mayThink reports whether thinking can be on: in the middle of a round of
// calls the API demands that the reply with the calls began with a thought.
// Messages before bare are sent without theirs.
func mayThink(messages []transcript.Message, bare int) bool {
	n := len(messages)
	if n < 2 || len(messages[n-1].Content) == 0 || messages[n-1].Content[0].Type != transcript.ToolResult {
		return true
	}
	if n-2 < bare {
		return false
	}
	for _, b := range messages[n-2].Content {
		return b.Type == transcript.RedactedThinking || b.Type == transcript.Thinking && b.Signature != ""
	}
	return true
}

func encodeSystem(system []string) []byte {
	dst := append(wire.BufferForTexts(system), `"system":[`...)
	empty := len(dst)
	for _, text := range system {
		if strings.TrimSpace(text) == "" {
			continue // refused by the API
		}
		if len(dst) > empty {
			dst = append(dst, ',')
		}
		dst = appendText(dst, text)
	}
	if len(dst) == empty {
		return nil
	}
	dst = append(dst[:len(dst)-1], cacheMark...)
	return append(dst, `],`...)
}

func encodeTools(tools []provider.Tool) []byte {
	dst := append(wire.BufferFor(tools), `"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"name":`...)
		dst = wire.AppendString(dst, t.Name)
		dst = append(dst, `,"description":`...)
		dst = wire.AppendString(dst, t.Description)
		dst = append(dst, `,"input_schema":`...)
		dst = append(append(dst, compact(t.Schema, `{"type":"object"}`)...), '}')
	}
	dst = append(dst[:len(dst)-1], cacheMark...)
	return append(dst, `],`...)
}

// addMessages adds the encoded conversation, with the cache marks put in.
func addMessages(body *wire.Body, messages []transcript.Message, history wire.Encoded) {
	var marks []int
	for i := len(messages) - 1; i >= 0 && len(marks) < markedMessages; i-- {
		if messages[i].Role == transcript.User {
			marks = append(marks, history.Ends[i]-len("}]}"))
		}
	}
	from := min(1, len(history.Bytes)) // the first comma
	for i := len(marks) - 1; i >= 0; i-- {
		body.Add(history.Bytes[from:marks[i]])
		body.Add([]byte(cacheMark))
		from = marks[i] + 1
	}
	body.Add(history.Bytes[from:])
}

// appendMessage is the [wire.Encode] of this dialect. A message ends in "}]}":
// the brace of its last block, then its own.
func appendMessage(dst []byte, m transcript.Message, bare bool) []byte {
	dst = append(dst, `,{"role":"`...)
	dst = append(dst, m.Role...)
	dst = append(dst, `","content":[`...)
	start := len(dst)
	for _, b := range m.Content {
		before := len(dst)
		if before > start {
			dst = append(dst, ',')
		}
		comma := len(dst)
		if dst = appendBlock(dst, b, bare); len(dst) == comma {
			dst = dst[:before]
		}
	}
	if len(dst) == start { // a thought that could not be sent back, say
		dst = appendText(dst, "(no text)")
	}
	return append(dst, `]}`...)
}

// appendBlock appends a block, or nothing when the API would refuse it.
func appendBlock(dst []byte, b transcript.Block, bare bool) []byte {
	switch b.Type {
	case transcript.Text:
		if strings.TrimSpace(b.Text) == "" {
			return dst
		}
		return appendText(dst, b.Text)
	case transcript.Thinking:
		if bare || b.Signature == "" {
			return dst
		}
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = wire.AppendString(dst, b.Text)
		dst = append(dst, `,"signature":`...)
		return append(wire.AppendString(dst, b.Signature), '}')
	case transcript.RedactedThinking:
		if bare || b.Data == "" {
			return dst
		}
		dst = append(dst, `{"type":"redacted_thinking","data":`...)
		return append(wire.AppendString(dst, b.Data), '}')
	case transcript.ToolUse:
		dst = appendID(append(dst, `{"type":"tool_use","id":`...), b.ID)
		dst = append(dst, `,"name":`...)
		dst = appendID(dst, b.Name)
		dst = append(dst, `,"input":`...)
		return append(append(dst, compact(b.Input, `{}`)...), '}')
	case transcript.ToolResult:
		return appendResult(dst, b)
	}
	return append(dst, foreign(b.Raw)...)
}

func appendText(dst []byte, text string) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	return append(wire.AppendString(dst, text), '}')
}

func appendResult(dst []byte, b transcript.Block) []byte {
	dst = appendID(append(dst, `{"type":"tool_result","tool_use_id":`...), b.ToolUseID)
	if b.IsError {
		dst = append(dst, `,"is_error":true`...)
	}
	dst = append(dst, `,"content":`...)
	if b.Content == nil {
		text := b.Text
		if text == "" && b.IsError {
			text = "(no output)" // the API demands a word on an error
		}
		return append(wire.AppendString(dst, text), '}')
	}
	dst = append(dst, '[')
	start := len(dst)
	for _, part := range b.Content {
		before := len(dst)
		if before > start {
			dst = append(dst, ',')
		}
		comma := len(dst)
		if dst = appendBlock(dst, part, false); len(dst) == comma {
			dst = dst[:before]
		}
	}
	if len(dst) == start {
		dst = appendText(dst, "(no output)")
	}
	return append(dst, `]}`...)
}

// appendID appends an id or a tool's name. The API allows few characters in
// them, and refuses a conversation that was started with a more generous server.
func appendID(dst []byte, id string) []byte {
	dst = append(dst, '"')
	for _, r := range id {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			dst = append(dst, byte(r))
			continue
		}
		dst = append(dst, '_')
	}
	if id == "" {
		dst = append(dst, '_')
	}
	return append(dst, '"')
}

// compact is data without white space, or instead when it is not a JSON object.
func compact(data json.RawMessage, instead string) []byte {
	var buf bytes.Buffer
	if json.Compact(&buf, data) != nil || buf.Len() == 0 || buf.Bytes()[0] != '{' {
		return []byte(instead)
	}
	return buf.Bytes()
}

// foreign is a block that we only pass on, without a cache mark of its own:
// more than four are refused.
func foreign(raw json.RawMessage) []byte {
	data := compact(raw, "")
	if !bytes.Contains(data, []byte(`"cache_control"`)) {
		return data
	}
	var block jsonx.Object
	if json.Unmarshal(data, &block) != nil {
		return nil
	}
	block.Delete("cache_control")
	return jsonx.MustMarshal(block)
}

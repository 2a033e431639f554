package fakeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Dialect is an API that the server speaks.
type Dialect int

// The dialects.
const (
	Messages Dialect = iota // Anthropic's Messages API
	Chat                    // OpenAI's Chat Completions
)

// Request is one request that came.
type Request struct {
	Seq     int // 1, 2, 3, … over the server
	Dialect Dialect
	Path    string
	Header  http.Header
	Remote  string // the client's address: connections differ in it
	Proto   string // HTTP/1.1 or HTTP/2.0
	Length  int64  // of the body as announced; -1 for none
	Raw     []byte // the body
	At      time.Time
}

// Body is what the dialects have in common.
type Body struct {
	Model    string
	System   string
	Tools    []string // their names
	Messages []Message
}

// Message is one message. A message of role tool (Chat Completions) stands as
// results of a user message.
type Message struct {
	Role    string
	Text    string
	Calls   []Call
	Results []Result
}

// Call is a tool call.
type Call struct {
	ID    string
	Name  string
	Input json.RawMessage
}

// Result is a tool result.
type Result struct {
	CallID  string
	Text    string
	IsError bool
}

// Last is the newest message; an empty one when there is none.
func (b Body) Last() Message {
	if len(b.Messages) == 0 {
		return Message{}
	}
	return b.Messages[len(b.Messages)-1]
}

// Body decodes the request. It costs more than all else that the server does,
// so benchmarks answer by Seq.
func (r *Request) Body() (Body, error) {
	var w wireBody
	if err := json.Unmarshal(r.Raw, &w); err != nil {
		return Body{}, fmt.Errorf("decode request %d: %w", r.Seq, err)
	}
	b := Body{Model: w.Model, System: textOf(w.System)}
	for _, t := range w.Tools {
		b.Tools = append(b.Tools, t.Name+t.Function.Name)
	}
	for _, m := range w.Messages {
		if m.Role == "system" {
			b.System = textOf(m.Content)
			continue
		}
		b.Messages = append(b.Messages, m.decode())
	}
	return b, nil
}

type wireBody struct {
	Model  string          `json:"model"`
	System json.RawMessage `json:"system"`
	Tools  []struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Messages []wireMessage `json:"messages"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (w wireMessage) decode() Message {
	m := Message{Role: w.Role}
	if w.Role == "tool" {
		m.Role = "user"
		m.Results = []Result{{CallID: w.ToolCallID, Text: textOf(w.Content)}}
		return m
	}
	m.Text = textOf(w.Content)
	for _, c := range w.ToolCalls {
		m.Calls = append(m.Calls, Call{c.ID, c.Function.Name, json.RawMessage(c.Function.Arguments)})
	}
	for _, b := range blocksOf(w.Content) {
		switch b.Type {
		case "tool_use":
			m.Calls = append(m.Calls, Call{b.ID, b.Name, b.Input})
		case "tool_result":
			m.Results = append(m.Results, Result{b.ToolUseID, textOf(b.Content), b.IsError})
		}
	}
	return m
}

func blocksOf(content json.RawMessage) []wireBlock {
	var blocks []wireBlock
	if json.Unmarshal(content, &blocks) != nil {
		return nil // a string
	}
	return blocks
}

// textOf is content that is a string, or the text blocks in it.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var texts []string
	for _, b := range blocksOf(content) {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

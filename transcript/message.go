package transcript

import (
	"bytes"
	"encoding/json"
)

// Role says whose message it is.
type Role string

// The two roles of the Messages API. Tool results travel in user messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	ID         string // assistant: the API's id; all blocks of one reply share it
	Role       Role
	Model      string // assistant: the model that answered
	Content    []Block
	StopReason string // assistant: end_turn, tool_use, max_tokens, …; "" when unknown
	Usage      Usage  // assistant
}

// Usage counts the tokens of one reply, as the API reports them.
type Usage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.CacheCreationInputTokens += v.CacheCreationInputTokens
	u.CacheReadInputTokens += v.CacheReadInputTokens
	u.OutputTokens += v.OutputTokens
	return u
}

// Total is every token that went in or out.
func (u Usage) Total() int {
	return u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens + u.OutputTokens
}

// UserText makes a user message of one text block.
func UserText(text string) Message {
	return Message{Role: User, Content: []Block{TextBlock(text)}}
}

// ToolUses lists the tool calls in the message, in order.
func (m Message) ToolUses() []Block {
	var uses []Block
	for _, b := range m.Content {
		if b.Type == ToolUse {
			uses = append(uses, b)
		}
	}
	return uses
}

// ContentBlocks decodes the content of a message on the wire: a plain string
// stands for one text block.
func ContentBlocks(data json.RawMessage) ([]Block, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || bytes.Equal(data, []byte("null")) {
		return nil, nil
	}
	if data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return nil, err
		}
		return []Block{TextBlock(text)}, nil
	}
	var blocks []Block
	if err := json.Unmarshal(data, &blocks); err != nil {
		return nil, err
	}
	return blocks, nil
}

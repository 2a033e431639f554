package transcript

import (
	"bytes"
	"fmt"
)

// Texts that stand in for what an interrupted or killed turn left out. The
// first two are those that SDKs and users know (facts: sdk-contract §2.3).
const (
	Interrupted        = "[Request interrupted by user]"
	InterruptedForTool = "[Request interrupted by user for tool use]"
	// LostResult answers a call whose result was never kept.
	LostResult = "The process ended while this tool was running, so its result is unknown: it may have done all, part or none of its work. Check before you run it again."
	// LostBeginning stands before a reply whose question was never kept.
	LostBeginning = "(The beginning of this conversation is missing.)"
)

// Interruption is the text that marks an interrupted turn when the message is
// one; "" otherwise.
func (m Message) Interruption() string {
	switch text := JoinText(m.Content); text {
	case Interrupted, InterruptedForTool:
		return text
	}
	return ""
}

// Conversation folds entries into messages that a model accepts:
// the blocks of one reply are joined, neighbouring user entries are joined,
// results stand in the message right after their calls, first among its blocks,
// each call has one result and each result one call. What breaks these rules
// (foreign or torn files, a kill in the middle) is dropped, or answered with
// [LostResult]. The entries themselves are not changed.
func Conversation(entries []Entry) []Message { return Continue(nil, entries) }

// Continue is what a conversation becomes by the entries that follow it, as
// [Conversation] would fold all of them. The conversation itself is not changed.
func Continue(conversation []Message, entries []Entry) []Message {
	f := folder{goesOn: len(conversation) > 0}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if e.UUID != "" && seen[e.UUID] {
			continue // a line that stands twice
		}
		seen[e.UUID] = true
		switch e.Kind {
		case KindAssistant:
			f.assistant(e.Message)
		case KindUser:
			f.user(e.Message)
		}
	}
	f.flush()
	if !f.goesOn {
		return f.messages
	}
	for _, m := range f.messages {
		conversation = Join(conversation, m)
	}
	return conversation
}

// Dangling lists the calls among entries that have no stored result.
func Dangling(entries []Entry) []Block {
	answered := make(map[string]bool)
	for _, e := range entries {
		for _, b := range e.Message.Content {
			if b.Type == ToolResult {
				answered[b.ToolUseID] = true
			}
		}
	}
	var open []Block
	for _, e := range entries {
		for _, b := range e.Message.Content {
			if b.Type == ToolUse && !answered[b.ID] {
				open = append(open, b)
				answered[b.ID] = true
			}
		}
	}
	return open
}

// folder builds the messages. reply and answer are the pair being collected:
// an assistant message, and the user message that follows it.
type folder struct {
	goesOn   bool // something stands before all this
	messages []Message
	used     map[string]bool // tool_use ids in messages already flushed or in reply
	reply    *Message
	results  map[string]Block
	rest     []Block // of the user message: everything but results
	hasUser  bool
}

func (f *folder) assistant(m Message) {
	if f.reply != nil && (f.hasUser || f.reply.ID != m.ID || m.ID == "") {
		if !f.hasUser {
			// Two replies in a row: the second goes on from the first.
			f.merge(m)
			return
		}
		f.flush()
	}
	if f.reply == nil {
		f.flush()
		f.reply = &Message{ID: m.ID, Role: Assistant, Model: m.Model}
	}
	f.merge(m)
}

func (f *folder) merge(m Message) {
	for _, b := range m.Content {
		if !sendable(b) || b.Type == ToolResult {
			continue
		}
		if b.Type == ToolUse {
			if f.used[b.ID] || b.ID == "" {
				continue // an id may be used once
			}
			if f.used == nil {
				f.used = make(map[string]bool)
			}
			f.used[b.ID] = true
			if !bytes.HasPrefix(bytes.TrimSpace(b.Input), []byte("{")) {
				b.Input = nil
			}
		}
		f.reply.Content = append(f.reply.Content, b)
	}
	f.reply.StopReason = m.StopReason
	f.reply.Usage = m.Usage
}

// sendable reports whether a block is one that the API takes at all.
func sendable(b Block) bool { return b.Type != "" && (b.Type != Text || b.Text != "") }

func (f *folder) user(m Message) {
	f.hasUser = true
	for _, b := range m.Content {
		switch {
		case b.Type == ToolResult:
			if f.results == nil {
				f.results = make(map[string]Block)
			}
			if _, twice := f.results[b.ToolUseID]; !twice {
				f.results[b.ToolUseID] = b
			}
		case !sendable(b), b.Type == ToolUse, b.Type == Thinking, b.Type == RedactedThinking:
		default:
			f.rest = append(f.rest, b)
		}
	}
}

func (f *folder) flush() {
	var answer []Block
	if f.reply != nil {
		uses := f.reply.ToolUses()
		for _, use := range uses {
			result, ok := f.results[use.ID]
			if !ok {
				result = Block{Type: ToolResult, ToolUseID: use.ID, Text: LostResult, IsError: true}
			}
			answer = append(answer, result)
		}
		if len(f.reply.Content) > 0 {
			if len(f.messages) == 0 && !f.goesOn {
				f.addUser([]Block{TextBlock(LostBeginning)})
			}
			f.addReply(*f.reply)
		}
	}
	answer = append(answer, f.rest...)
	if len(answer) > 0 {
		f.addUser(answer)
	}
	f.reply, f.results, f.rest, f.hasUser = nil, nil, nil, false
}

// addReply adds a reply, or joins it to the one before when all that stood
// between them was dropped.
func (f *folder) addReply(reply Message) {
	if n := len(f.messages); n > 0 && f.messages[n-1].Role == Assistant {
		last := &f.messages[n-1]
		last.Content = append(last.Content, reply.Content...)
		last.StopReason, last.Usage = reply.StopReason, reply.Usage
		return
	}
	f.messages = append(f.messages, reply)
}

func (f *folder) addUser(blocks []Block) {
	if n := len(f.messages); n > 0 && f.messages[n-1].Role == User {
		f.messages[n-1].Content = append(f.messages[n-1].Content, blocks...)
		return
	}
	f.messages = append(f.messages, Message{Role: User, Content: blocks})
}

// Check reports the first rule of [Conversation] that messages break, or nil
// when they can be sent to a model.
func Check(messages []Message) error {
	var open map[string]bool
	used := make(map[string]bool)
	for i, m := range messages {
		if len(m.Content) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if i > 0 && m.Role == messages[i-1].Role {
			return fmt.Errorf("messages %d and %d have the same role", i-1, i)
		}
		if i == 0 && m.Role != User {
			return fmt.Errorf("the first message is the assistant's")
		}
		if err := checkResults(m, open); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		open = make(map[string]bool)
		for _, use := range m.ToolUses() {
			if used[use.ID] {
				return fmt.Errorf("message %d: id %s is used twice", i, use.ID)
			}
			used[use.ID], open[use.ID] = true, true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the last message has %d unanswered calls", len(open))
	}
	return nil
}

func checkResults(m Message, open map[string]bool) error {
	past := false
	for _, b := range m.Content {
		if b.Type != ToolResult {
			past = true
			continue
		}
		if past {
			return fmt.Errorf("result %s stands after other content", b.ToolUseID)
		}
		if !open[b.ToolUseID] {
			return fmt.Errorf("result %s answers no call of the message before", b.ToolUseID)
		}
		delete(open, b.ToolUseID)
	}
	for id := range open {
		return fmt.Errorf("call %s has no result", id)
	}
	return nil
}

// Join appends a message to a conversation. Neighbours of one role become one
// message in a new content slice; what conversation held is never changed, so
// it may still be read elsewhere.
func Join(conversation []Message, m Message) []Message {
	n := len(conversation)
	if n == 0 || conversation[n-1].Role != m.Role {
		return append(conversation, m)
	}
	last := conversation[n-1]
	last.Content = append(last.Content[:len(last.Content):len(last.Content)], m.Content...)
	if m.Role == Assistant {
		last.StopReason, last.Usage = m.StopReason, m.Usage
	}
	joined := append(conversation[:n-1:n-1], last)
	return joined
}

package fakeapi

import (
	"encoding/json"
	"fmt"
)

// EventsOf are the events of the answer in a dialect, each with the blank line
// that ends it.
func (r *Reply) EventsOf(d Dialect) [][]byte {
	switch {
	case r.Events != nil:
		return r.Events
	case d == Chat:
		return r.chunks()
	}
	return r.messageEvents()
}

type object = map[string]any

// encode is v as JSON. It panics on what cannot be: a script is wrong then.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakeapi: encode %T: %v", v, err))
	}
	return string(data)
}

// messageEvents are those of the Messages API.
func (r *Reply) messageEvents() [][]byte {
	var events [][]byte
	add := func(name string, fields object) {
		fields["type"] = name
		events = append(events, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, encode(fields)))
	}
	id := r.ID
	if id == "" {
		id = "msg_fake"
	}
	usage := object{
		"input_tokens": r.Usage.Input, "output_tokens": 1,
		"cache_creation_input_tokens": r.Usage.CacheWrite, "cache_read_input_tokens": r.Usage.CacheRead,
	}
	add("message_start", object{"message": object{
		"id": id, "type": "message", "role": "assistant", "model": r.model(), "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	for i, b := range r.Blocks {
		add("content_block_start", object{"index": i, "content_block": b.start()})
		for _, delta := range b.deltas() {
			add("content_block_delta", object{"index": i, "delta": delta})
		}
		add("content_block_stop", object{"index": i})
		if i == 0 {
			add("ping", object{})
		}
	}
	add("message_delta", object{
		"delta": object{"stop_reason": r.stop(), "stop_sequence": nil},
		"usage": object{"output_tokens": r.Usage.Output},
	})
	add("message_stop", object{})
	return events
}

// start is the content_block of content_block_start.
func (b Block) start() object {
	switch b.Type {
	case "text":
		return object{"type": "text", "text": ""}
	case "thinking":
		return object{"type": "thinking", "thinking": "", "signature": ""}
	case "redacted_thinking":
		return object{"type": "redacted_thinking", "data": b.Text}
	}
	return object{"type": "tool_use", "id": b.ID, "name": b.Name, "input": object{}}
}

func (b Block) deltas() []object {
	var deltas []object
	for _, piece := range b.pieces() {
		switch b.Type {
		case "text":
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		case "thinking":
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": piece})
		case "tool_use":
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
	}
	if b.Signature != "" {
		deltas = append(deltas, object{"type": "signature_delta", "signature": b.Signature})
	}
	return deltas
}

// finishReasons are the stop reasons as Chat Completions spells them.
var finishReasons = map[string]string{
	"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter",
}

// chunks are the events of Chat Completions.
func (r *Reply) chunks() [][]byte {
	var events [][]byte
	id := r.ID
	if id == "" {
		id = "chatcmpl-fake"
	}
	chunk := func(fields object) {
		fields["id"], fields["object"], fields["created"], fields["model"] = id, "chat.completion.chunk", 1, r.model()
		events = append(events, fmt.Appendf(nil, "data: %s\n\n", encode(fields)))
	}
	delta := func(delta object, finish any) {
		chunk(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	delta(object{"role": "assistant", "content": ""}, nil)
	call := 0
	for _, b := range r.Blocks {
		if b.Type == "tool_use" {
			for _, piece := range r.callDeltas(b, call) {
				delta(object{"tool_calls": []object{piece}}, nil)
			}
			call++
			continue
		}
		field := "content"
		if b.Type == "thinking" {
			field = "reasoning_content"
		}
		for _, piece := range b.pieces() {
			delta(object{field: piece}, nil)
		}
	}
	if !r.Quirks.NoFinish {
		finish, known := finishReasons[r.stop()]
		if !known {
			finish = r.stop()
		}
		delta(object{}, finish)
	}
	if !r.Quirks.NoUsage {
		chunk(object{"choices": []object{}, "usage": r.chatUsage()})
	}
	if !r.Quirks.NoDone {
		events = append(events, []byte("data: [DONE]\n\n"))
	}
	return events
}

func (r *Reply) chatUsage() object {
	u := r.Usage
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"prompt_tokens": prompt, "completion_tokens": u.Output, "total_tokens": prompt + u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
	}
}

// callDeltas are the pieces of one tool call.
func (r *Reply) callDeltas(b Block, n int) []object {
	piece := func(fields object) object {
		switch {
		case r.Quirks.ZeroIndex:
			fields["index"] = 0
		case !r.Quirks.NoIndex:
			fields["index"] = n
		}
		return fields
	}
	whole := object{"id": b.ID, "type": "function", "function": object{"name": b.Name, "arguments": b.Text}}
	switch {
	case r.Quirks.ObjectArguments:
		whole["function"] = object{"name": b.Name, "arguments": json.RawMessage(b.Text)}
		return []object{piece(whole)}
	case r.Quirks.WholeArguments:
		return []object{piece(whole)}
	}
	whole["function"] = object{"name": b.Name, "arguments": ""}
	deltas := []object{piece(whole)}
	for _, p := range b.pieces() {
		deltas = append(deltas, piece(object{"function": object{"arguments": p}}))
	}
	return deltas
}

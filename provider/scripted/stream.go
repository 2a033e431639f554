package scripted

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// Pace slows a model down for people who watch. The zero Pace does not wait.
type Pace struct {
	Round time.Duration // before each reply
	Chunk time.Duration // before each piece of streamed text
}

// Speed is a pace that a person can follow, faster by factor: 2 is twice as
// fast. With 0 nothing waits.
func Speed(factor float64) Pace {
	if factor <= 0 {
		return Pace{}
	}
	slow := func(d time.Duration) time.Duration { return time.Duration(float64(d) / factor) }
	return Pace{Round: slow(800 * time.Millisecond), Chunk: slow(50 * time.Millisecond)}
}

// stream sends one reply. It lives for one call of [Model.Stream], whose
// context it holds.
type stream struct {
	done  <-chan struct{} // of the context
	cause func() error    // why the context ended, nil while it has not
	yield func(provider.Event, error) bool
	pace  Pace
	id    string // of the request; see identify

	begun  bool // something of the answer was yielded
	gone   bool // the consumer broke off
	blocks []transcript.Block
}

func newStream(ctx context.Context, id string, pace Pace, yield func(provider.Event, error) bool) *stream {
	cause := func() error { return context.Cause(ctx) }
	return &stream{done: ctx.Done(), cause: cause, yield: yield, pace: pace, id: id}
}

// send streams r and yields the reply, or the error, that ends the answer.
func (s *stream) send(req provider.Request, r Reply) {
	for _, retry := range r.Fault.Retries {
		if !s.yield(retry, nil) {
			return
		}
	}
	if s.wait(r.Fault.Gate) && s.sleep(s.pace.Round) {
		if r.Fault.Err != nil {
			failure := *r.Fault.Err
			s.yield(nil, &failure)
			return
		}
		if s.deltas(r) {
			s.wait(r.Fault.Midway)
		}
	}
	if s.gone {
		return
	}
	broken := r.Fault.Broken
	if cause := s.cause(); cause != nil {
		broken = cause
		if !s.begun {
			s.yield(nil, cause)
			return
		}
	}
	s.yield(s.reply(req, r, broken), nil)
}

// deltas streams the blocks of r and collects those that are whole. It returns
// false when it was stopped: by the consumer, by the context, by the fault in r.
func (s *stream) deltas(r Reply) bool {
	breaks := r.Fault.Broken != nil
	if r.Think != "" && !s.text(r.Think, true, false) {
		return false
	}
	if r.Say != "" && !s.text(r.Say, false, breaks && len(r.Calls) == 0) {
		return false
	}
	for i, call := range r.Calls {
		if !s.call(i, call, breaks && i == len(r.Calls)-1) {
			return false
		}
	}
	return true
}

// text streams a text or thought; cut ends it in the middle.
func (s *stream) text(text string, thinking, cut bool) bool {
	block := transcript.Block{Type: transcript.Text}
	if thinking {
		block = transcript.Block{Type: transcript.Thinking, Signature: "scripted"}
	}
	index := len(s.blocks)
	pieces := chunks(text)
	if cut {
		pieces = pieces[:len(pieces)/2]
	}
	whole := !cut
	for _, piece := range pieces {
		if !s.sleep(s.pace.Chunk) || !s.emit(delta(index, piece, thinking)) {
			whole = false
			break
		}
		block.Text += piece
	}
	if block.Text != "" {
		s.blocks = append(s.blocks, block)
	}
	return whole
}

func delta(index int, piece string, thinking bool) provider.Event {
	if thinking {
		return provider.ThinkingDelta{Index: index, Text: piece}
	}
	return provider.TextDelta{Index: index, Text: piece}
}

// call streams a tool call; cut ends it in the middle, and it is not kept.
func (s *stream) call(n int, call Call, cut bool) bool {
	index := len(s.blocks)
	id := call.ID
	if id == "" {
		id = "toolu_" + s.id + strconv.Itoa(n)
	}
	input, written := call.Input, string(call.Input)
	switch {
	case call.Malformed != "":
		written = call.Malformed
		input = jsonx.MustMarshal(map[string]string{provider.InvalidJSON: call.Malformed})
	case len(input) == 0:
		input, written = json.RawMessage("{}"), "{}"
	}
	if cut {
		written = written[:len(written)/2]
	}
	if !s.emit(provider.ToolDelta{Index: index, Name: call.Tool}) ||
		!s.emit(provider.ToolDelta{Index: index, Name: call.Tool, JSON: written}) || cut {
		return false
	}
	s.blocks = append(s.blocks, transcript.Block{Type: transcript.ToolUse, ID: id, Name: call.Tool, Input: input})
	return true
}

// emit yields an event of the answer. It returns false when the consumer broke
// off or the context ended.
func (s *stream) emit(e provider.Event) bool {
	if s.gone || s.cause() != nil {
		return false
	}
	s.begun = true
	s.gone = !s.yield(e, nil)
	return !s.gone
}

// reply is what the answer came to, broken for a reason or whole.
func (s *stream) reply(req provider.Request, r Reply, broken error) provider.Reply {
	m := transcript.Message{ID: "msg_" + s.id, Role: transcript.Assistant, Model: req.Model, Content: s.blocks}
	if broken == nil {
		m.StopReason = stopReason(r, m)
	}
	if m.Usage = estimate(req, m); r.Usage != nil {
		m.Usage = *r.Usage
	}
	return provider.Reply{Message: m, RequestID: "req_" + s.id, Broken: broken}
}

func stopReason(r Reply, m transcript.Message) string {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(m.ToolUses()) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// sleep waits for d; false when ctx ended first.
func (s *stream) sleep(d time.Duration) bool {
	if d <= 0 {
		return s.cause() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.done:
		return false
	}
}

// wait waits for a gate, nil being an open one; false when ctx ended first.
func (s *stream) wait(gate <-chan struct{}) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-s.done:
		return false
	}
}

// chunks cuts text after words, into pieces as models stream them.
func chunks(text string) []string {
	const least = 8
	var pieces []string
	begin := 0
	for i, r := range text {
		if i-begin >= least && (r == ' ' || r == '\n') {
			pieces = append(pieces, text[begin:i])
			begin = i
		}
	}
	return append(pieces, text[begin:])
}

package agent

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Run is the loop: ask the model, run the tools it calls, ask again, until it
// calls none. It yields each step before it goes on, so that a consumer that
// stores steps never falls behind the model's view. It ends without an error
// when the model is done; the last pair otherwise carries the error.
//
// When ctx ends, running calls are cancelled and waited for, and every call of the
// last reply still gets its Result before the error. When the consumer breaks
// off, running calls are cancelled and waited for, and nothing more is yielded.
func Run(ctx context.Context, t Turn) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		r := &run{Turn: t, messages: slices.Clone(t.Request.Messages)}
		r.yield = func(s Step) bool {
			r.broken = r.broken || !yield(s, nil)
			return !r.broken
		}
		if err := r.rounds(ctx); err != nil && !r.broken {
			yield(nil, err)
		}
	}
}

// run is the state of one turn.
type run struct {
	Turn
	tools    *tool.Set // those of the last request
	messages []transcript.Message
	used     map[string]bool // ids of all calls in messages
	yield    func(Step) bool
	broken   bool // the consumer broke off

	empty, cutOff int             // consecutive replies of that kind
	outage        provider.Outage // of the reply before the next request
	repeats       repeats
}

// next says what follows a round.
type next int

const (
	goOn next = iota
	finished
)

func (r *run) rounds(ctx context.Context) error {
	for whole := 0; ; {
		if r.MaxRounds > 0 && whole >= r.MaxRounds {
			return ErrMaxRounds
		}
		then, err := r.round(ctx)
		if r.outage.Failures == 0 {
			whole++
		}
		if err != nil || r.broken || then == finished {
			return err
		}
		input, err := r.Input(ctx)
		if err != nil {
			return err
		}
		for _, m := range input {
			r.add(m)
			r.repeats.count = 0 // the model has something new to go on
		}
	}
}

// round makes one model call and runs its tools.
func (r *run) round(ctx context.Context) (next, error) {
	reply, err := r.ask(ctx)
	if err != nil || r.broken {
		return finished, err
	}
	r.outage = reply.Outage
	r.uniqueIDs(&reply.Message)
	if len(reply.Message.Content) == 0 {
		return r.afterEmpty(reply)
	}
	r.empty = 0
	r.add(reply.Message)
	if !r.yield(Reply{reply.Message, reply.RequestID, reply.took}) {
		return finished, nil
	}
	calls := reply.Message.ToolUses()
	if len(calls) == 0 {
		return r.afterText(reply)
	}
	r.cutOff = 0
	return r.runCalls(ctx, calls)
}

// answer is a reply with how long it took.
type answer struct {
	provider.Reply
	took time.Duration
}

// ask streams one reply. Text that was streamed before an interruption becomes
// a reply of its own, so that what the person saw is kept.
func (r *run) ask(ctx context.Context) (answer, error) {
	req := r.Request
	req.Messages, req.Outage = r.messages, r.outage
	req.Tools = r.offer()
	start := time.Now()
	var partial []byte
	for ev, err := range r.Model.Stream(ctx, req) {
		if err != nil {
			if ctx.Err() != nil {
				r.keepPartial(req, partial, time.Since(start))
				return answer{}, context.Cause(ctx)
			}
			return answer{}, err
		}
		switch ev := ev.(type) {
		case provider.Reply:
			if ev.Broken != nil && ctx.Err() != nil { // what broke it is the interruption
				r.keepPartial(req, partial, time.Since(start))
				return answer{}, context.Cause(ctx)
			}
			return answer{ev, time.Since(start)}, nil
		case provider.TextDelta:
			partial = append(partial, ev.Text...)
		}
		if !r.yield(Delta{ev}) {
			return answer{}, nil
		}
	}
	if ctx.Err() != nil {
		r.keepPartial(req, partial, time.Since(start))
		return answer{}, context.Cause(ctx)
	}
	return answer{}, &provider.Error{Class: provider.Malformed, Message: "the answer ended without a reply"}
}

func (r *run) keepPartial(req provider.Request, text []byte, took time.Duration) {
	if len(text) == 0 || r.broken {
		return
	}
	m := transcript.Message{Role: transcript.Assistant, Model: req.Model, Content: []transcript.Block{transcript.TextBlock(string(text))}}
	r.add(m)
	r.yield(Reply{Message: m, Took: took})
}

// afterEmpty asks again after a reply without content, a few times.
func (r *run) afterEmpty(reply answer) (next, error) {
	switch {
	case r.outage.Failures > 0:
		return goOn, nil // the same request again
	case reply.Broken != nil:
		return r.afterBroken(reply.Broken)
	}
	if r.empty++; r.empty >= patience {
		return finished, ErrEmpty
	}
	return goOn, nil
}

// afterText decides what follows a reply without calls.
func (r *run) afterText(reply answer) (next, error) {
	switch {
	case reply.Broken != nil:
		return r.afterBroken(reply.Broken)
	case reply.Message.StopReason == "pause_turn":
		if r.cutOff++; r.cutOff > patience {
			return finished, ErrCutOff
		}
		return goOn, nil
	case reply.Message.StopReason == "max_tokens":
		return r.goOnAfter(ErrCutOff, "Your reply reached the limit of its length and was cut off. Go on right where it stopped; if you were writing a tool call, make it again with less in it.")
	}
	return finished, nil
}

// afterBroken asks again after a reply that broke off. In an outage the provider
// waits before it sends that request, and decides when it has been enough.
func (r *run) afterBroken(cause error) (next, error) {
	if r.outage.Failures > 0 {
		r.cutOff = 0
	}
	return r.goOnAfter(cause, "The connection broke in the middle of your reply. What arrived stands above; a tool call that was not whole has not been run. Go on from there.")
}

// goOnAfter adds a note for the model; when that happens too often in a row the
// turn ends with err.
func (r *run) goOnAfter(err error, note string) (next, error) {
	if r.cutOff++; r.cutOff > patience {
		return finished, err
	}
	m := transcript.UserText(note)
	if !r.yield(Note{m}) {
		return finished, nil
	}
	r.add(m)
	return goOn, nil
}

// add appends a message; neighbours of one role become one message, in a new
// slice, since requests already sent may still be read.
func (r *run) add(m transcript.Message) {
	r.messages = transcript.Join(r.messages, m)
}

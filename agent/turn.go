// Package agent is the loop: one turn of a model with tools. It keeps nothing
// between calls and stores nothing; its caller, who ranges over [Run], does.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Turn is everything that one run of the loop needs.
type Turn struct {
	Model provider.Model
	// Request is sent each round, with the tools of that moment; Messages is the
	// conversation so far and ends with the user message that the turn answers.
	Request provider.Request
	// Tools is asked before each request. The calls of a reply are looked up among
	// the tools of the request that it answers, also when they have changed since.
	Tools tool.Source
	// Offered, when set, reports whether the next request offers a tool to the model:
	// what an agent is offered can change in the middle of a turn. A tool that is
	// not offered is still found when it is called; Permit decides.
	Offered func(tool.Spec) bool
	// Permit decides about a call of t that passed its schema. It blocks while a
	// person is asked, and may be called by several goroutines at once.
	Permit func(ctx context.Context, t tool.Tool, call tool.Call) Verdict
	// Input returns what arrived since the last round, already stored, or
	// nothing. It is called between rounds and does not wait for input.
	Input func(ctx context.Context) ([]transcript.Message, error)
	// MaxRounds ends the turn with [ErrMaxRounds]; 0 means no limit.
	MaxRounds int
	// RepeatsNoted is after how many equal rounds (the same calls with the same
	// results) the model is reminded of it; after twenty times as many the turn ends
	// with [ErrRepeating]. 0: it may repeat itself without end.
	RepeatsNoted int
}

// Verdict is the answer of [Turn.Permit].
type Verdict struct {
	Allow   bool
	Input   json.RawMessage // replaces the call's input; nil keeps it
	Reason  string          // of a refusal, for the model
	EndTurn bool            // a refusal may end the turn
	Note    string          // of an approval: what the model reads after the results of its round
}

// Step is one thing that a turn did: [Delta], [Reply], [Started] or [Result].
// The loop goes on only when the consumer's range body returns to it.
type Step interface{ step() }

// Delta is an event of a reply that is still streaming. Nothing of it is kept.
type Delta struct{ Event provider.Event }

// Reply is a whole reply of the model, with the calls that will be run.
type Reply struct {
	Message   transcript.Message
	RequestID string
	Took      time.Duration
}

// Started says that a call is permitted and about to run.
type Started struct {
	Call tool.Call
	Tool string // the tool's own name
}

// Result is what a call gave. Each call of a Reply has exactly one.
type Result struct {
	Call   tool.Call
	Spec   tool.Spec // of the tool; the zero Spec when there is none of that name
	Result tool.Result
	Denied bool   // the permission decision refused it
	Note   string // that came with the approval; a [Note] follows for it
	Took   time.Duration
}

// Note is a user message that the loop itself adds between rounds: to go on after
// a reply that was cut off, to remind the model that it repeats itself, or to tell
// what came with an approval. It stands
// apart from the results, so that no tool's output can pass for it.
type Note struct{ Message transcript.Message }

func (Delta) step()   {}
func (Reply) step()   {}
func (Started) step() {}
func (Result) step()  {}
func (Note) step()    {}

// How a turn can end early. Errors of the model are a [*provider.Error]; an
// interrupted turn ends with the cause of its context.
var (
	ErrMaxRounds = errors.New("the limit of rounds is reached")
	ErrEmpty     = errors.New("the model answered with nothing, repeatedly")
	ErrStuck     = errors.New("the model repeats the same failing tool call")
	ErrRepeating = errors.New("the model repeats the same tool calls with the same results")
	ErrCutOff    = errors.New("the model's replies were cut off repeatedly")
)

// maxParallel is how many calls of one reply run at the same time.
const maxParallel = 16

// patience is how often in a row the loop goes on after an empty, a cut off or
// an equally failing reply.
const patience = 3

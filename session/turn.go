package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/agent"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// turn is the running turn as the owner sees it.
type turn struct {
	stop    context.CancelCauseFunc
	publish func(event.Body)
	steps   chan handed
	done    chan error

	arrived *arrival

	stopped   bool // interrupted by the owner
	started   time.Time
	entries   []transcript.Entry // stored since the turn began, its input first
	callEntry map[string]string  // tool_use id -> uuid of its entry
	outcome   event.Outcome
}

// handed is a step on its way to the owner. The turn waits for the reply.
type handed struct {
	step  any // a step that is stored, or takeInput
	reply chan acknowledgement
}

type acknowledgement struct {
	messages []transcript.Message // for takeInput
	err      error                // the step could not be kept; the turn must end
}

// newInput asks for what arrived since the last round.
type newInput struct{}

func (t *turn) interrupt(cause error) {
	t.stopped = true
	t.stop(cause)
}

func (o *owner) steps() <-chan handed {
	if o.turn == nil {
		return nil
	}
	return o.turn.steps
}

func (o *owner) turnEnd() <-chan error {
	if o.turn == nil {
		return nil
	}
	return o.turn.done
}

// startTurn stores the input that is due and starts a turn on it. Input that cannot
// be kept is refused, and without any there is no turn; there is when only what the
// model has not answered keeps waiting input back.
func (o *owner) startTurn(life context.Context) {
	t := &turn{
		publish: o.publish, steps: make(chan handed), done: make(chan error, 1), arrived: newArrival(),
		started: time.Now(), callEntry: make(map[string]string),
	}
	err := o.storeDanglingResults(life)
	if err == nil {
		err = o.rise(life)
	}
	if err != nil {
		o.fail(err)
		o.refuse(err, o.intake.drop()...)
		return
	}
	input := o.portion()
	messages := o.storeInput(life, t, input)
	if len(input) > 0 && len(messages) == 0 {
		return
	}
	ctx := tool.WithArrived(tool.WithCaller(context.WithoutCancel(life), o.cfg.Caller), t.arrived.channel)
	ctx, stop := context.WithCancelCause(ctx)
	t.stop = stop
	o.turn, o.begun = t, true
	o.cfg.Life.Begins()
	o.publish(event.TurnStarted{Input: titleOf(input)})
	go t.run(ctx, agent.Turn{
		Model: o.cfg.Model, Request: o.request(messages), Tools: o.cfg.Tools, MaxRounds: o.cfg.Limits.Rounds, RepeatsNoted: o.cfg.Limits.Repeats,
		Offered: o.offered(), Permit: o.permitFunc(), Input: t.newInput,
	})
}

// titleOf is what a turn on this input is about. Without any, it is about what the
// model was given before and has not answered.
func titleOf(input []Input) string {
	if len(input) == 0 {
		return "once more"
	}
	return input[0].Title
}

func (o *owner) request(input []transcript.Message) provider.Request {
	messages := slices.Clip(o.conversation)
	for _, m := range input {
		messages = transcript.Join(messages, m)
	}
	return provider.Request{
		Model: o.cfg.ModelName, System: o.cfg.System, Messages: messages,
		Agent: provider.Agent{
			Name: o.cfg.Caller.AgentName, Team: o.cfg.Caller.Team,
			Session: o.cfg.Caller.SessionID, ID: o.cfg.Caller.AgentID,
		},
	}
}

// run is the turn's goroutine: it ranges over the loop, publishes the steps of which
// nothing is stored, and hands the others to the owner. The owner receives steps until run
// has returned, so nothing here waits on the context.
func (t *turn) run(ctx context.Context, spec agent.Turn) {
	var ended error
	for step, err := range agent.Run(ctx, spec) {
		if err == nil && !t.publishStep(step) {
			err = t.hand(step).err
		}
		if err != nil {
			ended = err
			break
		}
	}
	t.stop(nil)
	t.done <- ended
}

func (t *turn) hand(step any) acknowledgement {
	h := handed{step, make(chan acknowledgement, 1)}
	t.steps <- h
	return <-h.reply
}

func (t *turn) newInput(context.Context) ([]transcript.Message, error) {
	ack := t.hand(newInput{})
	return ack.messages, ack.err
}

// handleStep stores a step, publishes it, and lets the turn go on.
func (o *owner) handleStep(life context.Context, h handed) {
	var ack acknowledgement
	switch step := h.step.(type) {
	case agent.Reply:
		ack.err = o.storeReply(life, o.turn, step)
	case agent.Result:
		ack.err = o.storeResult(life, o.turn, step)
	case agent.Note:
		ack.err = o.store(life, o.turn, o.entry(transcript.KindUser, step.Message))
	case newInput:
		if o.closing == nil {
			ack.messages = o.storeInput(life, o.turn, o.portion())
		}
	}
	h.reply <- ack
}

// publishStep publishes a step of which nothing is stored; false when it is another. It
// does so in the turn's goroutine: to hand over each piece of a text would cost more
// than all else that is done with it.
func (t *turn) publishStep(step agent.Step) bool {
	switch step := step.(type) {
	case agent.Delta:
		t.publishDelta(step.Event)
		return true
	case agent.Started:
		t.publish(event.ToolStarted{Call: step.Call.ID, Tool: step.Tool, Input: step.Call.Input})
		return true
	}
	return false
}

func (t *turn) publishDelta(ev provider.Event) {
	switch ev := ev.(type) {
	case provider.TextDelta:
		t.publish(event.TextDelta{Text: ev.Text})
	case provider.ThinkingDelta:
		t.publish(event.TextDelta{Text: ev.Text, Thinking: true})
	case provider.Waiting:
		t.publish(event.Waiting{Host: ev.Host, Attempt: ev.Attempt, Silent: ev.Silent, Limit: ev.Limit})
	case provider.Retrying:
		t.publish(event.Retrying{
			Attempt: ev.Attempt, Max: ev.Max, Wait: ev.Wait, Left: ev.Left,
			Status: ev.Err.Status, Reason: ev.Err.Message, Silent: ev.Err.Silent,
		})
	}
}

// endTurn completes a turn that has returned.
func (o *owner) endTurn(life context.Context, err error) {
	t := o.turn
	o.turn = nil
	o.dropAsks(life, "the turn has ended")
	out := &t.outcome
	out.Took = time.Since(t.started)
	out.Reason = t.reason(err)
	if out.Reason == event.Done && o.idleness.repeat.due == nil {
		o.unstored = unstored{}
	}
	switch out.Reason {
	case event.Interrupted:
		out.Err = err.Error()
		o.storeInterruption(life, t)
	case event.Failed:
		out.Err = err.Error()
		var failed *provider.Error
		if errors.As(err, &failed) {
			out.Class, out.Status = string(failed.Class), failed.Status
			out.Err = failed.Message
		}
		o.stall()
		out.Stalled = o.stalledMessages()
	}
	o.conversation = transcript.Continue(o.conversation, t.entries)
	o.dangling = append(o.dangling, transcript.Dangling(t.entries)...)
	o.lastEnd = out
	o.publish(event.TurnEnded{Outcome: *out})
	if o.closing == nil && !o.isDue() {
		o.publish(event.Idle{Reason: string(out.Reason)})
	}
}

func (t *turn) reason(err error) event.Reason {
	switch {
	case err == nil:
		return event.Done
	case t.stopped:
		return event.Interrupted
	case errors.Is(err, agent.ErrMaxRounds):
		return event.MaxRounds
	}
	return event.Failed
}

// storeInterruption keeps the words that tell the model, later, that it was
// interrupted.
func (o *owner) storeInterruption(life context.Context, t *turn) {
	text := transcript.Interrupted
	if n := len(t.entries); n > 0 {
		last := t.entries[n-1].Message.Content
		if len(last) > 0 && last[len(last)-1].Type == transcript.ToolResult {
			text = transcript.InterruptedForTool
		}
	}
	if err := o.store(life, t, o.entry(transcript.KindUser, transcript.UserText(text))); err != nil {
		o.fail(err)
	}
}

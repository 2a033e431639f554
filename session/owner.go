package session

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/transcript"
)

// owner is the state of a session. Only its goroutine touches it.
type owner struct {
	*Session
	cfg Config

	history
	intake
	idleness
	acks
	unstored unstored

	turn      *turn             // nil when there is none
	seenMode  permission.Mode   // the mode as the model knows it; see [Voice.ModeNote]
	prefaced  bool              // the preface has been asked for
	accepting int               // answers whose rule changes are being accepted
	approvals map[string]string // ids of asks that were approved late, by [callKey]
	epoch     uint64
	arrived   bool  // the last message came by the queue
	closing   error // why the session ends; nil while it lives
}

// history is what stands in the transcript.
type history struct {
	conversation []transcript.Message // of the turns that have ended; nil while resting
	resting      bool                 // see [owner.rest]
	lastUUID     string
	dangling     []transcript.Block // stored calls whose result could not be stored
	opened       bool               // what was stored has been read; what comes from now on is new
}

// idleness is what [Life.Idle] has to be called for. A goroutine calls it, which the
// owner waits for.
type idleness struct {
	idling   bool // it runs
	idleDone chan idleResult
	lastEnd  *event.Outcome // the turn that it has not been called with yet
	woken    bool           // a signal of Wake came while it ran
	repeat   idleRepeat
	begun    bool // there was a turn
}

type idleResult struct {
	last *event.Outcome // what it was called with
	in   *Input
	err  error
}

// idleRepeat is a call of [Life.Idle] that failed. Others wait for the note that the agent
// is idle, so the call is made again after a pause.
type idleRepeat struct {
	due      <-chan time.Time // nil: there is none
	last     *event.Outcome
	reported string // the error that a person was shown
}

func newOwner(s *Session, cfg Config) *owner {
	cfg.complete()
	return &owner{
		Session: s, cfg: cfg, seenMode: cfg.Policy.Mode,
		approvals: make(map[string]string),
		idleness:  idleness{idleDone: make(chan idleResult, 1)},
		acks:      acks{done: make(chan struct{}, 1)},
	}
}

// run is the owner's goroutine. It ends when the session is closed or leaves,
// the turn has returned, and everything it started has been waited for.
func (o *owner) run(life context.Context) {
	defer close(o.gone)
	o.feed(life)
	for {
		o.advance(life)
		o.publishState()
		if o.arrived {
			o.coming.Add(-1)
		}
		if !o.State().Busy {
			o.tree.RaiseIdle()
			o.tree.scavenger.later()
			o.rest()
		}
		o.acks.start(life, o.publishState)
		if o.closing != nil && o.turn == nil {
			break
		}
		o.handleNext(life)
	}
	o.end(o.closing)
	o.finish(life)
}

// handleNext waits for what happens next, and deals with it.
func (o *owner) handleNext(life context.Context) {
	o.arrived = false
	var ended <-chan struct{}
	if o.closing == nil {
		ended = life.Done()
	}
	select {
	case msg := <-o.queue:
		o.arrived = true
		msg.reach(life, o)
	case step := <-o.steps():
		o.handleStep(life, step)
	case end := <-o.turnEnd():
		o.endTurn(life, end)
	case res := <-o.idleDone:
		o.endIdle(res)
	case <-o.wake():
		o.woken = true
	case <-o.repeat.due:
		o.repeatIdle()
	case <-o.acks.done:
		o.acks.running = false
		if !o.acks.pending() {
			o.order.closeGap()
		}
	case <-ended:
		o.leave(context.Cause(life))
	}
}

// queueInput puts input behind what is waiting with the same rank.
func (o *owner) queueInput(in Input) {
	if o.closing != nil {
		o.acks.add(in, ErrClosed)
		return
	}
	o.intake.add(in)
	if o.turn != nil && !in.Quiet {
		o.turn.arrived.signal()
	}
}

// advance starts what can be started: the next turn, or [Life.Idle]. One waits for the
// other: a note that the agent is idle must not be overtaken by the turn that makes it
// untrue, nor be missing at the end of that turn.
func (o *owner) advance(life context.Context) {
	if o.turn == nil && o.closing == nil && !o.idling {
		if o.isDue() {
			o.startTurn(life)
		}
		if o.turn == nil {
			o.startIdle(life)
		}
	}
}

// startIdle runs Life.Idle when there is something to tell it.
func (o *owner) startIdle(life context.Context) {
	if !o.begun || (o.lastEnd == nil && !o.woken) {
		return
	}
	last := o.lastEnd
	o.lastEnd, o.woken, o.idling = nil, false, true
	go func() {
		in, err := o.cfg.Life.Idle(life, last)
		o.idleDone <- idleResult{last, in, err}
	}()
}

func (o *owner) endIdle(res idleResult) {
	o.idling = false
	switch {
	case errors.Is(res.err, ErrLeave):
		o.leave(ErrLeave)
	case res.err == nil:
		o.repeat.reported = ""
		o.unstored = unstored{}
	case o.closing == nil:
		o.unstored.add(res.err)
		o.repeat.due, o.repeat.last = time.After(sourcePause), res.last
		if text := res.err.Error(); text != o.repeat.reported {
			o.repeat.reported = text
			o.warn(res.err)
		}
	}
	if res.in != nil {
		o.queueInput(*res.in)
	}
}

// repeatIdle has Life.Idle called once more with what it failed on, unless something has
// happened since that it is to be called with.
func (o *owner) repeatIdle() {
	if o.lastEnd == nil {
		o.lastEnd = o.repeat.last
	}
	o.woken = o.woken || o.lastEnd == nil
	o.repeat.due, o.repeat.last = nil, nil
}

// wake is the wake channel while its signals matter.
func (o *owner) wake() <-chan struct{} {
	if o.turn != nil || o.woken {
		return nil // a signal waits in the channel until the session is idle
	}
	return o.cfg.Life.Wake()
}

// leave begins the end of the session.
func (o *owner) leave(cause error) {
	if o.closing != nil {
		return
	}
	o.closing = cause
	if o.turn != nil {
		o.turn.interrupt(cause)
	}
	o.refusePending()
}

func (o *owner) refusePending() {
	for _, in := range o.intake.drop() {
		o.acks.add(in, ErrClosed)
	}
}

// finish waits for everything the owner started and closes the transcript.
func (o *owner) finish(life context.Context) {
	o.abandonAsks(life)
	o.pumps.Wait()
	if o.idling {
		if res := <-o.idleDone; res.in != nil {
			o.acks.add(*res.in, ErrClosed)
		}
	}
	for o.acks.pending() {
		o.acks.start(life, o.publishState)
		<-o.acks.done
		o.acks.running = false
	}
	o.tree.memory.recall(o.Session)
	o.failed = o.cfg.Log.Close()
}

// feed runs a goroutine per source that hands its input to the queue.
func (o *owner) feed(ctx context.Context) {
	for _, src := range o.cfg.Sources {
		o.pumps.Go(func() {
			o.pump(ctx, src)
			if closer, ok := src.(io.Closer); ok {
				_ = closer.Close()
			}
		})
	}
}

// sourcePause is how long a failing source is left alone.
const sourcePause = time.Second

func (o *owner) pump(ctx context.Context, src Source) {
	gaps, next := 0, make(chan int, 1)
	for ctx.Err() == nil {
		inputs, err := src.Next(ctx)
		if ctx.Err() != nil {
			return
		}
		var msg message = sourceInput{inputs, gaps, next}
		if err != nil {
			msg = sourceError{err}
		}
		if o.put(ctx, msg) != nil {
			return
		}
		var pause <-chan time.Time
		if err != nil {
			pause = time.After(sourcePause)
		}
		select {
		case <-pause:
		case gaps = <-next:
		case <-ctx.Done():
		}
	}
}

func (o *owner) publish(body event.Body) { o.tree.Stream.Publish(o.agent, body) }

// publishState lets others see what the session does.
func (o *owner) publishState() {
	o.epoch++
	busy := o.turn != nil || o.isDue() || o.idling || o.lastEnd != nil ||
		o.begun && (o.woken || len(o.cfg.Life.Wake()) > 0) || o.acks.pending() || o.accepting > 0
	o.state.Store(&State{
		Busy: busy, Epoch: o.epoch, Mode: o.cfg.Policy.Mode, Model: o.cfg.ModelName, Stalled: o.stalledMessages(),
		Unstored: o.unstored.reason(),
	})
}

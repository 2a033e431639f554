package provider

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// How long a request may go without progress before it counts as stalled.
const (
	// DefaultFirstByte is how long a server may take to begin its response. A
	// server that works begins at once, before the model does.
	DefaultFirstByte = time.Minute
	// DefaultIdle is the longest gap between two pieces of a text.
	DefaultIdle = 90 * time.Second
	// DefaultPatience is the longest silence while the model may be working
	// unseen: before the first piece of the answer, in a thought, in a call.
	DefaultPatience = 5 * time.Minute
)

// Limits say how long a server may be silent. A zero field means its default.
type Limits struct {
	FirstByte time.Duration // before its response begins
	Idle      time.Duration // between two pieces of a text
	Patience  time.Duration // while the model may work unseen: before the first piece, in a thought or call; twice that while it sends signs of life
}

// WithDefaults fills in what is not set.
func (l Limits) WithDefaults() Limits {
	if l.FirstByte <= 0 {
		l.FirstByte = DefaultFirstByte
	}
	if l.Patience <= 0 {
		l.Patience = max(DefaultPatience, l.Idle)
	}
	if l.Idle <= 0 {
		l.Idle = min(DefaultIdle, l.Patience)
	}
	return l
}

// Watchdog ends a request that makes no progress. What counts as progress is
// the caller's to say: bytes that carry nothing of the answer (pings, headers)
// do not. Its methods are called by the one goroutine that reads the answer.
type Watchdog struct {
	limit  atomic.Int64 // the limit that runs, for the message
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// Watch derives a context that is cancelled, with a [*Error] of class [Stalled]
// as its cause, when limit passes before the next call of Within, Hold or Stop.
// The caller must Stop the watchdog.
func Watch(ctx context.Context, limit time.Duration) (context.Context, *Watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watchdog{cancel: cancel}
	w.limit.Store(int64(limit))
	w.timer = time.AfterFunc(limit, w.expire)
	return ctx, w
}

// Within restarts the clock: there must be progress within limit.
func (w *Watchdog) Within(limit time.Duration) {
	w.limit.Store(int64(limit))
	w.timer.Reset(limit)
}

// Hold stops the clock, so that a slow consumer does not count as a slow
// server. Within starts it again.
func (w *Watchdog) Hold() { w.timer.Stop() }

// Stop ends the watch and releases the context.
func (w *Watchdog) Stop() {
	w.timer.Stop()
	w.cancel(nil)
}

func (w *Watchdog) expire() {
	limit := time.Duration(w.limit.Load())
	w.cancel(&Error{
		Class: Stalled, Silent: limit,
		Message: fmt.Sprintf("the model's server sent no part of an answer for %s", limit),
	})
}

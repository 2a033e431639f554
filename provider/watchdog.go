package provider

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// How long a request may go without progress before it counts as stalled.
const (
	// DefaultIdle is the longest gap between two pieces of an answer.
	DefaultIdle = 90 * time.Second
	// DefaultPatience is the longest silence while the model may be working
	// unseen: reading a long prompt before the first piece of the answer.
	DefaultPatience = 5 * time.Minute
)

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

// Within starts the clock anew: there must be progress within limit.
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
	w.cancel(&Error{
		Class:   Stalled,
		Message: fmt.Sprintf("the model's server sent nothing of an answer for %s", time.Duration(w.limit.Load())),
	})
}

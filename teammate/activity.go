package teammate

import (
	"context"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/ctxlock"
	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/team"
)

// activity keeps the isActive flag true by which the roster says whether the agent is at
// work.
type activity struct {
	seat    *team.Seat
	changed signal.Signal
	writing ctxlock.Mutex // held while the flag is written

	mu      sync.Mutex
	working bool
	known   bool // a state was set
}

func newActivity(seat *team.Seat) *activity {
	return &activity{seat: seat, changed: signal.New(), writing: ctxlock.New()}
}

// set changes the state, which write writes later. It does not block.
func (a *activity) set(working bool) {
	a.mu.Lock()
	a.working, a.known = working, true
	a.mu.Unlock()
	a.changed.Raise()
}

// write writes the newest state. Of several calls the last writes what holds.
func (a *activity) write(ctx context.Context) error {
	if err := a.writing.Lock(ctx); err != nil {
		return err
	}
	defer a.writing.Unlock()
	a.mu.Lock()
	working, known := a.working, a.known
	a.mu.Unlock()
	if !known {
		return nil
	}
	return a.seat.SetActive(ctx, working)
}

// follow writes each state until ctx ends. Another program that writes the roster
// without a lock may overwrite it, so it is checked regularly and written again.
func (a *activity) follow(ctx context.Context, warn func(error)) {
	check := time.NewTicker(activityCheck)
	defer check.Stop()
	for {
		select {
		case <-a.changed:
			if err := a.write(ctx); err != nil && ctx.Err() == nil {
				warn(err)
			}
		case <-check.C:
			_ = a.write(ctx) // what fails is written with the next check
		case <-ctx.Done():
			return
		}
	}
}

// activityCheck is how long the roster may say something else of a teammate than it
// has written.
const activityCheck = time.Second

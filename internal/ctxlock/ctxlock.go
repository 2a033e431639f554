// Package ctxlock is a mutex that a context can end the waiting for. So it may be
// held across I/O, which a sync.Mutex may not.
package ctxlock

import "context"

// Mutex is held by one goroutine at a time. Make it with [New].
type Mutex chan struct{}

// New makes a Mutex that nobody holds.
func New() Mutex { return make(Mutex, 1) }

// Lock waits for the mutex. When ctx ends first it returns the cause, and the
// mutex is not held. Of a mutex that is free and a context that has ended, either
// may win.
func (m Mutex) Lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unlock gives the mutex back. Only who holds it may call it.
func (m Mutex) Unlock() { <-m }

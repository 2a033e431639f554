package tool

import (
	"context"
	"sync"
)

// Place is the position of a call in the queue of the calls of one tool in one reply,
// which run in parallel. A tool that does part of its work in the order of the calls
// awaits its turn for that part, and leaves the queue after it. No call is before the
// nil Place. Its methods may be called from any goroutine.
type Place struct {
	earlier []*Place
	left    chan struct{}
	leave   func() // closes left
}

// NewPlace is the place of a call behind earlier ones.
func NewPlace(earlier []*Place) *Place {
	left := make(chan struct{})
	return &Place{earlier, left, sync.OnceFunc(func() { close(left) })}
}

// Await blocks until every earlier call has left the queue or has ended. The error is
// the cause of ctx.
func (p *Place) Await(ctx context.Context) error {
	if p == nil {
		return nil
	}
	for _, e := range p.earlier {
		select {
		case <-e.left:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Leave lets the later calls pass. It does not block, and does nothing the second time.
func (p *Place) Leave() {
	if p != nil {
		p.leave()
	}
}

type placeKey struct{}

// WithPlace returns a context that carries the place of a call.
func WithPlace(ctx context.Context, p *Place) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// PlaceFrom returns the place that ctx carries, or nil.
func PlaceFrom(ctx context.Context) *Place {
	p, _ := ctx.Value(placeKey{}).(*Place)
	return p
}

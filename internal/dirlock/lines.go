package dirlock

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/pause"
)

// queues are the lines in front of the targets of this process. They are
// global because what they guard is.
var queues lines

type lines struct {
	mu    sync.Mutex
	lines map[string]*line
}

// line lets one goroutine in at a time, in the order they came.
type line struct {
	slot  chan struct{} // capacity one: who could send is in
	users int
}

// enter waits for its turn at target. leave must be called once.
func (q *lines) enter(ctx context.Context, target string) (leave func(), err error) {
	q.mu.Lock()
	l := q.lines[target]
	if l == nil {
		if q.lines == nil {
			q.lines = make(map[string]*line)
		}
		l = &line{slot: make(chan struct{}, 1)}
		q.lines[target] = l
	}
	l.users++
	q.mu.Unlock()
	select {
	case l.slot <- struct{}{}:
		return func() { <-l.slot; q.forget(target, l) }, nil
	case <-ctx.Done():
		q.forget(target, l)
		return nil, context.Cause(ctx)
	}
}

func (q *lines) forget(target string, l *line) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(q.lines, target)
	}
}

// backOff waits between two tries: jittered, growing, at most longest.
func backOff(ctx context.Context, try int, longest time.Duration) error {
	limit := min(longest, 2*time.Millisecond<<min(try, 10))
	return pause.For(ctx, limit/2+rand.N(limit/2))
}

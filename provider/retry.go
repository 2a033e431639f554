package provider

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/pause"
)

// RetryPolicy says how a request that failed in a passing way is repeated. A
// zero field means its default.
type RetryPolicy struct {
	MaxAttempts int           // requests in all, the first one included; default 6, 1 means no retry
	Base        time.Duration // upper bound of the first wait, doubled for each further one; default 500 ms
	Cap         time.Duration // upper bound of the waits we choose; default 30 s
	AskedCap    time.Duration // upper bound of the waits a server asks for; default 2 min
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.MaxAttempts <= 0 {
		p.MaxAttempts = 6
	}
	if p.Base <= 0 {
		p.Base = 500 * time.Millisecond
	}
	if p.Cap <= 0 {
		p.Cap = 30 * time.Second
	}
	if p.AskedCap <= 0 {
		p.AskedCap = 2 * time.Minute
	}
	return p
}

// jitter picks a wait between 0 and the bound for the n-th failure. Full jitter
// spreads agents that failed together better than a fixed wait with some noise.
func (p RetryPolicy) jitter(n int) time.Duration {
	bound := p.Cap
	if n < 32 && p.Base<<(n-1) < p.Cap {
		bound = p.Base << (n - 1)
	}
	return rand.N(bound + 1)
}

// wait is how long to wait after the n-th failure. A wait that the server asks
// for is a lower bound: who asks many agents to come back in two seconds does
// not want them all at once then.
func (p RetryPolicy) wait(n int, failure *Error) time.Duration {
	if failure.RetryAfter > 0 {
		return min(failure.RetryAfter, p.AskedCap) + p.jitter(n+1)
	}
	return p.jitter(n)
}

// maxStalls is how often one request may stall: each stall has already cost
// minutes, so it is tried once more only.
const maxStalls = 2

// Retrier repeats the requests to one API by one policy. When the API asks one
// request to wait, the requests that start meanwhile wait too. It is safe for
// use by many goroutines.
type Retrier struct {
	policy RetryPolicy

	mu   sync.Mutex
	held time.Time // no first attempt before
	by   *Error    // the refusal that said so
}

// NewRetrier makes a Retrier.
func NewRetrier(policy RetryPolicy) *Retrier {
	return &Retrier{policy: policy.withDefaults()}
}

// Attempt makes one request and hands the events of its answer to emit. emit
// reports whether the consumer wants more; after false the attempt closes the
// request and returns. An error is a [*Error], or whatever ended ctx; an
// attempt that has emitted anything ends with a [Reply] instead of an error.
type Attempt func(ctx context.Context, emit func(Event) bool) error

// Stream runs attempt until it succeeds, fails for good, or ctx ends, as
// [Model] demands of its Stream.
func (r *Retrier) Stream(ctx context.Context, attempt Attempt) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := &try{retrier: r, attempt: attempt, yield: yield}
		if err := t.run(ctx); err != nil && !t.stopped {
			yield(nil, err)
		}
	}
}

// try is the state of one Stream.
type try struct {
	retrier *Retrier
	attempt Attempt
	yield   func(Event, error) bool
	told    bool // something of the answer was yielded
	stopped bool // the consumer broke off
	stalls  int
}

func (t *try) emit(ev Event) bool {
	if t.stopped {
		return false
	}
	t.told = true
	t.stopped = !t.yield(ev, nil)
	return !t.stopped
}

func (t *try) run(ctx context.Context) error {
	retry := t.retrier.heldBack()
	for n := 1; ; n++ {
		if retry != nil {
			if t.stopped = !t.yield(*retry, nil); t.stopped {
				return nil
			}
			if err := pause.For(ctx, retry.Wait); err != nil {
				return err
			}
		}
		err := t.attempt(ctx, t.emit)
		switch {
		case err == nil || t.stopped:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if retry = t.next(n, err); retry == nil {
			return err
		}
	}
}

// next says how to go on after the n-th attempt failed; nil means not at all.
func (t *try) next(n int, err error) *Retrying {
	var failure *Error
	if !errors.As(err, &failure) || !failure.Passing() || t.told {
		return nil
	}
	if failure.Class == Stalled {
		if t.stalls++; t.stalls >= maxStalls {
			return nil
		}
	}
	policy := t.retrier.policy
	if n >= policy.MaxAttempts {
		return nil
	}
	t.retrier.holdBack(failure)
	return &Retrying{Attempt: n + 1, Max: policy.MaxAttempts, Wait: policy.wait(n, failure), Err: failure}
}

// holdBack makes requests that start from now on wait as long as the server
// asked this one to.
func (r *Retrier) holdBack(failure *Error) {
	if failure.RetryAfter <= 0 {
		return
	}
	until := time.Now().Add(min(failure.RetryAfter, r.policy.AskedCap))
	r.mu.Lock()
	defer r.mu.Unlock()
	if until.After(r.held) {
		r.held, r.by = until, failure
	}
}

func (r *Retrier) heldBack() *Retrying {
	r.mu.Lock()
	held, by := r.held, r.by
	r.mu.Unlock()
	left := time.Until(held)
	if left <= 0 {
		return nil
	}
	return &Retrying{Attempt: 1, Max: r.policy.MaxAttempts, Wait: left + r.policy.jitter(2), Err: by}
}

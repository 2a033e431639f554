package provider

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/pause"
)

// Forever, as [RetryPolicy.For], repeats a request until its context ends.
const Forever = time.Duration(math.MaxInt64)

// DefaultRetryFor is how long a request is repeated when nobody says otherwise:
// long enough for a server that restarts or is overloaded for some minutes.
const DefaultRetryFor = 10 * time.Minute

// RetryPolicy says how a request that failed in a passing way is repeated. A
// zero field means its default.
type RetryPolicy struct {
	For      time.Duration // how long after the first failure; default DefaultRetryFor, negative: not at all
	Base     time.Duration // upper bound of the first wait, doubled for each further one; default 500 ms
	Cap      time.Duration // upper bound of the waits we choose; default 30 s
	AskedCap time.Duration // upper bound of the waits a server asks for; default 10 min
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.For == 0 {
		p.For = DefaultRetryFor
	}
	if p.Base <= 0 {
		p.Base = 500 * time.Millisecond
	}
	if p.Cap <= 0 {
		p.Cap = 30 * time.Second
	}
	if p.AskedCap <= 0 {
		p.AskedCap = 10 * time.Minute
	}
	return p
}

// bound is the longest wait after the n-th failure.
func (p RetryPolicy) bound(n int) time.Duration {
	if n < 32 && p.Base<<(n-1) < p.Cap {
		return p.Base << (n - 1)
	}
	return p.Cap
}

// jitter picks a wait between 0 and the bound for the n-th failure. Full jitter
// spreads agents that failed together better than a fixed wait with some noise.
func (p RetryPolicy) jitter(n int) time.Duration { return rand.N(p.bound(n) + 1) }

// asked is the least wait that the server wants after a failure.
func (p RetryPolicy) asked(failure *Error) time.Duration { return min(failure.RetryAfter, p.AskedCap) }

// wait is how long to wait after the failures of an outage; again is false when
// the request is not to be repeated. A wait that the server asks for is a lower
// bound, kept closely: a server that asks many agents to come back in two seconds does not
// want them all at once then. The last wait ends when the time is up, so that the last attempt
// is made then.
func (p RetryPolicy) wait(o Outage) (wait time.Duration, again bool) {
	left := p.left(o)
	asked := p.asked(o.Last)
	if left <= 0 || o.Last.RetryAfter > left {
		return 0, false
	}
	if wait = p.jitter(o.Failures); asked > 0 {
		wait = asked + rand.N(min(p.bound(o.Failures+1), max(2*p.Base, asked/2))+1)
	}
	return min(wait, left), true
}

// left is how much of the time for repeating is left in an outage.
func (p RetryPolicy) left(o Outage) time.Duration {
	if p.For == Forever {
		return Forever
	}
	return p.For - time.Since(o.Since)
}

// attempts is about how many attempts an outage of full length takes, with waits
// of average length; 0 when there is no end.
func (p RetryPolicy) attempts() int {
	if p.For == Forever {
		return 0
	}
	n, left := 1, p.For
	for ; left > 0 && p.bound(n) < p.Cap; n++ {
		left -= p.bound(n) / 2
	}
	return n + int(2*max(left, 0)/p.Cap)
}

// Retrier repeats the requests to one API by one policy. When the API asks one
// request to wait, the requests that start meanwhile wait too. It is safe for
// use by many goroutines.
type Retrier struct {
	policy   RetryPolicy
	attempts int // see RetryPolicy.attempts

	mu   sync.Mutex
	held time.Time // no first attempt before
	by   *Error    // the refusal that said so
}

// NewRetrier makes a Retrier.
func NewRetrier(policy RetryPolicy) *Retrier {
	policy = policy.withDefaults()
	return &Retrier{policy: policy, attempts: policy.attempts()}
}

// Attempt makes one request and hands the events of its answer to emit. emit
// reports whether the consumer wants more; after false the attempt closes the
// request and returns. An error is a [*Error], or whatever ended ctx; an
// attempt that has emitted any of the answer ends with a [Reply] instead of an
// error.
type Attempt func(ctx context.Context, emit func(Event) bool) error

// Stream runs attempt until it succeeds, fails for good, or ctx ends, as
// [Model] demands of its Stream. before is the outage that the request comes
// after ([Request.Outage]).
func (r *Retrier) Stream(ctx context.Context, before Outage, attempt Attempt) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		t := &try{retrier: r, outage: before, attempt: attempt, yield: yield}
		if err := t.run(ctx); err != nil && !t.stopped {
			yield(nil, err)
		}
	}
}

// try is the state of one Stream.
type try struct {
	retrier  *Retrier
	outage   Outage
	attempt  Attempt
	yield    func(Event, error) bool
	answered bool // something of the answer was yielded
	stopped  bool // the consumer broke off
}

func (t *try) emit(ev Event) bool {
	if t.stopped {
		return false
	}
	switch e := ev.(type) {
	case Waiting:
		e.Attempt = t.outage.Failures + 1
		ev = e
	case Reply:
		t.answered = true
		e.Outage = Outage{}
		if e.Broken != nil {
			e.Outage = t.outage.after(e.Broken)
		}
		ev = e
	default:
		t.answered = true
	}
	t.stopped = !t.yield(ev, nil)
	return !t.stopped
}

func (t *try) run(ctx context.Context) error {
	retry := t.retrier.heldBack()
	if t.outage.Failures > 0 {
		if retry = t.next(); retry == nil {
			return t.outage.abandoned()
		}
	}
	for {
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
		var failure *Error
		if !errors.As(err, &failure) || !failure.Passing() || t.answered {
			return err
		}
		t.outage = t.outage.with(failure)
		if retry = t.next(); retry == nil {
			return t.outage.abandoned()
		}
	}
}

// next says how to go on in the outage; nil means not at all.
func (t *try) next() *Retrying {
	r := t.retrier
	wait, again := r.policy.wait(t.outage)
	if !again {
		return nil
	}
	r.holdBack(t.outage.Last)
	retry := &Retrying{Attempt: t.outage.Failures + 1, Wait: wait, Err: t.outage.Last}
	if r.attempts > 0 {
		retry.Max = max(r.attempts, retry.Attempt)
		retry.Left = r.policy.left(t.outage)
	}
	return retry
}

// holdBack makes requests that start from now on wait as long as the server
// asked this one to.
func (r *Retrier) holdBack(failure *Error) {
	if failure.RetryAfter <= 0 {
		return
	}
	until := time.Now().Add(r.policy.asked(failure))
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
	return &Retrying{Attempt: 1, Max: r.attempts, Wait: left + r.policy.jitter(2), Err: by}
}

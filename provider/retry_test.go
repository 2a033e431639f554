package provider

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// failing makes an attempt that fails n times and then replies.
func failing(n int, failure *Error, calls *[]time.Time) Attempt {
	return func(_ context.Context, emit func(Event) bool) error {
		if *calls = append(*calls, time.Now()); len(*calls) <= n {
			return failure
		}
		emit(Reply{})
		return nil
	}
}

func collect(ctx context.Context, r *Retrier, attempt Attempt) (events []Event, err error) {
	for ev, e := range r.Stream(ctx, attempt) {
		if e != nil {
			err = e
			continue
		}
		events = append(events, ev)
	}
	return events, err
}

func TestPassingFailuresAreRetried(t *testing.T) {
	for _, c := range []struct {
		failure *Error
		calls   int
	}{
		{&Error{Class: RateLimit}, 6}, {&Error{Class: Overloaded}, 6}, {&Error{Class: Server}, 6}, {&Error{Class: Network}, 6},
		{&Error{Class: Stalled}, 2},
		{&Error{Class: Auth}, 1}, {&Error{Class: Billing}, 1}, {&Error{Class: Invalid}, 1}, {&Error{Class: TooLong}, 1},
		{&Error{Class: ModelNotFound}, 1}, {&Error{Class: Malformed}, 1}, {&Error{Class: Network, Final: true}, 1},
	} {
		t.Run(string(c.failure.Class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []time.Time
				events, err := collect(t.Context(), NewRetrier(RetryPolicy{}), failing(100, c.failure, &calls))
				if !errors.Is(err, c.failure) || len(calls) != c.calls || len(events) != c.calls-1 {
					t.Fatalf("%d calls, events %v, error %v; want %d calls", len(calls), events, err, c.calls)
				}
				for i, ev := range events {
					if r := ev.(Retrying); r.Attempt != i+2 || r.Max != 6 || r.Err != c.failure {
						t.Errorf("event %d is %+v", i, r)
					}
				}
			})
		})
	}
}

// TestWaitsGrow: the bound of the waits doubles up to the cap, and they are
// spread below it.
func TestWaitsGrow(t *testing.T) {
	p := RetryPolicy{Base: time.Second, Cap: 5 * time.Second}.withDefaults()
	for n, bound := range []time.Duration{1, 2, 4, 5, 5} {
		bound *= time.Second
		var least, most time.Duration = time.Hour, 0
		for range 2000 {
			w := p.wait(n+1, &Error{})
			least, most = min(least, w), max(most, w)
		}
		if most > bound || most < bound*9/10 || least > bound/10 {
			t.Errorf("after %d failures the waits are %s to %s, want 0 to %s", n+1, least, most, bound)
		}
	}
	if w := p.wait(1_000_000, &Error{}); w > 5*time.Second {
		t.Errorf("after a million failures the wait is %s", w)
	}
}

func TestNothingIsRepeatedOnceTold(t *testing.T) {
	calls := 0
	events, err := collect(t.Context(), NewRetrier(RetryPolicy{}), func(_ context.Context, emit func(Event) bool) error {
		calls++
		emit(TextDelta{Text: "x"})
		return &Error{Class: Network}
	})
	if calls != 1 || len(events) != 1 || err == nil {
		t.Errorf("%d calls, events %v, error %v", calls, events, err)
	}
}

// TestWaitsEndWithTheContext, at once and with its cause.
func TestWaitsEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(stop) })
		begun := time.Now()
		var calls []time.Time
		_, err := collect(ctx, NewRetrier(RetryPolicy{}), failing(1, &Error{Class: RateLimit, RetryAfter: time.Minute}, &calls))
		if !errors.Is(err, stop) || time.Since(begun) != 3*time.Second || len(calls) != 1 {
			t.Errorf("error %v after %s and %d calls", err, time.Since(begun), len(calls))
		}
	})
}

func TestConsumerStopsARetry(t *testing.T) {
	var calls []time.Time
	for range NewRetrier(RetryPolicy{}).Stream(t.Context(), failing(1, &Error{Class: Server}, &calls)) {
		break // at the Retrying
	}
	if len(calls) != 1 {
		t.Errorf("%d calls after the consumer broke off", len(calls))
	}
	for range NewRetrier(RetryPolicy{}).Stream(t.Context(), func(_ context.Context, emit func(Event) bool) error {
		if emit(TextDelta{}) || emit(TextDelta{}) {
			t.Error("emit asks for more after the consumer broke off")
		}
		return &Error{Class: Network}
	}) {
		break
	}
}

// TestOthersAreHeldBack: who starts while the API asks for a pause waits too.
func TestOthersAreHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRetrier(RetryPolicy{})
		var calls []time.Time
		attempt := failing(1, &Error{Class: RateLimit, RetryAfter: 10 * time.Second}, &calls)
		for range r.Stream(t.Context(), attempt) {
			break // the first request gives up at its Retrying
		}
		refused := time.Now()
		time.Sleep(4 * time.Second)
		events, err := collect(t.Context(), r, attempt)
		if err != nil {
			t.Fatal(err)
		}
		held, ok := events[0].(Retrying)
		if !ok || held.Attempt != 1 || held.Err.Class != RateLimit {
			t.Errorf("events %+v", events)
		}
		if waited := calls[1].Sub(refused); waited < 10*time.Second || waited > 11*time.Second {
			t.Errorf("the second request was made after %s", waited)
		}
		if events, err = collect(t.Context(), r, attempt); err != nil || len(events) != 1 {
			t.Errorf("after the pause: events %+v, error %v", events, err)
		}
	})
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, dog := Watch(t.Context(), 10*time.Second)
		time.Sleep(9 * time.Second)
		dog.Within(5 * time.Second)
		time.Sleep(4 * time.Second)
		dog.Hold()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("ended although there was progress in time:", context.Cause(ctx))
		}
		dog.Within(5 * time.Second)
		begun := time.Now()
		<-ctx.Done()
		var e *Error
		if !errors.As(context.Cause(ctx), &e) || e.Class != Stalled || time.Since(begun) != 5*time.Second {
			t.Errorf("cause %v after %s", context.Cause(ctx), time.Since(begun))
		}
		dog.Stop()
	})
	parent, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	ctx, dog := Watch(parent, time.Hour)
	defer dog.Stop()
	cancel(stop)
	if !errors.Is(context.Cause(ctx), stop) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

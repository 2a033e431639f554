package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	for ev, e := range r.Stream(ctx, Outage{}, attempt) {
		if e != nil {
			err = e
			continue
		}
		events = append(events, ev)
	}
	return events, err
}

// TestPassingFailuresAreRetried for as long as the policy says, and no others.
func TestPassingFailuresAreRetried(t *testing.T) {
	for _, c := range []struct {
		failure *Error
		retried bool
	}{
		{&Error{Class: RateLimit}, true}, {&Error{Class: Overloaded}, true}, {&Error{Class: Server}, true},
		{&Error{Class: Network}, true}, {&Error{Class: Stalled}, true},
		{&Error{Class: Auth}, false}, {&Error{Class: Billing}, false}, {&Error{Class: Invalid}, false}, {&Error{Class: TooLong}, false},
		{&Error{Class: ModelNotFound}, false}, {&Error{Class: Malformed}, false}, {&Error{Class: Network, Final: true}, false},
	} {
		t.Run(string(c.failure.Class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []time.Time
				begun := time.Now()
				events, err := collect(t.Context(), NewRetrier(RetryPolicy{}), failing(1000, c.failure, &calls))
				if !errors.Is(err, c.failure) || len(events) != len(calls)-1 {
					t.Fatalf("%d calls, %d events, error %v", len(calls), len(events), err)
				}
				if took := time.Since(begun); !c.retried && (took > 0 || len(calls) != 1) || c.retried && took != DefaultRetryFor {
					t.Errorf("%d calls in %s", len(calls), took)
				}
				if said := strings.Contains(err.Error(), "gave up after "+fmt.Sprint(len(calls))+" attempts in 10m0s"); said != c.retried {
					t.Errorf("error %q", err)
				}
				for i, ev := range events {
					r := ev.(Retrying)
					if r.Attempt != i+2 || r.Max < r.Attempt || r.Err != c.failure || r.Wait > 30*time.Second || r.Left != DefaultRetryFor-calls[i].Sub(begun) {
						t.Errorf("event %d is %+v", i, r)
					}
				}
			})
		})
	}
}

// TestAnOutageIsOutlasted: by a run on its own for minutes, by one in front of a
// person as long as it lasts.
func TestAnOutageIsOutlasted(t *testing.T) {
	for name, c := range map[string]struct {
		policy  RetryPolicy
		outage  time.Duration
		outlast bool
	}{
		"default, 9 minutes":    {RetryPolicy{}, 9 * time.Minute, true},
		"default, 11 minutes":   {RetryPolicy{}, 11 * time.Minute, false},
		"a minute, 2 minutes":   {RetryPolicy{For: time.Minute}, 2 * time.Minute, false},
		"as long as it takes":   {RetryPolicy{For: Forever}, 24 * time.Hour, true},
		"a year, one day":       {RetryPolicy{For: 365 * 24 * time.Hour}, 24 * time.Hour, true},
		"not at all, one blink": {RetryPolicy{For: -1}, time.Nanosecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				events, err := collect(t.Context(), NewRetrier(c.policy), func(_ context.Context, emit func(Event) bool) error {
					if time.Since(begun) < c.outage {
						return &Error{Class: Network}
					}
					emit(Reply{})
					return nil
				})
				if (err == nil) != c.outlast {
					t.Errorf("error %v after %s", err, time.Since(begun))
				}
				late := time.Since(begun) - c.outage
				if c.outlast && late > 30*time.Second {
					t.Errorf("the server was back for %s", late)
				}
				if r, ok := first(events).(Retrying); ok && c.policy.For == Forever && (r.Max != 0 || r.Left != 0) {
					t.Errorf("an end is named: %+v", r)
				}
			})
		})
	}
}

func first(events []Event) Event {
	if len(events) == 0 {
		return nil
	}
	return events[0]
}

// TestABrokenAnswerIsPartOfAnOutage: the request after it waits as a retry
// would, more each time, and not for ever.
func TestABrokenAnswerIsPartOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRetrier(RetryPolicy{})
		cut := &Error{Class: Network, Message: "cut"}
		begun, attempts := time.Now(), 0
		var outage Outage
		for {
			var reply *Reply
			var err error
			for ev, e := range r.Stream(t.Context(), outage, func(_ context.Context, emit func(Event) bool) error {
				attempts++
				emit(TextDelta{Text: "ha"})
				emit(Reply{Broken: cut})
				return nil
			}) {
				if e != nil {
					err = e
				}
				if got, ok := ev.(Reply); ok {
					reply = &got
				}
			}
			if err != nil {
				if !errors.Is(err, cut) || time.Since(begun) != DefaultRetryFor || attempts < 20 || attempts > 400 {
					t.Errorf("error %v after %s and %d attempts", err, time.Since(begun), attempts)
				}
				return
			}
			if reply == nil || reply.Outage.Failures != attempts || !reply.Outage.Since.Equal(begun) {
				t.Fatalf("after %d attempts: reply %+v", attempts, reply)
			}
			outage = reply.Outage
		}
	})
	for name, reply := range map[string]Reply{"whole": {}, "malformed": {Broken: &Error{Class: Malformed}}, "interrupted": {Broken: errors.New("stop")}} {
		for ev := range NewRetrier(RetryPolicy{}).Stream(t.Context(), Outage{}, func(_ context.Context, emit func(Event) bool) error {
			emit(reply)
			return nil
		}) {
			if got := ev.(Reply); got.Outage.Failures != 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

// TestAsked: what the server asks for is granted while there is time, and not
// waited for when there is not.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Time
		_, err := collect(t.Context(), NewRetrier(RetryPolicy{}), failing(2, &Error{Class: Overloaded, RetryAfter: 4 * time.Minute}, &calls))
		if err != nil || len(calls) != 3 || calls[2].Sub(calls[0]) < 8*time.Minute {
			t.Errorf("calls at %v, error %v", calls, err)
		}
		calls = nil
		_, err = collect(t.Context(), NewRetrier(RetryPolicy{}), failing(20, &Error{Class: Overloaded, RetryAfter: 2 * time.Second}, &calls))
		for i := range calls[1:] {
			if waited := calls[i+1].Sub(calls[i]); err != nil || waited < 2*time.Second || waited > 3*time.Second {
				t.Errorf("waited %s for what asked for 2 s, error %v", waited, err)
			}
		}
		calls = nil
		begun := time.Now()
		_, err = collect(t.Context(), NewRetrier(RetryPolicy{For: time.Minute}), failing(2, &Error{Class: RateLimit, RetryAfter: time.Hour}, &calls))
		if err == nil || time.Since(begun) != 0 || !strings.Contains(err.Error(), "the server asks to wait 1h0m0s") {
			t.Errorf("error %v after %s", err, time.Since(begun))
		}
		calls = nil
		_, err = collect(t.Context(), NewRetrier(RetryPolicy{For: Forever}), failing(1, &Error{Class: RateLimit, RetryAfter: 5 * time.Hour}, &calls))
		if err != nil || calls[1].Sub(calls[0]) > 11*time.Minute {
			t.Errorf("calls at %v, error %v", calls, err)
		}
	})
}

// TestWaitsGrow: the bound of the waits doubles up to the cap, and they are
// spread below it.
func TestWaitsGrow(t *testing.T) {
	p := RetryPolicy{Base: time.Second, Cap: 5 * time.Second}.withDefaults()
	for n, bound := range []time.Duration{1, 2, 4, 5, 5} {
		bound *= time.Second
		var least, most time.Duration = time.Hour, 0
		for range 2000 {
			w, _ := p.wait(Outage{Failures: n + 1, Since: time.Now(), Last: &Error{}})
			least, most = min(least, w), max(most, w)
		}
		if most > bound || most < bound*9/10 || least > bound/10 {
			t.Errorf("after %d failures the waits are %s to %s, want 0 to %s", n+1, least, most, bound)
		}
	}
	if w, _ := p.wait(Outage{Failures: 1_000_000, Since: time.Now(), Last: &Error{}}); w > 5*time.Second {
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
	for range NewRetrier(RetryPolicy{}).Stream(t.Context(), Outage{}, failing(1, &Error{Class: Server}, &calls)) {
		break // at the Retrying
	}
	if len(calls) != 1 {
		t.Errorf("%d calls after the consumer broke off", len(calls))
	}
	for range NewRetrier(RetryPolicy{}).Stream(t.Context(), Outage{}, func(_ context.Context, emit func(Event) bool) error {
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
		for range r.Stream(t.Context(), Outage{}, attempt) {
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

package event

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/transcript"
)

// those are the events after a number, up to the newest.
func those(t *testing.T, s *Stream, after uint64) (events []Event) {
	t.Helper()
	s.End()
	for ev := range s.Subscribe(t.Context(), after) {
		if n := len(events); n > 0 && ev.Seq <= events[n-1].Seq {
			t.Errorf("event %d follows %d", ev.Seq, events[n-1].Seq)
		}
		events = append(events, ev)
	}
	return events
}

func storedAt(at time.Time, text string) Event {
	return Event{At: at, Body: Stored{transcript.Entry{Message: transcript.UserText(text)}}}
}

// Who subscribes before anything is lost misses nothing and hears of no gap.
func TestAStreamWithoutLossHasNoGap(t *testing.T) {
	s := NewStream(nil)
	for range keep {
		s.Publish(Agent{}, Idle{})
	}
	all := s.Subscribe(t.Context(), 0)
	s.Publish(Agent{}, Idle{}) // the first is kept only for whoever has its place
	s.End()
	n := 0
	for ev := range all {
		if _, ok := ev.Body.(Gap); ok {
			t.Fatal("there is a gap")
		}
		n++
	}
	if n != keep+1 {
		t.Errorf("%d events", n)
	}
}

func TestALateSubscriberIsToldOfItsGapAndGetsWhatWasStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var from, to time.Time
		s := NewStream(func(_ context.Context, a, b time.Time) ([]Event, error) {
			from, to = a, b
			return []Event{storedAt(a.Add(time.Millisecond), "one"), storedAt(a.Add(time.Millisecond), "two")}, nil
		})
		start := s.Last()
		s.Publish(Agent{}, Idle{})
		known := s.Last()
		for range keep + 10 {
			time.Sleep(time.Second)
			s.Publish(Agent{}, Idle{})
		}
		for _, tc := range []struct{ after, from uint64 }{{0, start}, {known, known}, {start - 1e9, start - 1e9}, {s.Last() + 1e9, start}} {
			events := those(t, s, tc.after)
			gap, ok := events[0].Body.(Gap)
			if !ok || gap.From != tc.from || events[0].Seq != tc.from || gap.To != events[3].Seq-1e6 || gap.Err != "" {
				t.Errorf("after %d: %+v, and then %d", tc.after, events[0], events[3].Seq)
			}
			if len(events) != keep+3 || events[1].Body.(Stored).Entry.Message.Content[0].Text != "one" {
				t.Errorf("after %d: %d events, %+v", tc.after, len(events), events[1])
			}
			if from != timeOf(gap.From) || to != timeOf(gap.To) {
				t.Errorf("rebuilt from %v to %v", from, to)
			}
		}
		if events := those(t, s, s.Last()-1); len(events) != 1 {
			t.Errorf("after the last but one: %+v", events)
		}
	})
}

func TestAGapSaysWhyNothingFollows(t *testing.T) {
	s := NewStream(func(context.Context, time.Time, time.Time) ([]Event, error) {
		return nil, errors.New("the disk is gone")
	})
	events := those(t, s, s.Last()-1)
	if gap, ok := events[0].Body.(Gap); len(events) != 1 || !ok || gap.Err != "the disk is gone" {
		t.Errorf("%+v", events)
	}
}

// The numbers of a stream go on where those of an earlier process ended.
func TestNumbersGrowOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(nil)
		for range 100 {
			s.Publish(Agent{}, Idle{})
		}
		known := s.Last()
		time.Sleep(time.Millisecond)
		s = NewStream(nil)
		s.Publish(Agent{}, Idle{})
		events := those(t, s, known)
		if gap, ok := events[0].Body.(Gap); len(events) != 2 || !ok || gap.From != known || events[1].Seq <= known {
			t.Errorf("%+v", events)
		}
	})
}

package event

import (
	"context"
	"iter"
	"sync"
	"time"
)

// Stream carries the events of one session tree to its subscribers. Publishing
// never waits for them: events form a linked list of which each subscriber
// holds its own place, so a slow one costs memory, not time. The newest events
// are kept for those who come late; who comes later than that, or from before a
// restart, gets a [Gap] and what was stored.
//
// An event's number is the microsecond of its time, or one more than that of the
// event before. So numbers grow over restarts without being stored, and say when
// something happened that is only in a transcript any more.
type Stream struct {
	rebuild Rebuild // may be nil

	mu    sync.Mutex
	start uint64 // below the number of every event of this stream
	seq   uint64
	lost  uint64 // the newest number that is not kept
	tail  *node  // the empty node that the next event fills
	old   *node  // where a late subscriber can start
	kept  int
	done  bool
}

// Rebuild reads what was stored of a tree between two moments, oldest first, as
// events of the type [Stored]. Their numbers are given by the stream.
type Rebuild func(ctx context.Context, from, to time.Time) ([]Event, error)

type node struct {
	event Event
	ready chan struct{} // closed when event and next are set
	next  *node
	last  bool // the stream ended instead
}

// keep is how many events are held for late subscribers.
const keep = 1024

// NewStream makes an open stream. rebuild reads what is no longer in memory; nil:
// it cannot be read.
func NewStream(rebuild Rebuild) *Stream {
	n := &node{ready: make(chan struct{})}
	now := number(time.Now())
	return &Stream{rebuild: rebuild, tail: n, old: n, start: now, seq: now, lost: now}
}

func number(at time.Time) uint64 { return uint64(max(at.UnixMicro(), 1)) }

func timeOf(number uint64) time.Time { return time.UnixMicro(int64(number)) }

// Publish numbers the event and hands it to all subscribers; it does not
// block. After End it does nothing.
func (s *Stream) Publish(agent Agent, body Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	now := time.Now()
	s.seq = max(s.seq+1, number(now))
	n := s.tail
	n.event = Event{Seq: s.seq, At: now, Agent: agent, Body: body}
	n.next = &node{ready: make(chan struct{})}
	s.tail = n.next
	close(n.ready)
	if s.kept++; s.kept > keep {
		s.lost = s.old.event.Seq
		s.old, s.kept = s.old.next, keep
	}
}

// End closes the stream: subscribers get what was published and then end.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	s.done = true
	s.tail.last = true
	close(s.tail.ready)
}

// Subscribe returns the events with a number above after, and then those to come; 0
// asks for all of this stream. Where events are missing that are not kept any more, a
// [Gap] says so, and what was stored of them follows. The place in the stream is
// taken now: nothing published later is missed, however late the ranging starts. The
// sequence ends with the stream or with ctx.
func (s *Stream) Subscribe(ctx context.Context, after uint64) iter.Seq[Event] {
	s.mu.Lock()
	n, gap := s.old, s.gap(after)
	s.mu.Unlock()
	if gap != nil {
		after = gap.To
	}
	return func(yield func(Event) bool) {
		at, missed := n, gap
		n, gap = nil, nil // let the events go as they are consumed
		if missed != nil && !s.fill(ctx, *missed, yield) {
			return
		}
		for at != nil {
			select {
			case <-at.ready:
			case <-ctx.Done():
				return
			}
			if at.last {
				return
			}
			if at.event.Seq > after && !yield(at.event) {
				return
			}
			at = at.next
		}
	}
}

// gap is what a subscriber has missed who knows the events up to after; nil for
// nothing. The caller holds mu.
func (s *Stream) gap(after uint64) *Gap {
	switch {
	case after == 0 && s.lost == s.start:
		return nil
	case after == 0 || after > s.seq: // a clock that was set back leaves numbers of the future behind
		return &Gap{From: s.start, To: s.lost}
	case after < s.lost:
		return &Gap{From: after, To: s.lost}
	}
	return nil
}

// fill yields a gap and what was stored of it; false when the subscriber broke off.
func (s *Stream) fill(ctx context.Context, gap Gap, yield func(Event) bool) bool {
	var stored []Event
	if s.rebuild != nil && gap.From < gap.To {
		var err error
		if stored, err = s.rebuild(ctx, timeOf(gap.From), timeOf(gap.To)); err != nil {
			gap.Err = err.Error()
		}
	}
	if !yield(Event{Seq: gap.From, At: time.Now(), Body: gap}) {
		return false
	}
	last := gap.From
	for _, ev := range stored {
		last = min(max(last+1, number(ev.At)), gap.To)
		ev.Seq = last
		if !yield(ev) {
			return false
		}
	}
	return true
}

// Last is the number of the newest event; that of a stream without any is below all
// that will come.
func (s *Stream) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// Published is the number of the newest event, to wait for it; 0 when there is none.
func (s *Stream) Published() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seq == s.start {
		return 0
	}
	return s.seq
}

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
// are kept for those who come late.
type Stream struct {
	mu   sync.Mutex
	seq  uint64
	tail *node // the empty node that the next event fills
	old  *node // where a late subscriber can start
	kept int
	done bool
}

type node struct {
	event Event
	ready chan struct{} // closed when event and next are set
	next  *node
	last  bool // the stream ended instead
}

// keep is how many events are held for late subscribers.
const keep = 1024

// NewStream makes an open stream.
func NewStream() *Stream {
	n := &node{ready: make(chan struct{})}
	return &Stream{tail: n, old: n}
}

// Publish numbers the event and hands it to all subscribers; it does not
// block. After End it does nothing.
func (s *Stream) Publish(agent Agent, body Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	s.seq++
	n := s.tail
	n.event = Event{Seq: s.seq, At: time.Now(), Agent: agent, Body: body}
	n.next = &node{ready: make(chan struct{})}
	s.tail = n.next
	close(n.ready)
	if s.kept++; s.kept > keep {
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

// Subscribe returns the events with a sequence number above after, as far as
// they are still kept, and then those to come. The place in the stream is taken
// now: nothing published later is missed, however late the ranging starts. The
// sequence ends with the stream or with ctx.
func (s *Stream) Subscribe(ctx context.Context, after uint64) iter.Seq[Event] {
	s.mu.Lock()
	n := s.old
	s.mu.Unlock()
	return func(yield func(Event) bool) {
		at := n
		n = nil // let the events go as they are consumed
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

// Last is the sequence number of the newest event.
func (s *Stream) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/transcript"
)

// published is how long after an entry was made its event may have come: it is stored
// in between.
const published = 2 * time.Second

// endedSession is a session that is no longer registered, and whose transcript can still
// be part of a gap.
type endedSession struct {
	ref   transcript.Ref
	agent event.Agent
	at    time.Time // its end
}

// maxEnded is how many sessions that have ended are remembered.
const maxEnded = 1024

// noteEnded remembers a session that has ended; the caller holds the lock.
func (r *Register) noteEnded(s *Session) {
	r.ended = slices.DeleteFunc(r.ended, func(e endedSession) bool { return e.ref == s.ref })
	r.ended = append(r.ended, endedSession{s.ref, s.agent, time.Now()})
	if over := len(r.ended) - maxEnded; over > 0 {
		r.ended = slices.Delete(r.ended, 0, over)
	}
}

// conversationsSince are the conversations that may have changed since a moment, with
// their agents: the main session's first. One that ended before has not.
func (r *Register) conversationsSince(since time.Time) (refs []transcript.Ref, agents []event.Agent) {
	for _, s := range r.all() {
		refs, agents = append(refs, s.ref), append(agents, s.agent)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.ended {
		if !e.at.Before(since) && !slices.Contains(refs, e.ref) { // else it was resumed
			refs, agents = append(refs, e.ref), append(agents, e.agent)
		}
	}
	return refs, agents
}

// rebuild reads what the sessions of this process stored between two moments, oldest
// first, for subscribers who have missed the events.
func (r *Register) rebuild(ctx context.Context, read func(context.Context, transcript.Ref) ([]transcript.Entry, error),
	from, to time.Time) (events []event.Event, err error) {
	from = from.Add(-published)
	refs, agents := r.conversationsSince(from)
	for i, ref := range refs {
		entries, readErr := read(ctx, ref)
		if errors.Is(readErr, transcript.ErrNotFound) {
			continue // nothing was stored yet
		}
		err = errors.Join(err, readErr)
		for _, e := range entries {
			if e.At.After(from) && !e.At.After(to) {
				events = append(events, event.Event{At: e.At, Agent: agents[i], Body: event.Stored{Entry: e}})
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event.Event) int { return a.At.Compare(b.At) })
	return events, err
}

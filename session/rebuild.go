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

// rebuild reads what the live sessions stored between two moments, oldest first, for
// subscribers who have missed the events. Sessions that have ended are not asked: the
// result of a sub-agent stands in the transcript of the session that started it.
func (r *Register) rebuild(ctx context.Context, read func(context.Context, transcript.Ref) ([]transcript.Entry, error),
	from, to time.Time) (events []event.Event, err error) {
	for _, s := range r.all() {
		entries, readErr := read(ctx, s.ref)
		if errors.Is(readErr, transcript.ErrNotFound) {
			continue // nothing was stored yet
		}
		err = errors.Join(err, readErr)
		for _, e := range entries {
			if e.At.After(from.Add(-published)) && !e.At.After(to) {
				events = append(events, event.Event{At: e.At, Agent: s.agent, Body: event.Stored{Entry: e}})
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event.Event) int { return a.At.Compare(b.At) })
	return events, err
}

package tui

import (
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/event"
)

// Waiting says in one line that the model's server is silent, for how long, and until
// when cadre waits for it.
func Waiting(w event.Waiting) string {
	attempt := ""
	if w.Attempt > 1 {
		attempt = fmt.Sprintf(", attempt %d", w.Attempt)
	}
	return fmt.Sprintf("waiting for %s: nothing for %s%s; after %s the request is sent again",
		flat(w.Host), span(w.Silent), attempt, span(w.Limit))
}

// Retrying says in one line why a request is sent again, when, and for how long
// that goes on.
func Retrying(r event.Retrying) string {
	what := flat(r.Reason)
	if r.Status != 0 {
		what = fmt.Sprint(r.Status, " ", what)
	}
	until := ""
	if r.Left > 0 {
		until = ", giving up in " + span(r.Left)
	}
	return fmt.Sprintf("attempt %d in %s%s: %s", r.Attempt, span(r.Wait), until, what)
}

// span is a duration for people: minutes or whole seconds, unless it is shorter.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 3*time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%d h", int(d.Round(time.Hour).Hours()))
}

// Package pane opens places on a terminal where a program runs in front of a
// person: panes and windows of tmux, panes and tabs of iTerm2. It titles them,
// says whether they are still there, and closes the ones that it opened, and no
// others. It knows nothing of agents; where a program gets its text from is a
// file, never typing.
package pane

import (
	"context"
	"errors"
)

// Kinds of terminals, as settings and records name them.
const (
	Tmux   = "tmux"
	ITerm2 = "iterm2"
)

// Spec says what place to open.
type Spec struct {
	Title string // shown on the border; control characters are taken out
	Color string // one of blue, green, yellow, purple, orange, pink, cyan, red; another is none
	// Script is the path of a file that /bin/sh runs in the place, which closes
	// when the script ends.
	Script string
	Window bool // a window of its own, not a part of the one where the person is
}

// Place is a place that was opened, and what it takes to find it again, also from
// another process. It is comparable.
type Place struct {
	Terminal string // [Tmux] or [ITerm2]
	Socket   string // of the tmux server
	Pane     string // "%3", or iTerm2's session id
	Mark     string // what the pane was marked with: tmux gives ids anew when its server is
	Window   bool   // it got a window of its own
}

// Terminal is where places are opened. Its methods block for a moment, the time
// that the terminal's command line takes, and may be called from any goroutine.
type Terminal interface {
	// Kind is [Tmux] or [ITerm2].
	Kind() string
	// Open opens a place without taking the focus, and starts the script there.
	// After an error nothing of it is left open. The caller keeps the Place.
	Open(ctx context.Context, s Spec) (Place, error)
	// Alive says which of the places are there. A terminal that is gone has
	// none of them; an error says that it is not known.
	Alive(ctx context.Context, places []Place) (map[Place]bool, error)
	// Close closes a place that Open returned; what runs there is hung up on. A
	// place that is gone, or whose id another one has by now, is left alone and
	// is no error.
	Close(ctx context.Context, p Place) error
	// Tail is the last lines that a place shows, without the empty ones at the
	// end.
	Tail(ctx context.Context, p Place, lines int) (string, error)
	// Attach is the command with which a person looks at the places; "" when
	// they are in front of them.
	Attach() string
}

// ErrGone says that a place is not there any more.
var ErrGone = errors.New("the pane is gone")

// errOnlyKnown: [Detector.Known] does not say where a place would go.
var errOnlyKnown = errors.New("open a pane: this terminal is for panes that were opened earlier")

// UnavailableError says that a terminal cannot be had, and what to do about it.
type UnavailableError struct {
	Kind   string // that was asked for
	Why    string
	Remedy string
}

func (e *UnavailableError) Error() string {
	return "use " + e.Kind + " for teammates: " + e.Why + ": " + e.Remedy
}

// opening is held while a pane is opened: where one goes depends on the others.
// nil is that of a terminal that opens none.
type opening chan struct{}

func newOpening() opening { return make(opening, 1) }

// take waits for its turn until ctx ends; give ends it.
func (o opening) take(ctx context.Context) (give func(), err error) {
	if o == nil {
		return nil, errOnlyKnown
	}
	select {
	case o <- struct{}{}:
		return func() { <-o }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

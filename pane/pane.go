// Package pane opens places on a terminal where a program runs in front of a person:
// panes and windows of tmux, panes and tabs of iTerm2. It titles them, reports whether
// they still exist, and closes those that it opened, and no others. It knows nothing
// about agents. Programs get their input from files; nothing is typed into a pane.
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
	Title string // shown on the border; control characters are removed
	Color string // one of blue, green, yellow, purple, orange, pink, cyan, red; another is none
	// Script is the path of a file that /bin/sh runs in the place, which closes
	// when the script ends.
	Script string
	Window bool // a window of its own, not a part of the one where the person is
}

// Place identifies a place that was opened, also for other processes. It is
// comparable.
type Place struct {
	Terminal string // [Tmux] or [ITerm2]
	Socket   string // of the tmux server
	Pane     string // "%3", or iTerm2's session id
	Mark     string // how the pane was marked: tmux starts its ids again with a new server
	Window   bool   // it got a window of its own
}

// Terminal is where places are opened. Its methods block while the terminal's command
// line runs, a moment, and may be called from any goroutine.
type Terminal interface {
	// Kind is [Tmux] or [ITerm2].
	Kind() string
	// Open opens a place without taking the focus, and starts the script there.
	// After an error nothing of it is left open. The caller keeps the Place.
	Open(ctx context.Context, s Spec) (Place, error)
	// Alive reports which of the places exist. A terminal that is gone has none of
	// them; an error says that this is not known.
	Alive(ctx context.Context, places []Place) (map[Place]bool, error)
	// Close closes a place that Open returned; the program there gets a hangup. A place
	// that is gone, or whose id another one has now, is left alone and is not an error.
	Close(ctx context.Context, p Place) error
	// Tail is the last lines that a place shows, without the empty ones at the
	// end.
	Tail(ctx context.Context, p Place, lines int) (string, error)
	// Attach is the command with which a person can see the places; "" when they see
	// them already.
	Attach() string
}

// ErrGone says that a place no longer exists.
var ErrGone = errors.New("the pane is gone")

// errOnlyKnown: a terminal of [Detector.Known] does not know where to open a place.
var errOnlyKnown = errors.New("open a pane: this terminal is for panes that were opened earlier")

// UnavailableError says that a terminal is not available, and what to do about it.
type UnavailableError struct {
	Kind   string // that was asked for
	Why    string
	Remedy string
}

func (e *UnavailableError) Error() string {
	return "use " + e.Kind + " for teammates: " + e.Why + ": " + e.Remedy
}

// opening is a lock that is held while a pane is opened: where one goes depends on
// the others. It is nil in a terminal that opens none.
type opening chan struct{}

func newOpening() opening { return make(opening, 1) }

// acquire waits for the lock until ctx ends.
func (o opening) acquire(ctx context.Context) (release func(), err error) {
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

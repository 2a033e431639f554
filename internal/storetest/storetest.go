// Package storetest is the conformance suite of the stores: what their
// contracts promise, checked over every implementation. Each suite gets two
// handles on the same state, such as two processes have; an implementation that
// knows one process only gives the same handle twice.
package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/google/go-cmp/cmp"
)

// patience is how long a test waits for what must happen before it fails.
const patience = 20 * time.Second

// Open makes empty state and returns two handles on it.
type Open[Store any] func(t *testing.T) (a, b Store)

// State is the stores of one root, for the suites of what lies beside the files
// that other programs share.
type State interface {
	Teams() roster.Store
	Seals() mailbox.Seals
	Records() roster.Records
	Presence() roster.Presence
	Desk() ask.Desk
}

// equal fails when got is not want.
func equal(t *testing.T, what string, got, want any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// check fails the test at once on an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks that a call failed with this error.
func fails(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// signalled waits for a watch to tell of a change.
func signalled(t *testing.T, signal <-chan struct{}, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case <-signal:
	case <-ctx.Done():
		t.Fatalf("no signal after %s", what)
	}
}

// drain takes the signal that may be waiting.
func drain(signal <-chan struct{}) {
	select {
	case <-signal:
	default:
	}
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

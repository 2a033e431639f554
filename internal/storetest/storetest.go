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

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// patience is how long a test waits for something that must happen before it fails.
const patience = 20 * time.Second

// Open makes empty state and returns two handles on it.
type Open[Store any] func(t *testing.T) (a, b Store)

// Stores is the stores of one root, or of whatever else keeps them together.
type Stores interface {
	Transcripts() transcript.Store
	Mail() mailbox.Store
	Tasks() task.Store
	Teams() roster.Store
	Asks(transcript.Ref) ask.Store
	Jobs(transcript.Ref) job.Store
	Seals() mailbox.Seals
	Records() roster.Records
	Presence() roster.Presence
	Desk() ask.Desk
}

// All runs every suite.
func All[S Stores](t *testing.T, open Open[S]) {
	both := func(t *testing.T) (Stores, Stores) {
		a, b := open(t)
		return a, b
	}
	t.Run("mailbox", func(t *testing.T) { mailboxSuite(t, parts(both, Stores.Mail)) })
	t.Run("task", func(t *testing.T) { taskSuite(t, parts(both, Stores.Tasks)) })
	t.Run("team", func(t *testing.T) { teamSuite(t, parts(both, Stores.Teams)) })
	t.Run("transcript", func(t *testing.T) { transcriptSuite(t, parts(both, Stores.Transcripts)) })
	t.Run("ask", func(t *testing.T) { askSuite(t, both) })
	t.Run("job", func(t *testing.T) { jobSuite(t, both) })
	t.Run("seals", func(t *testing.T) { sealsSuite(t, both) })
	t.Run("records", func(t *testing.T) { recordsSuite(t, both) })
	t.Run("presence", func(t *testing.T) { presenceSuite(t, both) })
	t.Run("desk", func(t *testing.T) { deskSuite(t, both) })
}

// parts opens one store of all.
func parts[Store any](open Open[Stores], part func(Stores) Store) Open[Store] {
	return func(t *testing.T) (Store, Store) {
		a, b := open(t)
		return part(a), part(b)
	}
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

// signalled waits until a watch reports a change.
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

// drain receives the signal that may be waiting.
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

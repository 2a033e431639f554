// Package wiretest is what the tests of the providers share: a stand-in server,
// what a stream yielded, golden bodies, and streams that were damaged.
package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/provider"
)

// Start starts a server that answers as script says, until the test ends.
func Start(t testing.TB, script fakeapi.Script) *fakeapi.Server {
	t.Helper()
	server := fakeapi.Start(script)
	t.Cleanup(server.Close)
	return server
}

// Always is a script that answers every request with reply.
func Always(reply fakeapi.Reply) fakeapi.Script {
	return func(*fakeapi.Request) fakeapi.Reply { return reply }
}

// Collected is what a stream yielded.
type Collected struct {
	Deltas  []provider.Event
	Waits   []provider.Waiting
	Retries []provider.Retrying
	Reply   *provider.Reply // the last; nil without one
	Err     error           // the last
}

// Collect sends a request and reads the stream to its end.
func Collect(ctx context.Context, m provider.Model, req provider.Request) Collected {
	var h Collected
	for ev, err := range m.Stream(ctx, req) {
		if err != nil {
			h.Err = err
			continue
		}
		switch ev := ev.(type) {
		case provider.Waiting:
			h.Waits = append(h.Waits, ev)
		case provider.Retrying:
			h.Retries = append(h.Retries, ev)
		case provider.Reply:
			h.Reply = &ev
		default:
			h.Deltas = append(h.Deltas, ev)
		}
	}
	return h
}

// Whole is the reply of a stream that must have a whole one.
func (h Collected) Whole(t testing.TB) provider.Reply {
	t.Helper()
	if h.Err != nil || h.Reply == nil || h.Reply.Broken != nil {
		t.Fatalf("error %v, reply %+v; want a whole reply", h.Err, h.Reply)
	}
	return *h.Reply
}

// Failure is the error of a stream that must have one.
func (h Collected) Failure(t testing.TB) *provider.Error {
	t.Helper()
	var e *provider.Error
	if !errors.As(h.Err, &e) {
		t.Fatalf("error = %v (%T), want a *provider.Error; reply %+v", h.Err, h.Err, h.Reply)
	}
	return e
}

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares a body, indented, with a golden file.
func Golden(t testing.TB, path string, body []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	if *update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Error("body (-want +got):\n" + diff)
	}
}

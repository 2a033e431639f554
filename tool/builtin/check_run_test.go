//go:build unix

package builtin

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cadre-dev/cadre/tool"
)

// A check that takes too long has failed: it is evidence, other than one that
// was interrupted.
func TestCheckThatTakesTooLongFails(t *testing.T) {
	d := newDesk(t)
	begun := d.path("begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(tool.WithCaller(t.Context(), d.as))
	done := make(chan checkRun)
	go func() {
		done <- checker{d.w, d.jobs}.run(ctx, tool.Call{ID: "toolu_1"}, "Check", "echo so far; echo > begun; sleep 600")
	}()
	if _, err := os.ReadFile(begun); err != nil {
		t.Error(err)
	}
	cancel(errTimedOut) // as the limit does
	r := <-done
	if r.passed || r.unended != "" || !strings.Contains(r.why, "took longer than 10m0s") || r.output != "so far" || r.ended.IsZero() {
		t.Errorf("%+v", r)
	}
}

// Checks get what commands get, and run where the session was started, wherever
// its commands have gone.
func TestCheckHasThePlaceAndTheEnvironmentOfCommands(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-secret-1")
	d := newDesk(t)
	d.ok("Bash", args{"command": "mkdir sub && cd sub"})
	r := checker{d.w, d.jobs}.run(tool.WithCaller(t.Context(), d.as), tool.Call{}, "Check", "pwd; echo ${ANTHROPIC_API_KEY:-none} $CADRE; cd /")
	if !r.passed || r.output != d.dir+"\nnone 1" {
		t.Errorf("%+v", r)
	}
	if d.w.Dir() != d.path("sub") {
		t.Errorf("the session's folder is now %s", d.w.Dir())
	}
}

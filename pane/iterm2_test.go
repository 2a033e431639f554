//go:build unix

package pane_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/pane"
)

// recorder is the stand-in for the it2 tool, and what it has written down.
type recorder struct {
	dir  string
	vars []string
}

func standIn(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{dir: t.TempDir()}
	r.write(t, "sessions", "LEAD\nOTHER\n")
	r.write(t, "last", "0\n")
	r.vars = []string{"PATH=" + os.Getenv("PATH"), "IT2_DIR=" + r.dir, "TERM_PROGRAM=iTerm.app", "ITERM_SESSION_ID=w0t1p2:LEAD"}
	return r
}

func (r *recorder) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *recorder) terminal(t *testing.T, vars ...string) pane.Terminal {
	t.Helper()
	path, err := filepath.Abs("testdata/it2")
	if err != nil {
		t.Fatal(err)
	}
	choice, err := pane.NewDetector(pane.Environment{
		Vars: append(r.vars, vars...), LookPath: func(string) (string, error) { return path, nil },
	}).Choose(t.Context(), pane.ITerm2)
	if err != nil {
		t.Fatal(err)
	}
	return choice.Terminal
}

// calls are what the tool was called with since the last time, but for the lists.
func (r *recorder) calls(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, "calls", "")
	var calls []string
	for call := range strings.SplitSeq(string(data), "\n.\n") {
		if call != "" && !strings.HasPrefix(call, "session\nlist") {
			calls = append(calls, strings.ReplaceAll(call, "\n", "|"))
		}
	}
	return calls
}

func TestITerm2(t *testing.T) {
	r := standIn(t)
	terminal := r.terminal(t)
	if terminal.Kind() != pane.ITerm2 || terminal.Attach() != "" {
		t.Errorf("kind %q, attach %q", terminal.Kind(), terminal.Attach())
	}
	for _, step := range []struct {
		spec pane.Spec
		want []string
	}{
		{pane.Spec{Title: "w1\n", Script: "/tmp/it's.sh"}, []string{
			"session|split|--vertical|--session|LEAD",
			`session|run| exec /bin/sh '/tmp/it'\''s.sh'|--session|NEW-1`,
			"session|set-name|--session|NEW-1|--|w1",
			"session|focus|LEAD",
		}},
		{pane.Spec{Title: "-x", Script: "/s"}, []string{
			"session|split|--session|NEW-1",
			"session|run| exec /bin/sh /s|--session|NEW-2",
			"session|set-name|--session|NEW-2|--|-x",
			"session|focus|LEAD",
		}},
		{pane.Spec{Title: "w3", Script: "/s", Window: true}, []string{
			"tab|new",
			"session|run| exec /bin/sh /s|--session|NEW-3",
			"session|set-name|--session|NEW-3|--|w3",
			"session|focus|LEAD",
		}},
	} {
		open(t, terminal, step.spec)
		if diff := cmp.Diff(step.want, r.calls(t)); diff != "" {
			t.Errorf("calls for %q (-want +got):\n%s", step.spec.Title, diff)
		}
	}

	second := pane.Place{Terminal: pane.ITerm2, Pane: "NEW-2"}
	if tail, err := terminal.Tail(t.Context(), second, 2); err != nil || tail != "two\nthree" {
		t.Errorf("tail %q, %v", tail, err)
	}
	r.calls(t)
	for range 2 {
		if err := terminal.Close(t.Context(), second); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"session|close|--force|--session|NEW-2"}, r.calls(t)); diff != "" {
		t.Errorf("calls for two closings (-want +got):\n%s", diff)
	}
	if got := alive(t, terminal, second, pane.Place{Terminal: pane.ITerm2, Pane: "NEW-1"}); got[0] || !got[1] {
		t.Errorf("alive %v", got)
	}
	if _, err := terminal.Tail(t.Context(), second, 2); !errors.Is(err, pane.ErrGone) {
		t.Errorf("tail of a closed pane: %v", err)
	}
	// The next goes under what is left of the column.
	open(t, terminal, pane.Spec{Title: "w4", Script: "/s"})
	if got := r.calls(t); got[0] != "session|split|--session|NEW-1" {
		t.Errorf("split with %s", got[0])
	}
}

// A pane in which nothing could be started does not stay open.
func TestITerm2FailedStart(t *testing.T) {
	r := standIn(t)
	terminal := r.terminal(t, "IT2_FAIL=session run")
	_, err := terminal.Open(t.Context(), pane.Spec{Title: "w1", Script: "/s"})
	if err == nil || !strings.Contains(err.Error(), "it2 was told to") {
		t.Errorf("error %v", err)
	}
	if got := alive(t, terminal, pane.Place{Terminal: pane.ITerm2, Pane: "NEW-1"}); got[0] {
		t.Error("the pane stays open")
	}
	if _, err := r.terminal(t, "IT2_FAIL=session list").Alive(t.Context(), nil); err == nil {
		t.Error("no error although nothing is known")
	}
}

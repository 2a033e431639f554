package task_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
)

func withMetadata(t *testing.T, text string) task.Task {
	t.Helper()
	var o jsonx.Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return task.Task{ID: "1", Metadata: o}
}

func TestCheck(t *testing.T) {
	for metadata, want := range map[string]string{
		`{}`:                           "",
		`{"check":" go test ./...\n"}`: "go test ./...",
		`{"check":"  "}`:               "",
		`{"check":["go","test"]}`:      "", // nothing that we could run
		`{"other":"x"}`:                "",
	} {
		if got := withMetadata(t, metadata).Check(); got != want {
			t.Errorf("%s: check %q, want %q", metadata, got, want)
		}
	}
}

func TestEvidenceIsKeptInMetadata(t *testing.T) {
	e := task.Evidence{
		Command: "go test", ExitCode: 1, Output: "FAIL <x>\n", By: "w1", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	kept := e.Metadata()
	want := `{"checked":{"command":"go test","passed":false,"exitCode":1,"output":"FAIL <x>\n","by":"w1","at":"2026-01-02T03:04:05Z"}}`
	if diff := cmp.Diff(want, string(jsonx.MustMarshal(kept))); diff != "" {
		t.Errorf("as kept (-want +got):\n%s", diff)
	}
	item := withMetadata(t, `{"check":"go test"}`)
	out, _, err := task.Apply([]task.Task{item}, "1", task.Change{Metadata: kept})
	if err != nil {
		t.Fatal(err)
	}
	got, ok := out.After.Checked()
	if diff := cmp.Diff(e, got); diff != "" || !ok {
		t.Errorf("read back: %v (-want +got):\n%s", ok, diff)
	}
	if out.After.Check() != "go test" {
		t.Error("the evidence took the check's place")
	}
}

// Evidence is of one command: of another it proves nothing.
func TestEvidenceOfAnotherCheckIsNone(t *testing.T) {
	for _, metadata := range []string{
		`{"check":"go vet","checked":{"command":"true","passed":true}}`,
		`{"checked":{"command":"true","passed":true}}`,
		`{"check":"true","checked":"passed"}`,
		`{"check":"true"}`,
	} {
		if e, ok := withMetadata(t, metadata).Checked(); ok || e.Passed {
			t.Errorf("%s: evidence %+v", metadata, e)
		}
	}
}

func TestEvidenceKeepsTheEndOfLongOutput(t *testing.T) {
	e := task.Evidence{Command: "x", Output: strings.Repeat("ä", task.MaxEvidence) + "\xff the end"}
	item := withMetadata(t, `{"check":"x"}`)
	item.Metadata.Set(task.CheckedKey, func() json.RawMessage { o := e.Metadata(); return o.Raw(task.CheckedKey) }())
	got, ok := item.Checked()
	if !ok || len(got.Output) > task.MaxEvidence || len(got.Output) < task.MaxEvidence-utf8.UTFMax {
		t.Fatalf("%v, %d bytes of output", ok, len(got.Output))
	}
	if !strings.HasSuffix(got.Output, "ä\ufffd the end") || !utf8.ValidString(got.Output) {
		t.Errorf("output ends with %q", got.Output[len(got.Output)-20:])
	}
}

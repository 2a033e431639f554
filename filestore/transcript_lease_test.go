package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/lease"
	"github.com/cadre-dev/cadre/transcript"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The first request of a run waits for what a session needs on the disk: two files in
// folders that are there already. A removed session leaves neither.
func TestASessionOfOneTurnMakesNoFolder(t *testing.T) {
	root := layout.Root(t.TempDir())
	store := filestore.New(root)
	t.Cleanup(func() { _ = store.Close() })
	ref := transcript.Ref{Project: "/w", Session: "00000000-0000-4000-8000-000000000001"}
	log, err := store.Transcripts().Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), transcript.Entry{UUID: "u", Message: transcript.UserText("hello")}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	project := root.Project(ref.Project)
	if got := names(t, project); !slices.Equal(got, []string{ref.Session + ".jsonl", "cadre"}) {
		t.Errorf("the project's folder holds %q", got)
	}
	if err := store.Transcripts().Remove(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if got := names(t, project); !slices.Equal(got, []string{"cadre"}) {
		t.Errorf("a removed session leaves %q", got)
	}
	if got := names(t, filepath.Join(project, "cadre")); len(got) > 0 {
		t.Errorf("a removed session leaves %q", got)
	}
}

// Cadre had the lease of a main session in the session's folder once. Who has it there
// keeps others away; what is left of it does not.
func TestALeaseInTheSessionsFolderCounts(t *testing.T) {
	root := layout.Root(t.TempDir())
	store := filestore.New(root)
	t.Cleanup(func() { _ = store.Close() })
	ref := transcript.Ref{Project: "/w", Session: "00000000-0000-4000-8000-000000000001"}
	if err := os.MkdirAll(root.SideDir(ref.Project, ref.Session), 0o700); err != nil {
		t.Fatal(err)
	}
	older, err := lease.Acquire(t.Context(), fsx.OS, root.Side(ref.Project, ref.Session, "", "lease"))
	if err != nil {
		t.Fatal(err)
	}
	var held *transcript.HeldError
	if log, err := store.Transcripts().Open(t.Context(), ref); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Fatalf("opened %v: %v", log, err)
	}
	if err := older.Release(); err != nil {
		t.Fatal(err)
	}
	log, err := store.Transcripts().Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

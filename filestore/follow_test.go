package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// A store does not look at every task file for every change: our processes
// write down what they changed, the watch finds what others changed.

// seldom is a store that looks at everything once an hour.
func seldom(t *testing.T, root layout.Root) *filestore.Store {
	t.Helper()
	s := open(t, root, filestore.WithPoll(time.Hour), filestore.WithWarn(func(err error) { t.Errorf("warning: %v", err) }))
	check(t, readTasks(t.Context(), s))
	return s
}

// edit changes a task file in place, as a program without locks does.
func edit(t testing.TB, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	changed := strings.Replace(string(data), old, new, 1)
	if changed == string(data) {
		t.Fatalf("no %s in %s", old, data)
	}
	check(t, os.WriteFile(path, []byte(changed), 0o600))
}

func claim(t *testing.T, s *filestore.Store) string {
	t.Helper()
	one, ok, err := s.Tasks().Claim(t.Context(), "t", "w9")
	check(t, err)
	if !ok {
		return ""
	}
	return one.ID
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestWatchFindsWhatOthersChange(t *testing.T) {
	root, plain := quiet(t)
	check(t, makeTasks(t.Context(), plain)) // 2 waits for 1; 3 is free; 4 is taken
	s := seldom(t, root)
	signal, stop := s.Tasks().Watch("t")
	defer stop()
	want(t, "first", claim(t, s), "1")
	want(t, "second", claim(t, s), "3")
	want(t, "nothing left", claim(t, s), "")
	edit(t, root.Task("t", "1"), "in_progress", "completed")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for got := ""; got != "2"; got = claim(t, s) {
		select {
		case <-signal:
		case <-ctx.Done():
			t.Fatal("the watch did not tell")
		}
	}
}

func TestWithoutWatchEverythingIsLookedAtInTime(t *testing.T) {
	root, plain := quiet(t)
	check(t, makeTasks(t.Context(), plain))
	s := open(t, root, filestore.WithPoll(0))
	for _, id := range []string{"1", "3"} {
		want(t, "claim", claim(t, s), id)
	}
	edit(t, root.Task("t", "1"), "in_progress", "completed")
	want(t, "after another program completed its blocker", claim(t, s), "2")
}

func TestOthersAreNotOverlooked(t *testing.T) {
	root, plain := quiet(t)
	check(t, makeTasks(t.Context(), plain))
	s := seldom(t, root)
	// Another program makes a task, as it would be numbered next.
	write(t, root.Task("t", "5"), strings.ReplaceAll(fixture(t, "02-tasks/1.json"), `"id": "1"`, `"id": "5"`))
	_, err := s.Tasks().Update(t.Context(), "t", "5", task.Change{Owner: ptr("w1")})
	check(t, err)
	write(t, root.Task("t", "6"), strings.ReplaceAll(fixture(t, "02-tasks/1.json"), `"id": "1"`, `"id": "6"`))
	made, err := s.Tasks().Create(t.Context(), "t", task.Task{Subject: "ours"})
	check(t, err)
	want(t, "the next id", made.ID, "7")
	// A blocker is opened again while we believe that it is completed.
	_, err = plain.Tasks().Update(t.Context(), "t", "1", completed)
	check(t, err)
	_, err = s.Tasks().Update(t.Context(), "t", "3", completed)
	check(t, err)
	edit(t, root.Task("t", "1"), "completed", "in_progress")
	if got := claim(t, s); got == "2" {
		t.Error("claimed a task whose blocker was opened again")
	}
}

func TestChangeLog(t *testing.T) {
	root, plain := quiet(t)
	check(t, makeTasks(t.Context(), plain))
	log := filepath.Join(root.OwnDir(), "locks", "tasks", "t", "changes")
	spoil := map[string]func(){
		"as it is": func() {},
		"missing":  func() { check(t, os.Remove(log)) },
		"garbage":  func() { appendTo(t, log, "\n../../x\n\x00\n") },
		"torn":     func() { appendTo(t, log, "\n1") },
		"long":     func() { appendTo(t, log, strings.Repeat("\n1\n", 30_000)) },
		"empty":    func() { check(t, os.Truncate(log, 0)) },
	}
	for name, spoil := range spoil {
		s := seldom(t, root)
		spoil()
		for _, owner := range []string{"w1", "w2"} {
			_, err := plain.Tasks().Update(t.Context(), "t", "3", task.Change{Owner: &owner})
			check(t, err)
			want(t, name+": nothing to claim", claim(t, s), "1")
			released, err := plain.Tasks().Release(t.Context(), "t", "w9")
			if err != nil || len(released) != 1 {
				t.Fatalf("%s: released %v, %v", name, released, err)
			}
		}
	}
	info, err := os.Stat(log)
	check(t, err)
	if info.Size() > 70_000 {
		t.Errorf("the log has %d bytes", info.Size())
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	_, err = f.WriteString(text)
	check(t, err)
	check(t, f.Close())
}

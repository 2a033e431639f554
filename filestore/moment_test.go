package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// disturbed is a store that looks at everything once an hour. After armed, its
// first look at the file of a task has others do something first.
func disturbed(t *testing.T, root layout.Root, id string, others func()) (s *filestore.Store, armed func()) {
	t.Helper()
	var once *sync.Once
	file := root.Task("t", id)
	decide := func(c fsx.Call) *fsx.Fault {
		if once != nil && c.Op == "lstat" && c.Path == file {
			once.Do(others)
		}
		return nil
	}
	s = open(t, root, filestore.WithFS(&fsx.Faulty{FS: fsx.OS, Decide: decide}), filestore.WithPoll(time.Hour))
	check(t, readTasks(t.Context(), s))
	return s, func() { once = new(sync.Once) }
}

func create(t *testing.T, s *filestore.Store) string {
	t.Helper()
	made, err := s.Tasks().Create(t.Context(), "t", task.Task{Subject: "s"})
	check(t, err)
	return made.ID
}

// While one looks at a list of one task, another is added and then the first is
// taken: at no moment was there nothing left to take.
func TestALookIsOfOneMoment(t *testing.T) {
	root, other := quiet(t)
	create(t, other)
	s, arm := disturbed(t, root, "1", func() {
		create(t, other)
		want(t, "another claims", claim(t, other), "1")
	})
	arm()
	list, err := s.Tasks().List(t.Context(), "t")
	check(t, err)
	if task.FirstClaimable(list) < 0 {
		t.Errorf("as the list never was: %+v", list)
	}
}

func TestNothingToClaimIsOfOneMoment(t *testing.T) {
	root, other := quiet(t)
	create(t, other)
	want(t, "another claims", claim(t, other), "1")
	s, arm := disturbed(t, root, "1", func() {
		create(t, other)
		want(t, "another claims again", claim(t, other), "1")
	})
	want(t, "before", claim(t, s), "")
	if released, err := other.Tasks().Release(t.Context(), "t", "w9"); err != nil || len(released) != 1 {
		t.Fatalf("released %v, %v", released, err)
	}
	arm()
	want(t, "what was free all the time", claim(t, s), "2")
}

// The system gives the number of a deleted file to a new one, so that a later log
// may look as if it were the one that a store knows, grown.
func TestALaterChangeLogIsAnother(t *testing.T) {
	root, other := quiet(t)
	check(t, makeTasks(t.Context(), other)) // 2 waits for 1; 3 is free; 4 is taken
	s := seldom(t, root)
	for _, id := range []string{"1", "3"} {
		want(t, "first", claim(t, s), id)
	}
	_, err := other.Tasks().Update(t.Context(), "t", "1", completed)
	check(t, err)
	log := filepath.Join(root.OwnDir(), "locks", "tasks", "t", "changes")
	check(t, os.WriteFile(log, []byte("\n=later\n"+strings.Repeat("\n4\n", 100)), 0o600))
	want(t, "what the log does not tell", claim(t, s), "2")
}

// Who saw a change that was taken back is told so.
func TestAChangeTakenBackIsToldToOthers(t *testing.T) {
	root, plain := quiet(t)
	check(t, makeTasks(t.Context(), plain))
	want(t, "first", claim(t, plain), "1")
	s := seldom(t, root)
	var full sync.Once
	faulty := &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) (fault *fsx.Fault) {
		if c.Op == "write" && filepath.Base(c.Path) == "changes" {
			full.Do(func() {
				_, err := s.Tasks().List(t.Context(), "t")
				check(t, err)
				fault = &fsx.Fault{Err: errors.New("the disk is full")}
			})
		}
		return fault
	}}
	failing := open(t, root, filestore.WithFS(faulty))
	if _, err := failing.Tasks().Update(t.Context(), "t", "3", task.Change{Owner: ptr("w1")}); err == nil {
		t.Fatal("the disk is full")
	}
	want(t, "what nobody has", claim(t, s), "3")
}

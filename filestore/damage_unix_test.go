//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

const unreadableText = "nobody may read this"

// damages put something else in the place of a file.
var damages = map[string]func(path string) error{
	"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "with a folder in it"), 0o700) },
	"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"a socket": func(path string) error {
		short, err := os.MkdirTemp("", "s") // the system takes no long path for a socket
		if err != nil {
			return err
		}
		socket := net.UnixAddr{Name: filepath.Join(short, "s"), Net: "unix"}
		l, err := net.ListenUnix("unix", &socket)
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		return errors.Join(os.Rename(socket.Name, path), l.Close(), os.Remove(short))
	},
	"a link to itself": func(path string) error { return os.Symlink(path, path) },
	"an unreadable file": func(path string) error { // to whom it is, deny says
		return os.WriteFile(path, []byte(unreadableText), 0o600)
	},
	"nothing": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	"garbage": func(path string) error { return os.WriteFile(path, []byte("\x00\xff{]\n{\n"), 0o600) },
	"far too much": func(path string) error {
		return errors.Join(os.WriteFile(path, []byte("["), 0o600), os.Truncate(path, 2<<30))
	},
}

// deny is a file layer that keeps everybody from the unreadable file, the superuser
// who may run this test included.
func deny(path *string) fsx.FS {
	return &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op != "openfile" || c.Path != *path {
			return nil
		}
		info, err := os.Lstat(c.Path)
		if err != nil || info.Size() != int64(len(unreadableText)) {
			return nil
		}
		return &fsx.Fault{Err: syscall.EACCES}
	}}
}

// kind is what stands at a path, to be compared with what is kept of it.
func kind(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	check(t, err)
	size := info.Size()
	if info.IsDir() {
		size = 0 // it depends on the file system
	}
	return fmt.Sprint(info.Mode().Type(), " ", size)
}

// victim is a file that is damaged, and what must go on without it.
type victim struct {
	setup func(ctx context.Context, s *filestore.Store) error
	path  func(root layout.Root) string
	works func(ctx context.Context, t *testing.T, s *filestore.Store, root layout.Root)
	// rewritten says that a file there gets other content by all that, be it sound or
	// not.
	rewritten bool
	// mayBeEmpty says that an empty file there is as good as a sound one.
	mayBeEmpty bool
}

var victims = map[string]victim{
	"task": {makeFreeTasks, func(root layout.Root) string { return root.Task("t", "2") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, root layout.Root) {
			all, err := s.Tasks().List(ctx, "t")
			check(t, err)
			if len(all) != killRounds-1 {
				t.Errorf("listed %+v", all)
			}
			if _, err := s.Tasks().Get(ctx, "t", "2"); err == nil || errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), root.Task("t", "2")) {
				t.Errorf("get: %v", err)
			}
			for _, want := range []string{"1", "3", ""} {
				got, _, err := s.Tasks().Claim(ctx, "t", "w1")
				check(t, err)
				if got.ID != want {
					t.Errorf("claimed #%s, want #%s", got.ID, want)
				}
			}
			made, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "new", BlockedBy: []string{"1"}})
			check(t, err)
			if made.ID != "4" {
				t.Errorf("made #%s", made.ID)
			}
			_, err = s.Tasks().Release(ctx, "t", "w1")
			check(t, err)
			check(t, s.Tasks().Reset(ctx, "t"))
			made, err = s.Tasks().Create(ctx, "t", task.Task{Subject: "after the reset"})
			check(t, err)
			if made.ID != "5" {
				t.Errorf("made #%s after the reset", made.ID)
			}
		}, false, false},
	"highest id": {makeFreeTasks, func(root layout.Root) string { return filepath.Join(root.TaskList("t"), ".highwatermark") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			check(t, update("3", task.Change{Status: ptr(task.Deleted)})(ctx, s))
			made, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "new"})
			check(t, err)
			if made.ID != "4" {
				t.Errorf("made #%s", made.ID)
			}
		}, true, false},
	"inbox": {func(ctx context.Context, s *filestore.Store) error {
		return s.Mail().Post(ctx, mailbox.Address{Team: "t", Agent: "other"}, ordinary(1))
	}, inboxPath,
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			for i, at := range []mailbox.Address{{Team: "t", Agent: "other"}, faultBox} {
				unread, err := s.Mail().Unread(ctx, at)
				check(t, err)
				if len(unread) != 1-i {
					t.Errorf("%s has %d unread", at, len(unread))
				}
				check(t, s.Mail().Post(ctx, at, ordinary(2)))
				unread, err = s.Mail().Unread(ctx, at)
				check(t, err)
				if len(unread) != 2-i {
					t.Errorf("%s has %d unread after a post", at, len(unread))
				}
				check(t, s.Mail().MarkRead(ctx, at, ids(unread)))
			}
		}, false, true},
	"inbox of one who is written to": {nothing, inboxPath,
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			check(t, s.Mail().Post(ctx, faultBox, ordinary(1)))
			if all, err := s.Mail().All(ctx, faultBox); err != nil || len(all) != 1 {
				t.Errorf("mail %+v, %v", all, err)
			}
		}, false, true},
	"roster": {func(ctx context.Context, s *filestore.Store) error {
		return s.Teams().Create(ctx, roster.Roster{Name: "other"})
	}, func(root layout.Root) string { return root.TeamConfig("t") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, root layout.Root) {
			all, err := s.Teams().List(ctx)
			check(t, err)
			if len(all) != 1 || all[0].Name != "other" {
				t.Errorf("teams %+v", all)
			}
			if _, err := s.Teams().Load(ctx, "t"); err == nil || !strings.Contains(err.Error(), root.TeamConfig("t")) {
				t.Errorf("load: %v", err)
			}
			if err := s.Teams().Create(ctx, roster.Roster{Name: "t"}); !errors.Is(err, roster.ErrExists) {
				t.Errorf("create: %v", err)
			}
		}, false, false},
	"record": {inOrder(makeTeam, putRecord("other", `1`)), func(root layout.Root) string { return root.Record("t", roster.RecordAgent, "w1") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			all, err := s.Records().All(ctx, "t", roster.RecordAgent)
			check(t, err)
			if len(all) != 1 {
				t.Errorf("records %q", all)
			}
			check(t, putRecord("w1", `2`)(ctx, s))
			doc, err := s.Records().Get(ctx, "t", roster.RecordAgent, "w1")
			check(t, err)
			if string(doc) != "2" {
				t.Errorf("record %s", doc)
			}
		}, true, false},
	"record that is dropped": {inOrder(makeTeam, putRecord("other", `1`)), func(root layout.Root) string { return root.Record("t", roster.RecordAgent, "w1") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			_, err := s.Records().All(ctx, "t", roster.RecordAgent)
			check(t, err)
			check(t, s.Records().Drop(ctx, "t", roster.RecordAgent, "w1"))
			if _, err := s.Records().Get(ctx, "t", roster.RecordAgent, "w1"); !errors.Is(err, roster.ErrNoRecord) {
				t.Errorf("dropped: %v", err)
			}
		}, true, false},
	"asks": {nothing, func(root layout.Root) string { return root.Side(faultRef.Project, faultRef.Session, "", "asks") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			asks := s.Asks(faultRef)
			if pending, err := asks.Pending(ctx); err != nil || len(pending) != 0 {
				t.Errorf("pending %+v, %v", pending, err)
			}
			check(t, asks.Put(ctx, ask.Ask{ID: "q1", Question: "?"}))
			if pending, err := s.Asks(faultRef).Pending(ctx); err != nil || len(pending) != 1 {
				t.Errorf("kept %+v, %v", pending, err)
			}
		}, true, true},
	"jobs": {nothing, func(root layout.Root) string { return root.Side(faultRef.Project, faultRef.Session, "", "jobs") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			if all, err := s.Jobs(faultRef).All(ctx); err != nil || len(all) != 0 {
				t.Errorf("jobs %+v, %v", all, err)
			}
			check(t, beginJob(faultRef, "b1")(ctx, s))
			if all, err := s.Jobs(faultRef).All(ctx); err != nil || len(all) != 1 {
				t.Errorf("kept %+v, %v", all, err)
			}
		}, true, true},
	"jobs of one who begins": {nothing, func(root layout.Root) string { return root.Side(faultRef.Project, faultRef.Session, "", "jobs") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			_, err := s.Jobs(transcript.Ref{Project: faultRef.Project, Session: "other"}).All(ctx)
			check(t, err)
			check(t, s.Jobs(faultRef).EndUnfinished(ctx, job.End{}))
			check(t, beginJob(faultRef, "b1")(ctx, s))
		}, true, true},
	"question on the desk": {inOrder(plantKey, layAsk("q2")), func(root layout.Root) string { return root.OpenAsk("q1") },
		func(ctx context.Context, t *testing.T, s *filestore.Store, _ layout.Root) {
			open, err := s.Desk().Open(ctx)
			check(t, err)
			if len(open) != 1 || open[0].ID != "q2" {
				t.Errorf("open %+v", open)
			}
		}, false, false},
}

// Whatever stands in the place of one file, only what that file was about stops; it is
// kept, and a person is told of it.
func TestOneDamagedFile(t *testing.T) {
	for name, v := range victims {
		for what, damage := range damages {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				var path string
				root, s, w := warned(t, filestore.WithFS(deny(&path)))
				path = v.path(root)
				check(t, v.setup(t.Context(), open(t, root)))
				check(t, os.RemoveAll(path))
				check(t, os.MkdirAll(filepath.Dir(path), 0o700))
				check(t, damage(path))
				before := kind(t, path)
				v.works(t.Context(), t, s, root)
				if what == "nothing" && v.mayBeEmpty {
					return
				}
				w.say(t, path)
				if v.rewritten && before[0] == '-' {
					return
				}
				found := append(setAside(t, root, path), path)
				for _, p := range found {
					if _, err := os.Lstat(p); err == nil && kind(t, p) == before {
						return
					}
				}
				t.Errorf("nothing is kept of it in %q", found)
			})
		}
	}
}

// Nobody will ever have the lock of a task in whose place something else stands: the
// others are claimed.
func TestOneTaskThatCannotBeLocked(t *testing.T) {
	root, s, w := warned(t)
	check(t, makeFreeTasks(t.Context(), s))
	lock := root.Task("t", "1") + ".lock"
	write(t, lock, "not a lock")
	for _, want := range []string{"2", "3", ""} {
		got, _, err := s.Tasks().Claim(t.Context(), "t", "w1")
		check(t, err)
		if got.ID != want {
			t.Errorf("claimed #%s, want #%s", got.ID, want)
		}
	}
	w.say(t, lock)
	check(t, os.Remove(lock))
	_, err := s.Tasks().List(t.Context(), "t")
	check(t, err)
	if got, ok, err := s.Tasks().Claim(t.Context(), "t", "w1"); err != nil || !ok || got.ID != "1" {
		t.Errorf("claimed %+v, %v, %v", got, ok, err)
	}
}

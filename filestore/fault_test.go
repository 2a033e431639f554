package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/race"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// patient is the machine's file system without the wait for the disk: nobody
// pulls the plug on a test.
type patient struct{ fsx.FS }

type patientFile struct{ fsx.File }

func (p patient) OpenFile(path string, flag int, mode fs.FileMode) (fsx.File, error) {
	f, err := p.FS.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return patientFile{f}, nil
}

func (patient) SyncDir(string) error { return nil }

func (patientFile) Sync() error { return nil }

// An operation of a store, for tests that make it fail or kill it at any point.
type operation struct {
	name string
	// setup makes the state that the operation starts from.
	setup func(ctx context.Context, s *filestore.Store) error
	// warm makes the store read what it may remember.
	warm func(ctx context.Context, s *filestore.Store) error
	// act is the operation.
	act func(ctx context.Context, s *filestore.Store) error
	// partly is set for those that may have taken effect although they failed:
	// the removal of several files.
	partly bool
}

var (
	faultBox  = mailbox.Address{Team: "t", Agent: "w1"}
	faultRef  = transcript.Ref{Project: "/p", Session: "s"}
	faultTeam = roster.Roster{Name: "t", Members: []roster.Member{{AgentID: "team-lead@t", Name: "team-lead"}}}
)

func faultEntry(n int) transcript.Entry {
	return transcript.Entry{UUID: fmt.Sprint("u", n), Kind: transcript.KindUser, SessionID: "s", At: time.UnixMilli(1795231010482),
		Message: transcript.UserText(fmt.Sprint("text ", n)), Receipts: []string{fmt.Sprint("mail:", n)}}
}

func postNumber(ctx context.Context, s *filestore.Store, n int) error {
	return s.Mail().Post(ctx, faultBox, post("w2", fmt.Sprint("message ", n), "", "2026-11-21T03:18:57.981Z", "blue"))
}

func postTwo(ctx context.Context, s *filestore.Store) error {
	return errors.Join(postNumber(ctx, s, 1), postNumber(ctx, s, 2))
}

func readMail(ctx context.Context, s *filestore.Store) error {
	_, err := s.Mail().Unread(ctx, faultBox)
	return err
}

// longMail makes an inbox that is long enough to be marked in place.
func longMail(ctx context.Context, s *filestore.Store) error {
	long := post("w2", strings.Repeat("long ", 20_000), "", "2026-11-21T03:18:57.981Z", "")
	return errors.Join(s.Mail().Post(ctx, faultBox, long), postTwo(ctx, s))
}

// markNewest marks the newest two messages of three.
func markNewest(ctx context.Context, s *filestore.Store) error {
	unread, err := s.Mail().Unread(ctx, faultBox)
	if err != nil || len(unread) < 3 {
		return err
	}
	return s.Mail().MarkRead(ctx, faultBox, ids(unread[1:]))
}

func makeTasks(ctx context.Context, s *filestore.Store) error {
	var errs []error
	for _, t := range []task.Task{{Subject: "one"}, {Subject: "two", BlockedBy: []string{"1"}},
		{Subject: "three"}, {Subject: "four", Owner: "w1", Status: task.InProgress}} {
		_, err := s.Tasks().Create(ctx, "t", t)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func readTasks(ctx context.Context, s *filestore.Store) error {
	_, err := s.Tasks().List(ctx, "t")
	return err
}

func update(id string, c task.Change) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error {
		_, err := s.Tasks().Update(ctx, "t", id, c)
		return err
	}
}

var completed = task.Change{Status: ptr(task.Completed)}

func makeTeam(ctx context.Context, s *filestore.Store) error { return s.Teams().Create(ctx, faultTeam) }

func appendEntries(from, to int) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error {
		log, err := s.Transcripts().Open(ctx, faultRef)
		if err != nil {
			return err
		}
		var entries []transcript.Entry
		for n := from; n <= to; n++ {
			entries = append(entries, faultEntry(n))
		}
		err = log.Append(ctx, entries...)
		_ = log.Close() // what counts is the append
		return err
	}
}

func nothing(context.Context, *filestore.Store) error { return nil }

var operations = []operation{
	{name: "post to a new inbox", setup: nothing, warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error { return postNumber(ctx, s, 1) }},
	{name: "post cold", setup: postTwo, warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error { return postNumber(ctx, s, 3) }},
	{name: "post warm", setup: postTwo, warm: readMail,
		act: func(ctx context.Context, s *filestore.Store) error { return postNumber(ctx, s, 3) }},
	{name: "mark read", setup: postTwo, warm: readMail,
		act: func(ctx context.Context, s *filestore.Store) error {
			unread, err := s.Mail().Unread(ctx, faultBox)
			if err != nil || len(unread) == 0 {
				return err
			}
			return s.Mail().MarkRead(ctx, faultBox, []mailbox.ID{unread[0].ID})
		}},
	{name: "mark read in place", setup: longMail, warm: readMail, act: markNewest},
	{name: "mark read in place, cold", setup: longMail, warm: nothing, act: markNewest},
	{name: "post to a long inbox", setup: longMail, warm: readMail,
		act: func(ctx context.Context, s *filestore.Store) error { return postNumber(ctx, s, 3) }},
	{name: "create", setup: makeTasks, warm: readTasks,
		act: func(ctx context.Context, s *filestore.Store) error {
			_, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "new", Blocks: []string{"3"}, BlockedBy: []string{"1", "2"}})
			return err
		}},
	{name: "create in a new list", setup: nothing, warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error {
			_, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "new"})
			return err
		}},
	{name: "update", setup: makeTasks, warm: readTasks,
		act: update("3", task.Change{Subject: ptr("changed"), AddBlockedBy: []string{"1", "2"}, AddBlocks: []string{"4"}})},
	{name: "delete", setup: makeTasks, warm: readTasks, act: update("1", task.Change{Status: ptr(task.Deleted)})},
	{name: "claim", setup: makeTasks, warm: readTasks,
		act: func(ctx context.Context, s *filestore.Store) error {
			_, ok, err := s.Tasks().Claim(ctx, "t", "w9")
			if err == nil && !ok {
				err = errors.New("nothing to claim")
			}
			return err
		}},
	{name: "release", setup: makeTasks, warm: readTasks,
		act: func(ctx context.Context, s *filestore.Store) error {
			_, err := s.Tasks().Release(ctx, "t", "w1")
			return err
		}},
	{name: "release several",
		setup: func(ctx context.Context, s *filestore.Store) error {
			return errors.Join(makeTasks(ctx, s), update("1", task.Change{Owner: ptr("w1")})(ctx, s))
		},
		warm: readTasks,
		act: func(ctx context.Context, s *filestore.Store) error {
			_, err := s.Tasks().Release(ctx, "t", "w1")
			return err
		}},
	{name: "claim, cold", setup: makeTasks, warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error {
			_, ok, err := s.Tasks().Claim(ctx, "t", "w9")
			if err == nil && !ok {
				err = errors.New("nothing to claim")
			}
			return err
		}},
	{name: "complete", setup: makeTasks, warm: readTasks, act: update("1", completed)},
	{name: "reset", setup: makeTasks, warm: readTasks,
		act: func(ctx context.Context, s *filestore.Store) error { return s.Tasks().Reset(ctx, "t") }},
	{name: "remove list", setup: makeTasks, warm: readTasks, partly: true,
		act: func(ctx context.Context, s *filestore.Store) error { return s.Tasks().Remove(ctx, "t") }},
	{name: "create team", setup: nothing, warm: nothing, act: makeTeam},
	{name: "update team", setup: makeTeam, warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error {
			_, err := s.Teams().Update(ctx, "t", func(c *roster.Roster) error {
				c.Members = append(c.Members, alphaMate("w1", "haiku", "p", "blue", 1))
				return nil
			})
			return err
		}},
	{name: "remove member", warm: nothing,
		setup: func(ctx context.Context, s *filestore.Store) error {
			c := faultTeam
			c.Members = append(slices.Clone(c.Members), alphaMate("w1", "haiku", "p", "blue", 1))
			return s.Teams().Create(ctx, c)
		},
		act: func(ctx context.Context, s *filestore.Store) error {
			_, err := s.Teams().Update(ctx, "t", func(c *roster.Roster) error {
				c.Members = slices.DeleteFunc(c.Members, func(m roster.Member) bool { return m.Name == "w1" })
				return nil
			})
			return err
		}},
	{name: "remove team", setup: makeTeam, warm: nothing, partly: true,
		act: func(ctx context.Context, s *filestore.Store) error { return s.Teams().Remove(ctx, "t") }},
	{name: "append to a new session", setup: nothing, warm: nothing, act: appendEntries(1, 3)},
	{name: "append", setup: appendEntries(1, 2), warm: nothing, act: appendEntries(3, 5)},
	{name: "remove session", setup: appendEntries(1, 2), warm: nothing, partly: true,
		act: func(ctx context.Context, s *filestore.Store) error { return s.Transcripts().Remove(ctx, faultRef) }},
	{name: "fork", setup: appendEntries(1, 2), warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error {
			return s.Transcripts().Fork(ctx, faultRef, transcript.Ref{Project: "/p", Session: "fork"}, true)
		}},
	{name: "ask", setup: nothing, warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error {
			return s.Asks(faultRef).Put(ctx, ask.Ask{ID: "q1", Question: "?"})
		}},
	{name: "answer",
		setup: func(ctx context.Context, s *filestore.Store) error {
			return s.Asks(faultRef).Put(ctx, ask.Ask{ID: "q1", Question: "?"})
		},
		warm: nothing,
		act: func(ctx context.Context, s *filestore.Store) error {
			return s.Asks(faultRef).Resolve(ctx, "q1", ask.Answer{By: "person"})
		}},
}

// dump is the shared state under a root, file by file. What is ours alone and
// may stay behind (side files of locks, leases, marks of ids) is not in it.
func dump(t *testing.T, root layout.Root) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(string(root), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && (name == "locks" || strings.HasPrefix(name, ".gone-")):
			return filepath.SkipDir
		case d.IsDir() && strings.HasSuffix(name, ".lock"):
			t.Errorf("lock left behind: %s", path)
		case strings.HasSuffix(name, ".tmp"):
			t.Errorf("temporary file left behind: %s", path)
		case strings.HasSuffix(name, ".seals"):
			lines, err := wholeSeals(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(string(root), path)
			files[rel] = lines
		case d.IsDir(), name == ".lock", name == ".highwatermark", strings.HasSuffix(name, ".lease"), strings.HasSuffix(name, ".receipts"):
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if rel, _ := filepath.Rel(string(root), path); len(data) > 0 {
				files[rel] = string(data)
			}
		}
		return nil
	})
	check(t, err)
	return files
}

// testAll asks for what takes long.
var testAll = os.Getenv("CADRE_TEST_ALL") != ""

// testWhole asks for every fault, every point of a kill, every place to tear a
// text, and crowds of processes. The race detector finds nothing in what one
// goroutine does, and makes it many times as slow: these are for a run without it.
var testWhole = testAll && !race.Enabled

var faults = map[string]fsx.Fault{
	"EIO":    {Err: syscall.EIO},
	"ENOSPC": {Err: syscall.ENOSPC, Short: true},
	"EACCES": {Err: syscall.EACCES},
}

// A log goes on after a failure: what was not acknowledged is not there, and the
// next entry starts on a fresh line.
func TestOpenLogSurvivesFaults(t *testing.T) {
	for name, fault := range faults {
		for n := 1; ; n++ {
			root := layout.Root(t.TempDir())
			faulty := &fsx.Faulty{FS: patient{fsx.OS}}
			s := open(t, root, filestore.WithFS(faulty), filestore.WithSync(true))
			log, err := s.Transcripts().Open(t.Context(), faultRef)
			check(t, err)
			faulty.Decide = fsx.FailNth(faulty.Calls()+n, fault)
			var want []string
			failed := false
			for i := 1; i <= 6; i += 2 {
				if err := log.Append(t.Context(), faultEntry(i), faultEntry(i+1)); err != nil {
					failed = true
					continue
				}
				want = append(want, faultEntry(i).UUID, faultEntry(i+1).UUID)
			}
			faulty.Decide = nil
			entries, err := log.Entries(t.Context())
			check(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, e.UUID)
				if len(e.Receipts) != 1 {
					t.Errorf("%s in call %d: receipts %v of %s", name, n, e.Receipts, e.UUID)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in call %d: (-want +got)\n%s", name, n, diff)
			}
			check(t, log.Close())
			if !failed {
				break
			}
		}
	}
}

// canHappen reports whether the system may answer a call with an error like this.
func canHappen(err error, c fsx.Call) bool {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return c.Changes || c.Op == "sync" || c.Op == "close"
	case errors.Is(err, syscall.EACCES): // the file is open already
		return !slices.Contains([]string{"read", "readat", "write", "writeat", "stat", "truncate", "sync", "close", "trylock", "unlock"}, c.Op)
	}
	return true
}

// nthFailure makes one call fail: the n-th of those to which one of the faults can
// happen, with each of these in turn.
type nthFailure struct {
	n      int
	faults []fsx.Fault
	calls  int // so far, of those
	fault  fsx.Fault
}

func (f *nthFailure) decide(c fsx.Call) *fsx.Fault {
	possible := slices.DeleteFunc(slices.Clone(f.faults), func(fault fsx.Fault) bool { return !canHappen(fault.Err, c) })
	if len(possible) == 0 {
		return nil
	}
	if f.calls++; f.calls != f.n {
		return nil
	}
	f.fault = possible[f.n%len(possible)]
	return &f.fault
}

// Every operation fails whole when any one call fails, and works when it is
// tried again.
func TestEveryCallFailsOnce(t *testing.T) {
	all := slices.Collect(maps.Values(faults))
	for _, op := range slices.Concat(operations, ownOperations, jobOperations) {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			before, after := wanted(t, op)
			if !testWhole {
				failEachCall(t, op, true, before, after, all...)
				return
			}
			for name, fault := range faults {
				t.Run(name, func(t *testing.T) { failEachCall(t, op, true, before, after, fault) })
			}
			// These are calls that have failed above too; what comes after them is less.
			t.Run("without sync", func(t *testing.T) { failEachCall(t, op, false, before, after, all...) })
		})
	}
}

// wanted is the state before and after an operation that nothing disturbs.
func wanted(t *testing.T, op operation) (before, after map[string]string) {
	root, s := quiet(t)
	check(t, op.setup(t.Context(), s))
	before = dump(t, root)
	check(t, op.act(t.Context(), s))
	after = dump(t, root)
	if cmp.Equal(before, after) {
		t.Fatal("the operation changes nothing")
	}
	return before, after
}

// failEachCall fails call after call, with the faults that can happen to it in turn; of
// long operations only some calls, without testWhole.
func failEachCall(t *testing.T, op operation, sync bool, before, after map[string]string, faults ...fsx.Fault) {
	for n := 1; ; {
		root := layout.Root(t.TempDir())
		check(t, op.setup(t.Context(), open(t, root)))
		faulty := &fsx.Faulty{FS: patient{fsx.OS}}
		s := open(t, root, filestore.WithFS(faulty), filestore.WithSync(sync))
		check(t, op.warm(t.Context(), s))
		failure := &nthFailure{n: n, faults: faults}
		faulty.Decide = failure.decide
		err := op.act(t.Context(), s)
		faulty.Decide = nil
		got := dump(t, root)
		switch {
		case err == nil:
			if diff := cmp.Diff(after, got); diff != "" {
				t.Errorf("call %d failed, the operation did not: (-want +got)\n%s", n, diff)
			}
		case op.partly && cmp.Equal(after, got):
		case !errors.Is(err, failure.fault.Err):
			t.Errorf("call %d: the error hides its cause: %v", n, err)
		default:
			if !strings.Contains(err.Error(), string(root)) {
				t.Errorf("call %d: the error names no path: %v", n, err)
			}
			if diff := cmp.Diff(before, got); diff != "" && !op.partly {
				t.Errorf("call %d: the operation failed and left something (%v): (-want +got)\n%s", n, err, diff)
			}
		}
		if err != nil {
			retry(t, op, s, root, after)
		}
		if failure.calls < n {
			return
		}
		if n++; !testWhole && n > 25 {
			n += rand.IntN(5)
		}
	}
}

// retry runs a failed operation again, in the same process.
func retry(t *testing.T, op operation, s *filestore.Store, root layout.Root, after map[string]string) {
	t.Helper()
	err := op.act(t.Context(), s)
	gone := op.partly && errors.Is(err, transcript.ErrNotFound)
	if err != nil && !gone {
		t.Errorf("second try: %v", err)
	}
	if diff := cmp.Diff(after, dump(t, root)); diff != "" {
		t.Errorf("after the second try: (-want +got)\n%s", diff)
	}
}

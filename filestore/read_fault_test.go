package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

// reads are the operations that change nothing, and what they need.
var reads = []struct {
	name  string
	setup func(ctx context.Context, s *filestore.Store) error
	read  func(ctx context.Context, s *filestore.Store) (any, error)
}{
	{"unread", postTwo, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Mail().Unread(ctx, faultBox) }},
	{"unread of a long inbox", longMail, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Mail().Unread(ctx, faultBox) }},
	{"all mail", postTwo, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Mail().All(ctx, faultBox) }},
	{"task", makeTasks, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Tasks().Get(ctx, "t", "2") }},
	{"tasks", makeTasks, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Tasks().List(ctx, "t") }},
	{"lists", makeTasks, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Tasks().Lists(ctx) }},
	{"nothing to claim", nothing, func(ctx context.Context, s *filestore.Store) (any, error) {
		_, ok, err := s.Tasks().Claim(ctx, "t", "w1")
		return ok, err
	}},
	{"team", makeTeam, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Teams().Load(ctx, "t") }},
	{"teams", makeTeam, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Teams().List(ctx) }},
	{"transcript", appendEntries(1, 3), func(ctx context.Context, s *filestore.Store) (any, error) {
		return s.Transcripts().Read(ctx, faultRef)
	}},
	{"sessions", appendEntries(1, 3), func(ctx context.Context, s *filestore.Store) (any, error) {
		return s.Transcripts().List(ctx, faultRef.Project)
	}},
	{"open questions", inOrder(plantKey, layAsk("q1"), layAsk("q2")), func(ctx context.Context, s *filestore.Store) (any, error) {
		return s.Desk().Open(ctx)
	}},
	{"pending asks", putAsk, func(ctx context.Context, s *filestore.Store) (any, error) { return s.Asks(faultRef).Pending(ctx) }},
	{"records", inOrder(makeTeam, putRecord("w1", `1`), putRecord("w2", `2`)), func(ctx context.Context, s *filestore.Store) (any, error) {
		return s.Records().All(ctx, "t", roster.RecordAgent)
	}},
	{"jobs", inOrder(beginJob(faultRef, "b1"), beginJob(faultRef, "b2")), func(ctx context.Context, s *filestore.Store) (any, error) {
		return s.Jobs(faultRef).All(ctx)
	}},
	{"nobody is present", makeTeam, func(ctx context.Context, s *filestore.Store) (any, error) {
		_, here, err := s.Presence().Find(ctx, faultBox)
		return here, err
	}},
}

func putAsk(ctx context.Context, s *filestore.Store) error {
	return s.Asks(faultRef).Put(ctx, ask.Ask{ID: "q1", Question: "?"})
}

// A reader whose file layer fails says so, and what it says without an error is
// right; it changes nothing, and the next time it reads right.
func TestEveryReadFailsOnce(t *testing.T) {
	for _, r := range reads {
		for name, fault := range faults {
			t.Run(fmt.Sprintf("%s/%s", r.name, name), func(t *testing.T) {
				t.Parallel()
				root := layout.Root(t.TempDir())
				check(t, r.setup(t.Context(), open(t, root)))
				before := dump(t, root)
				want, err := r.read(t.Context(), open(t, root))
				check(t, err)
				for n, calls := 1, 1; n <= calls; n++ {
					faulty := &fsx.Faulty{FS: fsx.OS, Decide: fsx.FailNth(n, fault)}
					warned := false
					s := open(t, root, filestore.WithFS(faulty), filestore.WithWarn(func(error) { warned = true }))
					got, err := r.read(t.Context(), s)
					calls = faulty.Calls()
					where := fmt.Sprintf("call %d", n)
					if err != nil && (!errors.Is(err, fault.Err) || !strings.Contains(err.Error(), string(root))) {
						t.Errorf("%s: the error hides its cause or names no path: %v", where, err)
					}
					if err == nil && !warned {
						sameResult(t, where, got, want)
					}
					got, err = r.read(t.Context(), s)
					if err != nil {
						t.Errorf("%s: second try: %v", where, err)
					}
					sameResult(t, where+", second try", got, want)
				}
				if diff := cmp.Diff(before, dump(t, root)); diff != "" {
					t.Errorf("reading changed something: (-want +got)\n%s", diff)
				}
			})
		}
	}
}

func sameResult(t *testing.T, where string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, modelOptions...); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", where, diff)
	}
}

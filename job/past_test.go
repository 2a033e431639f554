package job_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/transcript"
)

var session = transcript.Ref{Project: "/p", Session: "s"}

// keeping makes a pool that keeps the jobs of "me" in a store.
func keeping(t *testing.T, store job.Store) (*job.Pool, *job.Past) {
	t.Helper()
	p := job.NewPool(nil)
	t.Cleanup(p.Close)
	past, err := p.Adopt(t.Context(), "me", store)
	if err != nil {
		t.Fatal(err)
	}
	return p, past
}

func records(t *testing.T, store job.Store) []job.Record {
	t.Helper()
	all, err := store.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ends is a run function that ends at once.
func ends(r job.Result) func(context.Context, *job.Job) job.Result {
	return func(context.Context, *job.Job) job.Result { return r }
}

func TestAJobIsKeptBeforeItRunsAndEndsBeforeAnybodyHearsOfIt(t *testing.T) {
	store := memstore.New().Jobs(session)
	p, _ := keeping(t, store)
	release := make(chan struct{})
	var before []job.Record
	j := start(t, p, job.Spec{Kind: job.Agent, Title: "look", Owner: "me", Call: "toolu_1", Agent: "a0e9d22"},
		func(ctx context.Context, _ *job.Job) job.Result {
			before, _ = store.All(ctx)
			<-release
			return job.Result{Text: "found", Tokens: 30, ToolUses: 2, Err: errors.New("no more")}
		})
	close(release)
	n, err := p.Next(t.Context(), "me")
	if err != nil {
		t.Fatal(err)
	}
	after := records(t, store)
	if len(before) != 1 || before[0].ID != j.ID() || before[0].End != nil {
		t.Errorf("while it ran, kept were %+v", before)
	}
	want := job.Record{
		ID: j.ID(), Kind: job.Agent, Title: "look", Call: "toolu_1", Agent: "a0e9d22", Started: n.Job.Started,
		End: &job.End{Status: job.Failed, At: n.Job.Ended, Unwaited: true, Text: "found", Tokens: 30, ToolUses: 2, Error: "no more"},
	}
	if diff := cmp.Diff([]job.Record{want}, after); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestJobsOfAnOwnerThatWasNotAdoptedAreNotKept(t *testing.T) {
	store := memstore.New().Jobs(session)
	p, _ := keeping(t, store)
	p.Disown("me")
	<-start(t, p, job.Spec{Owner: "me"}, ends(job.Result{})).Done()
	<-start(t, p, job.Spec{Owner: "another"}, ends(job.Result{})).Done()
	if all := records(t, store); len(all) != 0 {
		t.Errorf("kept are %+v", all)
	}
}

// TestEveryJobOfAKilledProcessHasOneEndAndOneNotice: some were waited for, some had
// ended, one was told already.
func TestEveryJobOfAKilledProcessHasOneEndAndOneNotice(t *testing.T) {
	store := memstore.New().Jobs(session)
	killed, _ := keeping(t, store)
	output := filepath.Join(t.TempDir(), "b1.output")
	if err := os.WriteFile(output, []byte("so far"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(spec job.Spec) {
		spec.Owner = "me"
		start(t, killed, spec, until(nil))
	}
	run(job.Spec{ID: "b1", Kind: job.Shell, Title: "server", Call: "toolu_1", Output: func(string) string { return output }})
	run(job.Spec{ID: "a2", Kind: job.Agent, Title: "look", Call: "toolu_2", Agent: "a2"})
	run(job.Spec{ID: "b3", Kind: job.Shell, Title: "build", Call: "toolu_3", Waited: true})
	run(job.Spec{ID: "a4", Kind: job.Agent, Title: "told", Call: "toolu_4"})
	<-start(t, killed, job.Spec{ID: "b5", Owner: "me", Kind: job.Shell, Title: "waited", Call: "toolu_5", Waited: true}, ends(job.Result{ExitCode: 2})).Done()
	<-start(t, killed, job.Spec{ID: "a6", Owner: "me", Kind: job.Agent, Title: "over", Call: "toolu_6"}, ends(job.Result{Text: "found"})).Done()

	if err := store.EndUnfinished(t.Context(), job.Lost()); err != nil {
		t.Fatal(err)
	}
	settled := records(t, store)
	p, past := keeping(t, store)
	text, receipts := past.OfCall("toolu_3")
	if want := "The command (ID: b3) was still running then, and was ended."; text != want || len(receipts) != 1 {
		t.Errorf("of its call: %q, %v", text, receipts)
	}
	if text, _ := past.OfCall("toolu_5"); text != "The command itself (ID: b5) had ended before: completed, exit code 2." {
		t.Errorf("of a command that had ended: %q", text)
	}
	if text, receipts := past.OfCall(""); text != "" || receipts != nil {
		t.Errorf("of no call: %q, %v", text, receipts)
	}
	past.Recall(append(receipts, job.Receipt("a4")))
	var got []string
	for p.Waiting("me") > 0 {
		n, err := p.Next(t.Context(), "me")
		if err != nil {
			t.Fatal(err)
		}
		p.Acknowledge("me")
		got = append(got, n.Summary()+" | "+n.Job.OutputFile+" | "+n.Result.Text)
	}
	want := []string{
		`Background command "server" was ended: the program was stopped while it ran | ` + output + ` | `,
		`Agent "look" was ended: the program was stopped while it ran |  | What it did is kept: it can be resumed with its agentId, a2.`,
		`Agent "over" completed |  | found`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	for _, r := range settled {
		if r.End == nil {
			t.Errorf("job %s has no end", r.ID)
		}
	}
	killed.Close() // what it still says about its jobs does not count
	if diff := cmp.Diff(settled, records(t, store)); diff != "" {
		t.Errorf("the ends have changed (-want +got):\n%s", diff)
	}
}

// brokenStore fails to keep what it is told to.
type brokenStore struct {
	job.Store
	begin, end error
}

func (s brokenStore) Begin(ctx context.Context, r job.Record) error {
	return errors.Join(s.begin, s.Store.Begin(ctx, r))
}

func (s brokenStore) End(context.Context, string, job.End) error { return s.end }

func TestAJobThatCannotBeKeptDoesNotRun(t *testing.T) {
	full := errors.New("no space left")
	p, _ := keeping(t, brokenStore{Store: memstore.New().Jobs(session), begin: full})
	ran := false
	_, err := p.Start(t.Context(), job.Spec{ID: "b1", Owner: "me"}, func(context.Context, *job.Job) job.Result {
		ran = true
		return job.Result{}
	})
	if !errors.Is(err, full) {
		t.Errorf("started: %v", err)
	}
	if _, known := p.Job("b1"); known || len(p.Active("")) > 0 {
		t.Error("the job is known")
	}
	p.Close()
	if ran || p.Waiting("me") > 0 {
		t.Error("the job ran, or a notice of it came")
	}
}

func TestAnEndThatCannotBeStoredIsStillANotice(t *testing.T) {
	full := errors.New("no space left")
	var mu sync.Mutex
	var told []string
	p := job.NewPool(func(_ string, body event.Body) {
		mu.Lock()
		defer mu.Unlock()
		if n, ok := body.(event.Noticed); ok {
			told = append(told, n.Text)
		}
	})
	defer p.Close()
	if _, err := p.Adopt(t.Context(), "me", brokenStore{Store: memstore.New().Jobs(session), end: full}); err != nil {
		t.Fatal(err)
	}
	start(t, p, job.Spec{Owner: "me"}, ends(job.Result{Text: "done"}))
	n, err := p.Next(t.Context(), "me")
	if err != nil || n.Result.Text != "done" {
		t.Errorf("notice %+v, %v", n, err)
	}
	if got := strings.Join(told, "\n"); got != full.Error() {
		t.Errorf("told was %q", got)
	}
}

// slowStore takes its time to keep an end.
type slowStore struct {
	job.Store
	asked chan struct{} // gets a value when an end is to be kept
	goOn  chan struct{}
}

func (s slowStore) End(ctx context.Context, id string, e job.End) error {
	s.asked <- struct{}{}
	<-s.goOn
	return s.Store.End(ctx, id, e)
}

// Whoever waits until nothing goes on must find either the job or its notice.
func TestAJobIsActiveUntilItsNoticeWaits(t *testing.T) {
	store := slowStore{memstore.New().Jobs(session), make(chan struct{}), make(chan struct{})}
	p, _ := keeping(t, store)
	j := start(t, p, job.Spec{Owner: "me"}, ends(job.Result{}))
	<-store.asked
	if len(p.Active("me")) != 1 || p.Waiting("me") != 0 {
		t.Errorf("while its end is kept: active %v, %d notices", p.Active("me"), p.Waiting("me"))
	}
	close(store.goOn)
	<-j.Done()
	if len(p.Active("me")) != 0 || p.Waiting("me") != 1 {
		t.Errorf("at the end: active %v, %d notices", p.Active("me"), p.Waiting("me"))
	}
}

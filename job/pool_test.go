package job_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until is a run function that ends with its context or when release is closed.
func until(release <-chan struct{}) func(context.Context, *job.Job) job.Result {
	return func(ctx context.Context, _ *job.Job) job.Result {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return job.Result{Text: "done"}
	}
}

func start(t testing.TB, p *job.Pool, spec job.Spec, run func(context.Context, *job.Job) job.Result) *job.Job {
	t.Helper()
	j, err := p.Start(t.Context(), spec, run)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestWaitedJobGivesNoNotice(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me", Waited: true}, func(context.Context, *job.Job) job.Result {
		return job.Result{Text: "at once"}
	})
	<-j.Done() // it ended before anyone called Wait
	r, err := j.Wait(t.Context())
	if err != nil || r.Text != "at once" || r.Status != job.Completed {
		t.Errorf("%+v %v", r, err)
	}
	if n := p.Waiting("me"); n != 0 {
		t.Errorf("%d notices", n)
	}
	if _, known := p.Job(j.ID()); known {
		t.Error("a job that ended waited is still kept")
	}
}

func TestDetachedJobGoesOn(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	release := make(chan struct{})
	j := start(t, p, job.Spec{Kind: job.Shell, Title: "build", Owner: "me", Call: "toolu_1", Waited: true}, until(release))
	if info := j.Info(); info.Background || info.Status != job.Running || info.Call != "toolu_1" {
		t.Errorf("info is %+v", info)
	}
	sent := make(chan error)
	go func() { _, err := j.Wait(t.Context()); sent <- err }()
	if !j.Detach() {
		t.Error("nobody was sent away")
	}
	if err := <-sent; !errors.Is(err, job.ErrDetached) {
		t.Errorf("the wait ended with %v", err)
	}
	if j.Detach() {
		t.Error("sent away twice")
	}
	if info := j.Info(); !info.Background || info.Status != job.Running {
		t.Errorf("info is %+v", info)
	}
	close(release)
	n, err := p.Next(t.Context(), "me")
	if err != nil || n.Job.ID != j.ID() || n.Result.Text != "done" || n.Job.Status != job.Completed {
		t.Errorf("%+v %v", n, err)
	}
	if again, known := p.Job(j.ID()); !known || again != j {
		t.Error("a job that ended unwaited cannot be asked about")
	}
	if r, ended := j.Result(); !ended || r.Text != "done" {
		t.Errorf("%+v %v", r, ended)
	}
	if r, err := j.Wait(t.Context()); err != nil || r.Text != "done" {
		t.Errorf("waiting for an ended job: %+v %v", r, err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	release := make(chan struct{})
	j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me", Waited: true}, until(release))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := j.Wait(ctx); !errors.Is(err, why) {
		t.Errorf("the wait ended with %v", err)
	}
	close(release)
	if n, err := p.Next(t.Context(), "me"); err != nil || n.Result.Status != job.Completed {
		t.Errorf("%+v %v", n, err)
	}
}

func TestWaitOrStopStops(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	j := start(t, p, job.Spec{Kind: job.Shell, Owner: "me", Waited: true}, until(nil))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	r, err := j.WaitOrStop(ctx)
	if err != nil || r.Status != job.Killed || !errors.Is(r.Err, why) || p.Waiting("me") != 0 {
		t.Errorf("%+v %v, %d notices", r, err, p.Waiting("me"))
	}
}

func TestStopTellsTheCause(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me"}, until(nil))
	j.Stop(nil)
	j.Stop(errors.New("later")) // the first counts
	<-j.Done()
	n, err := p.Next(t.Context(), "me")
	if err != nil || n.Result.Status != job.Killed || !errors.Is(n.Result.Err, job.ErrStopped) {
		t.Errorf("%+v %v", n, err)
	}
}

func TestFailureWithoutAReturn(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me"}, func(context.Context, *job.Job) job.Result {
		return job.Result{Err: errors.New("no model")}
	})
	<-j.Done()
	if n, err := p.Next(t.Context(), "me"); err != nil || n.Result.Status != job.Failed {
		t.Errorf("%+v %v", n, err)
	}
}

type valueKey struct{}

func TestStartKeepsValuesAndDropsTheEnd(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "caller"))
	release := make(chan struct{})
	got := make(chan any, 1)
	j, err := p.Start(ctx, job.Spec{Kind: job.Agent, Waited: true}, func(ctx context.Context, j *job.Job) job.Result {
		<-release
		got <- ctx.Value(valueKey{})
		return job.Result{Err: ctx.Err()}
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	close(release)
	if r, err := j.Wait(t.Context()); err != nil || r.Err != nil || <-got != "caller" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestIDs(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	shell := start(t, p, job.Spec{Kind: job.Shell}, until(nil))
	agent := start(t, p, job.Spec{Kind: job.Agent}, until(nil))
	if !regexp.MustCompile(`^b[0-9a-f]{6}$`).MatchString(shell.ID()) || !regexp.MustCompile(`^a[0-9a-f]{6}$`).MatchString(agent.ID()) {
		t.Errorf("ids are %s and %s", shell.ID(), agent.ID())
	}
	own := start(t, p, job.Spec{ID: "a123456", Kind: job.Agent}, until(nil))
	if own.ID() != "a123456" {
		t.Errorf("id is %s", own.ID())
	}
	if _, err := p.Start(t.Context(), job.Spec{ID: "a123456", Kind: job.Agent}, until(nil)); err == nil {
		t.Error("a second job took the id")
	}
}

func TestActive(t *testing.T) {
	p := job.NewPool(nil)
	release := make(chan struct{})
	var ids []string
	for i := range 4 {
		ids = append(ids, start(t, p, job.Spec{Kind: job.Shell, Owner: fmt.Sprint("owner", i%2)}, until(release)).ID())
	}
	list := func(owner string) (ids []string) {
		for _, info := range p.Active(owner) {
			ids = append(ids, info.ID)
		}
		return ids
	}
	if diff := cmp.Diff(ids, list("")); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{ids[1], ids[3]}, list("owner1")); diff != "" {
		t.Errorf("of one owner (-want +got):\n%s", diff)
	}
	close(release)
	p.Close()
	if got := list(""); got != nil {
		t.Errorf("after the end: %v", got)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := job.NewPool(nil)
		var ended atomic.Int32
		for range 3 {
			start(t, p, job.Spec{Kind: job.Agent, Owner: "me"}, func(ctx context.Context, _ *job.Job) job.Result {
				<-ctx.Done()
				time.Sleep(time.Second) // synctest's clock
				ended.Add(1)
				return job.Result{}
			})
		}
		next := make(chan error)
		go func() { _, err := p.Next(t.Context(), "another"); next <- err }()
		p.Close()
		p.Close()
		if ended.Load() != 3 || p.Waiting("me") != 3 {
			t.Errorf("%d ended, %d notices", ended.Load(), p.Waiting("me"))
		}
		if err := <-next; !errors.Is(err, job.ErrClosed) {
			t.Errorf("Next ended with %v", err)
		}
		for range 3 {
			if n, err := p.Next(t.Context(), "me"); err != nil || !errors.Is(n.Result.Err, job.ErrClosed) {
				t.Errorf("%+v %v", n, err)
			}
		}
		if _, err := p.Next(t.Context(), "me"); !errors.Is(err, job.ErrClosed) {
			t.Errorf("Next on an empty queue: %v", err)
		}
		if _, err := p.Start(t.Context(), job.Spec{}, until(nil)); !errors.Is(err, job.ErrClosed) {
			t.Errorf("Start after Close: %v", err)
		}
	})
}

func TestNextLeavesTheNoticeWhenItsContextEnds(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me"}, func(context.Context, *job.Job) job.Result { return job.Result{} })
	<-j.Done()
	if _, err := p.Next(ctx, "me"); !errors.Is(err, context.Canceled) {
		t.Errorf("Next ended with %v", err)
	}
	if p.Waiting("me") != 1 {
		t.Error("the notice is gone")
	}
}

func TestReport(t *testing.T) {
	var mu sync.Mutex
	var got []event.Body
	p := job.NewPool(func(owner string, body event.Body) {
		mu.Lock()
		defer mu.Unlock()
		if owner != "me" {
			t.Errorf("told of owner %q", owner)
		}
		got = append(got, body)
	})
	run := func(context.Context, *job.Job) job.Result { return job.Result{Err: errors.New("x")} }
	a := start(t, p, job.Spec{Kind: job.Agent, Title: "look", Owner: "me"}, run)
	<-a.Done()
	b := start(t, p, job.Spec{Kind: job.Shell, Title: "make", Owner: "me", Waited: true}, until(nil))
	b.Stop(nil)
	if _, err := b.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Close()
	want := []event.Body{
		event.JobStarted{ID: a.ID(), Kind: "agent", Title: "look"},
		event.JobEnded{ID: a.ID(), Kind: "agent", Title: "look", Status: "failed", Unwaited: true},
		event.JobStarted{ID: b.ID(), Kind: "shell", Title: "make"},
		event.JobEnded{ID: b.ID(), Kind: "shell", Title: "make", Status: "killed"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestEndedJobsAreLetGo(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	var first *job.Job
	for i := range 300 {
		j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me"}, func(context.Context, *job.Job) job.Result { return job.Result{} })
		<-j.Done()
		if i == 0 {
			first = j
		}
	}
	if _, known := p.Job(first.ID()); known {
		t.Error("the oldest of 300 ended jobs is still kept")
	}
	if p.Waiting("me") != 300 {
		t.Errorf("%d notices", p.Waiting("me"))
	}
}

// act is one thing that happens to a job at a random moment.
type act struct {
	What   string
	At     time.Duration
	GiveUp time.Duration // for waits: when their context ends
}

// TestEndReachesExactlyOne: whatever the order of waiting, giving up, moving to
// the background, stopping and ending, the result reaches those who wait, or
// there is one notice, and never both nor none.
func TestEndReachesExactlyOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		moment := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 4).Draw(t, "ms")) * time.Millisecond
		})
		acts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
			return act{rapid.SampledFrom([]string{"wait", "waitOrStop", "detach", "stop"}).Draw(t, "what"), moment.Draw(t, "at"), moment.Draw(t, "give up")}
		}), 0, 6).Draw(rt, "acts")
		waited, ends := rapid.Bool().Draw(rt, "waited"), moment.Draw(rt, "ends")
		if waited { // the starter's own wait
			acts = append(acts, act{"wait", moment.Draw(rt, "starter at"), moment.Draw(rt, "starter gives up")})
		}
		var outcome string
		synctest.Test(t, func(t *testing.T) { outcome = play(t, waited, ends, acts) })
		if outcome != "" {
			rt.Fatal(outcome)
		}
	})
}

// play runs a job and the acts on it, and says what is wrong with the outcome.
// What happens at the same moment of synctest's clock happens in any order.
func play(t *testing.T, waited bool, ends time.Duration, acts []act) string {
	var endEvents atomic.Int32
	var unwaited atomic.Bool
	p := job.NewPool(func(_ string, body event.Body) {
		if e, ok := body.(event.JobEnded); ok {
			endEvents.Add(1)
			unwaited.Store(e.Unwaited)
		}
	})
	defer p.Close()
	began := time.Now()
	j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me", Waited: waited}, func(ctx context.Context, _ *job.Job) job.Result {
		select {
		case <-time.After(ends):
		case <-ctx.Done():
		}
		return job.Result{}
	})
	results := make(chan time.Duration, len(acts)) // when the waits began that got one
	var all sync.WaitGroup
	for _, a := range acts {
		all.Go(func() {
			time.Sleep(a.At) // synthetic time
			switch a.What {
			case "detach":
				j.Detach()
			case "stop":
				j.Stop(nil)
			default:
				ctx, cancel := context.WithTimeout(t.Context(), a.GiveUp)
				defer cancel()
				wait := j.Wait
				if a.What == "waitOrStop" {
					wait = j.WaitOrStop
				}
				if _, err := wait(ctx); err == nil {
					results <- a.At
				}
			}
		})
	}
	<-j.Done()
	ended := time.Since(began)
	all.Wait()
	close(results)
	got, surely := 0, 0 // results; those of waits that surely began before the end
	for at := range results {
		got++
		if at < ended {
			surely++
		}
	}
	notices := p.Waiting("me")
	switch {
	case endEvents.Load() != 1:
		return fmt.Sprintf("%d ends were told", endEvents.Load())
	case unwaited.Load() != (notices == 1) || notices > 1:
		return fmt.Sprintf("%d notices, told as unwaited: %v", notices, unwaited.Load())
	case notices == 1 && surely > 0:
		return "a result and a notice"
	case notices == 0 && got == 0:
		return "neither a result nor a notice"
	}
	return ""
}

// TestEndReachesExactlyOneInRealTime is the same under the race detector and
// the real scheduler, with one waiter, so that a result excludes a notice.
func TestEndReachesExactlyOneInRealTime(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	for i := range 2000 {
		owner := fmt.Sprint(i)
		release := make(chan struct{})
		j := start(t, p, job.Spec{Kind: job.Agent, Owner: owner, Waited: true}, until(release))
		ctx, cancel := context.WithCancel(t.Context())
		acts := []func(){func() { close(release) }, cancel, func() { j.Detach() }}
		rand.Shuffle(len(acts), func(a, b int) { acts[a], acts[b] = acts[b], acts[a] })
		var all sync.WaitGroup
		for _, act := range acts {
			all.Go(act)
		}
		_, err := j.Wait(ctx)
		<-j.Done()
		all.Wait()
		if got := p.Waiting(owner); (err == nil) != (got == 0) || got > 1 {
			t.Fatalf("wait ended with %v, and there are %d notices", err, got)
		}
		cancel()
	}
}

func BenchmarkStartWait(b *testing.B) {
	p := job.NewPool(nil)
	defer p.Close()
	for b.Loop() {
		j, _ := p.Start(b.Context(), job.Spec{Kind: job.Shell, Waited: true}, func(context.Context, *job.Job) job.Result { return job.Result{} })
		_, _ = j.Wait(b.Context())
	}
}

// Whoever has been told of a job's end can ask how it ended.
func TestAfterItsNoticeAJobHasEnded(t *testing.T) {
	p := job.NewPool(nil)
	defer p.Close()
	for range 20_000 {
		j := start(t, p, job.Spec{Kind: job.Agent, Owner: "me"}, func(context.Context, *job.Job) job.Result { return job.Result{} })
		if _, err := p.Next(t.Context(), "me"); err != nil {
			t.Fatal(err)
		}
		p.Acknowledge("me")
		if _, ended := j.Result(); !ended {
			t.Fatal("it still runs")
		}
	}
}

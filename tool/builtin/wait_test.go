package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
)

// waiter stands for a team: it waits until it is told that all is there.
type waiter struct {
	asked    []team.Awaited
	there    chan struct{} // closed: the progress is complete
	sofar    team.Progress
	complete team.Progress
	err      error
	inTeam   bool
}

func (w *waiter) Await(ctx context.Context, _ tool.Caller, what team.Awaited) (team.Progress, error) {
	w.asked = append(w.asked, what)
	if w.err != nil {
		return team.Progress{}, w.err
	}
	select {
	case <-w.there:
		return w.complete, nil
	case <-ctx.Done():
		return w.sofar, nil
	}
}

func (w *waiter) Seat(tool.Caller) (*team.Seat, bool) { return nil, w.inTeam }

func newWaiter() *waiter {
	half := team.AwaitedTask{ID: "3", Subject: "Write parser", Owner: "w1", Status: task.InProgress}
	whole := half
	whole.Status, whole.Done = task.Completed, true
	return &waiter{
		there: make(chan struct{}), inTeam: true,
		sofar: team.Progress{Tasks: []team.AwaitedTask{half}}, complete: team.Progress{Done: true, Tasks: []team.AwaitedTask{whole}},
	}
}

func waitCall(ctx context.Context, w builtin.Waiter, jobs *job.Pool, input string) tool.Result {
	return builtin.WaitTool(w, jobs).Run(tool.WithCaller(ctx, chief), tool.Call{ID: "toolu_1", Name: "Wait", Input: []byte(input)})
}

func TestWaitEndsWhenAllIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, jobs := newWaiter(), job.NewPool(nil)
		defer jobs.Close()
		go func() {
			time.Sleep(5 * time.Minute)
			close(w.there)
		}()
		began := time.Now()
		r := waitCall(t.Context(), w, jobs, `{"tasks":["#3"]}`)
		if took := time.Since(began); took != 5*time.Minute || r.IsError {
			t.Errorf("after %s: %+v", took, r)
		}
		if diff := cmp.Diff("1 of 1 done:\n- [x] task #3 Write parser: completed, owned by w1", r.Text); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		twin := `{"done":true,"ended":"done","items":[{"kind":"task","id":"3","done":true,"status":"completed","owner":"w1"}]}`
		if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
			t.Errorf("twin (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]team.Awaited{{Tasks: []string{"3"}, All: true}}, w.asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	})
}

func TestWaitEndsWithItsTime(t *testing.T) {
	for input, want := range map[string]time.Duration{
		`{"tasks":["3"]}`:                    10 * time.Minute,
		`{"tasks":["3"],"timeout":1500}`:     1500 * time.Millisecond,
		`{"tasks":["3"],"timeout":99999999}`: time.Hour,
		`{"tasks":["3"],"timeout":0}`:        0,
		`{"tasks":["3"],"timeout":-5}`:       0,
	} {
		synctest.Test(t, func(t *testing.T) {
			w, jobs := newWaiter(), job.NewPool(nil)
			defer jobs.Close()
			began := time.Now()
			r := waitCall(t.Context(), w, jobs, input)
			if took := time.Since(began); took != want {
				t.Errorf("%s took %s", input, took)
			}
			text := fmt.Sprintf("The time is up (%s). 0 of 1 done:\n- [ ] task #3 Write parser: in_progress, owned by w1", want)
			if diff := cmp.Diff(text, r.Text); diff != "" || r.IsError || !strings.Contains(string(r.Structured), `"ended":"timeout"`) {
				t.Errorf("%s (-want +got):\n%s", r.Structured, diff)
			}
		})
	}
}

func TestWaitEndsWhenInputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, jobs, arrived := newWaiter(), job.NewPool(nil), make(chan struct{})
		defer jobs.Close()
		go func() {
			time.Sleep(time.Second)
			close(arrived)
		}()
		began := time.Now()
		ctx := tool.WithArrived(t.Context(), func() <-chan struct{} { return arrived })
		r := waitCall(ctx, w, jobs, `{"tasks":["3"]}`)
		if took := time.Since(began); took != time.Second || r.IsError {
			t.Errorf("after %s: %+v", took, r)
		}
		if !strings.HasPrefix(r.Text, "Something for you came in; it follows.") || !strings.Contains(r.Text, "\n- [ ] task #3") ||
			!strings.Contains(string(r.Structured), `"ended":"input"`) {
			t.Errorf("%s\n%s", r.Text, r.Structured)
		}
	})
}

func TestWaitIsInterrupted(t *testing.T) {
	jobs := job.NewPool(nil)
	defer jobs.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the person said stop"))
	r := waitCall(ctx, newWaiter(), jobs, `{"tasks":["3"]}`)
	if !strings.HasPrefix(r.Text, "The wait was interrupted. 0 of 1 done:") {
		t.Errorf("%+v", r)
	}
}

// background starts a job that ends when release is closed.
func background(t *testing.T, jobs *job.Pool, owner, title string, release <-chan struct{}) string {
	t.Helper()
	j, err := jobs.Start(t.Context(), job.Spec{Kind: job.Agent, Owner: owner, Title: title}, func(ctx context.Context, _ *job.Job) job.Result {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return job.Result{}
	})
	if err != nil {
		t.Fatal(err)
	}
	return j.ID()
}

func TestWaitForJobsLeavesTheirNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs, first, second := job.NewPool(nil), make(chan struct{}), make(chan struct{})
		defer jobs.Close()
		a, b := background(t, jobs, chief.Key(), "Look around", first), background(t, jobs, chief.Key(), "Build", second)
		both := `{"agents":["` + a + `","` + b + `"]`
		go func() {
			time.Sleep(time.Minute)
			close(first)
			time.Sleep(time.Minute)
			close(second)
		}()
		w := newWaiter()
		began := time.Now()
		r := waitCall(t.Context(), w, jobs, both+`,"mode":"any"}`)
		want := "1 of 2 done:\n- [x] " + a + " (Look around): completed; its notice follows\n- [ ] " + b + " (Build): running"
		if diff := cmp.Diff(want, r.Text); diff != "" || time.Since(began) != time.Minute {
			t.Errorf("any, after %s (-want +got):\n%s", time.Since(began), diff)
		}
		r = waitCall(t.Context(), w, jobs, both+`}`)
		if !strings.HasPrefix(r.Text, "2 of 2 done:") || time.Since(began) != 2*time.Minute {
			t.Errorf("all, after %s: %s", time.Since(began), r.Text)
		}
		if n := jobs.Waiting(chief.Key()); n != 2 || w.asked != nil {
			t.Errorf("%d notices; the team was asked %v", n, w.asked)
		}
	})
}

func TestWaitForTasksAndJobs(t *testing.T) {
	for _, tt := range []struct {
		mode string
		took time.Duration
		head string
	}{{"all", 2 * time.Minute, "2 of 2 done:"}, {"any", time.Minute, "1 of 2 done:"}} {
		synctest.Test(t, func(t *testing.T) {
			jobs, release, w := job.NewPool(nil), make(chan struct{}), newWaiter()
			defer jobs.Close()
			id := background(t, jobs, chief.Key(), "Build", release)
			var all sync.WaitGroup
			defer all.Wait()
			all.Go(func() {
				time.Sleep(time.Minute)
				close(w.there)
				time.Sleep(time.Minute)
				close(release)
			})
			began := time.Now()
			r := waitCall(t.Context(), w, jobs, `{"tasks":["3"],"agents":["`+id+`"],"mode":"`+tt.mode+`"}`)
			if took := time.Since(began); took != tt.took || !strings.HasPrefix(r.Text, tt.head) {
				t.Errorf("%s after %s: %s", tt.mode, took, r.Text)
			}
		})
	}
}

func TestWaitForNothingInParticular(t *testing.T) {
	jobs, release := job.NewPool(nil), make(chan struct{})
	defer jobs.Close()
	w := newWaiter()
	close(w.there)
	w.complete = team.Progress{Done: true}
	if r := waitCall(t.Context(), w, jobs, `{}`); !strings.Contains(r.Text, "no teammates") || len(w.asked) != 1 || !w.asked[0].All {
		t.Errorf("in a team: %+v, asked %+v", r, w.asked)
	}
	w = newWaiter()
	w.inTeam = false
	if r := waitCall(t.Context(), w, jobs, `{}`); r.IsError || !strings.Contains(r.Text, "nothing to wait for") {
		t.Errorf("alone: %+v", r)
	}
	id := background(t, jobs, chief.Key(), "Build", release)
	background(t, jobs, "somebody else", "Other", release)
	close(release)
	if r := waitCall(t.Context(), w, jobs, `{}`); !strings.HasPrefix(r.Text, "1 of 1 done:\n- [x] "+id) && !strings.Contains(r.Text, "nothing to wait for") {
		t.Errorf("with a job: %s", r.Text)
	}
	if w.asked != nil {
		t.Errorf("a team was asked: %+v", w.asked)
	}
}

func TestWaitDoesNotSeeTheJobsOfOthers(t *testing.T) {
	jobs, release, w := job.NewPool(nil), make(chan struct{}), newWaiter()
	defer jobs.Close()
	defer close(release)
	id := background(t, jobs, "somebody else", "Other", release)
	w.err = &roster.UnknownMemberError{Name: id, Team: "alpha", Members: []string{"team-lead", "w1"}}
	if r := waitCall(t.Context(), w, jobs, `{"agents":["`+id+`"]}`); !r.IsError || !strings.Contains(r.Text, "Members: team-lead, w1.") {
		t.Errorf("%+v", r)
	}
}

func TestWaitTellsWhatAgentsDo(t *testing.T) {
	jobs, w := job.NewPool(nil), newWaiter()
	defer jobs.Close()
	close(w.there)
	w.complete = team.Progress{Done: true, Tasks: []team.AwaitedTask{
		{ID: "1", Status: task.Deleted, Done: true}, {ID: "2", Subject: "Ship\nit", Status: task.Pending},
	}, Agents: []team.AwaitedAgent{
		{Name: "w1", State: team.AgentIdle, Done: true, Reason: protocol.Available, CompletedTask: "4"},
		{Name: "w2", State: team.AgentIdle, Done: true, Reason: protocol.IdleFailed, Failure: "API\ndown"},
		{Name: "w3", State: team.AgentIdle, Done: true, Reason: protocol.IdleInterrupted},
		{Name: "w4", State: team.AgentGone, Done: true},
		{Name: "w5", State: team.AgentWorking},
	}}
	want := "5 of 7 done:\n- [x] task #1: it is not on the list any more\n- [ ] task #2 Ship it: pending, unassigned\n" +
		"- [x] w1: idle; it last completed task #4\n- [x] w2: idle; its last turn failed: API down\n" +
		"- [x] w3: idle; its last turn was interrupted\n- [x] w4: gone; it has left the team\n- [ ] w5: at work"
	r := waitCall(t.Context(), w, jobs, `{"tasks":["1","2"],"agents":["w1","w2","w3","w4","w5"],"mode":"any"}`)
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWaitRefuses(t *testing.T) {
	jobs := job.NewPool(nil)
	defer jobs.Close()
	for want, err := range map[string]error{
		"TaskList shows the tasks":         fmt.Errorf("task #9: %w", task.ErrNotFound),
		"Do your own part first":           fmt.Errorf("wait for w1, who is you: %w", team.ErrEndlessWait),
		"you are in no team":               team.ErrNoTeam,
		"Disk full.":                       errors.New("disk full"),
		`The name "team-lead" is the lead`: &roster.NameError{Name: "team-lead", Reason: "is the lead"},
	} {
		w := newWaiter()
		w.err = err
		if r := waitCall(t.Context(), w, jobs, `{"tasks":["9"]}`); !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%v: %+v", err, r)
		}
	}
}

// The same over a team that is real.
func TestWaitForATaskOfTheTeam(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := officeWith(t, "w1")
		defer o.jobs.Close()
		o.call(t, chief, "TaskCreate", `{"subject":"a","description":"x"}`)
		o.call(t, worker("w1"), "TaskUpdate", `{"taskId":"1","status":"in_progress"}`)
		done := make(chan tool.Result)
		go func() { done <- o.call(t, chief, "Wait", `{"tasks":["1"]}`) }()
		synctest.Wait()
		select {
		case r := <-done:
			t.Fatalf("it ended at once: %+v", r)
		default:
		}
		completed := task.Completed
		if _, err := o.teams.Tasks.Update(t.Context(), worker("w1"), "1", task.Change{Status: &completed}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("1 of 1 done:\n- [x] task #1 a: completed, owned by w1", (<-done).Text); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if r := o.call(t, worker("w1"), "Wait", `{"agents":["w1"]}`); !r.IsError || !strings.Contains(r.Text, "never end") {
			t.Errorf("for itself: %+v", r)
		}
	})
}

package builtin

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

// Waiter waits for what the members of a team do; [team.Teams] implements it.
type Waiter interface {
	// Await blocks until what is awaited is done, or ctx ends, and reports the state of
	// everything. The end of ctx is not an error.
	Await(ctx context.Context, by tool.Caller, w team.Awaited) (team.Progress, error)
	// Seat is the caller's place in a team, if it has one.
	Seat(by tool.Caller) (*team.Seat, bool)
}

// WaitTool is the tool that waits for tasks, agents and jobs. It only watches the
// pool: the notice of a job that ends in the meantime still arrives.
func WaitTool(waiter Waiter, jobs *job.Pool) tool.Tool { return wait{waiter, jobs} }

type wait struct {
	waiter Waiter
	jobs   *job.Pool
}

const waitDescription = `Waits until tasks are completed or agents are done, and then reports how far everything is. Waiting costs nothing.

Use it when you have assigned everything and can do nothing useful until some of it is done: as a lead whose teammates are at work, or with sub-agents or commands in the background whose results you need next. Use it instead of calling TaskList again and again, and instead of sleeping in a shell.

Do not use it while you have work of your own, for work that you have not assigned, or as your last action: when you only wait for whatever comes, end your turn, since messages and results wake you. Do not wait for an agent that waits for you.

- tasks: numbers of tasks. A task is done when it is completed or deleted.
- agents: names of teammates, done when they are idle or gone; or ids of sub-agents and commands that you run in the background, done when they have ended.
- Without either: all your teammates, or, without a team, everything that you run in the background.
- mode: "all" (default) waits for everything that you named, "any" for the first of it.
- timeout: milliseconds, by default 10 minutes and at most an hour; 0 returns at once with the current state.

It returns early when a message for you arrives, which you see right after the result: deal with it, and call Wait again if you still need to. The result says what is done and what is not. An idle agent has not necessarily succeeded: check its work.`

const waitSchema = `{"type":"object","properties":{` +
	`"tasks":{"type":"array","items":{"type":"string"},"description":"Numbers of tasks to wait for"},` +
	`"agents":{"type":"array","items":{"type":"string"},"description":"Names of teammates, or ids of background agents and commands"},` +
	`"mode":{"type":"string","enum":["all","any"],"description":"Whether to wait for all or for any; all by default"},` +
	`"timeout":{"type":"number","description":"Milliseconds after which to return anyway; 600000 by default, at most 3600000"}` +
	`},"additionalProperties":false}`

var waitSpec = tool.Spec{
	Name: "Wait", Description: waitDescription, Schema: tool.NewSchema(waitSchema),
	Parallel: true, ReadOnly: true, Delegates: true,
}

func (wait) Spec() tool.Spec { return waitSpec }

func (wait) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

type waitInput struct {
	Tasks   []string `json:"tasks"`
	Agents  []string `json:"agents"`
	Mode    string   `json:"mode"`
	Timeout *float64 `json:"timeout"`
}

// How long a call waits.
const (
	usualWait = 10 * time.Minute
	maxWait   = time.Hour
)

func (in waitInput) timeout() time.Duration {
	if in.Timeout == nil {
		return usualWait
	}
	return max(0, min(time.Duration(toInt(*in.Timeout))*time.Millisecond, maxWait))
}

// Why a wait ended before its time.
var (
	errTimeUp     = errors.New("the time is up")
	errInputWaits = errors.New("input waits")
	errWaitOver   = errors.New("enough is done")
)

func (t wait) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[waitInput](call)
	if failed != nil {
		return *failed
	}
	a := t.sort(tool.CallerFrom(ctx), in)
	if !a.byTeam && len(a.jobs) == 0 {
		return tool.Text("There is nothing to wait for: you have no team, and run nothing in the background.")
	}
	timed, cancel := context.WithTimeoutCause(ctx, in.timeout(), errTimeUp)
	defer cancel()
	waiting, end := context.WithCancelCause(timed)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-tool.Arrived(ctx):
			end(errInputWaits)
		case <-waiting.Done():
		}
	})
	progress, err := a.wait(waiting, end)
	end(errWaitOver)
	watching.Wait()
	if err != nil {
		return waitRefused(err)
	}
	return waitReport{in, progress, a.jobs, context.Cause(waiting)}.result()
}

// awaited is what one call waits for.
type awaited struct {
	waiter Waiter
	caller tool.Caller
	team   team.Awaited
	byTeam bool // there is something that the team knows of
	jobs   []*job.Job
	all    bool
}

// sort decides for each name what it means: a job of the caller, or else a member of
// the team.
func (t wait) sort(caller tool.Caller, in waitInput) *awaited {
	a := &awaited{waiter: t.waiter, caller: caller, all: in.Mode != "any"}
	a.team = team.Awaited{Tasks: taskIDs(in.Tasks), All: a.all}
	for _, name := range in.Agents {
		if j, ok := t.jobs.Job(name); ok && j.Info().Owner == caller.Key() {
			a.jobs = append(a.jobs, j)
		} else {
			a.team.Agents = append(a.team.Agents, name)
		}
	}
	a.byTeam = len(a.team.Tasks)+len(a.team.Agents) > 0
	if len(in.Tasks)+len(in.Agents) > 0 {
		return a
	}
	if _, a.byTeam = t.waiter.Seat(caller); !a.byTeam {
		for _, info := range t.jobs.Active(caller.Key()) {
			if j, ok := t.jobs.Job(info.ID); ok && info.Background {
				a.jobs = append(a.jobs, j)
			}
		}
	}
	return a
}

// wait blocks until enough is done or ctx ends, which end does in the end.
func (a *awaited) wait(ctx context.Context, end context.CancelCauseFunc) (progress team.Progress, err error) {
	parts, needed := len(a.jobs), 1
	done := make(chan struct{}, len(a.jobs)+1)
	var waiting sync.WaitGroup
	if a.byTeam {
		parts++
		waiting.Go(func() {
			progress, err = a.waiter.Await(ctx, a.caller, a.team)
			switch {
			case err != nil:
				end(errWaitOver)
			case progress.Done:
				done <- struct{}{}
			}
		})
	}
	for _, j := range a.jobs {
		waiting.Go(func() {
			select {
			case <-j.Done():
				done <- struct{}{}
			case <-ctx.Done():
			}
		})
	}
	if a.all {
		needed = parts
	}
	for ; needed > 0 && ctx.Err() == nil; needed-- {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	end(errWaitOver)
	waiting.Wait()
	return progress, err
}

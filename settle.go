package cadre

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
)

// OpenWorkError says what was still open when the ceiling of waiting passed.
type OpenWorkError struct {
	Waited time.Duration
	Open   []string // a line for each agent, job, task and mail that stood open
}

func (e *OpenWorkError) Error() string {
	return fmt.Sprintf("the team was still at work after %s: %s", e.Waited, strings.Join(e.Open, "; "))
}

// Settled blocks until nothing of the tree is at work or will be: the lead is
// idle, no teammate or sub-agent works, no job runs, no mail waits. It gives up
// with an [*OpenWorkError] when the lead has not been at work for as long as the
// setting printWaitCeilingMs says.
func (r *Runtime) Settled(ctx context.Context) error {
	ceiling := r.settings.PrintWaitCeiling
	timer := time.NewTimer(ceiling)
	defer timer.Stop()
	look := time.NewTimer(settleLook)
	defer look.Stop()
	epoch := r.main.State().Epoch
	for {
		quiet, err := r.quiet(ctx)
		if err != nil || quiet {
			return err
		}
		if now := r.main.State().Epoch; now != epoch {
			epoch = now
			timer.Reset(ceiling)
		}
		select {
		case <-r.tree.Calm():
			look.Reset(settleSoon)
		case <-look.C:
			look.Reset(settleLook)
		case <-r.main.Done():
			return nil
		case <-timer.C:
			if r.main.State().Busy {
				timer.Reset(ceiling)
				continue
			}
			return &OpenWorkError{ceiling, r.openWork(ctx)}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settleLook is how late Settled notices what comes about without a session of this
// process: a question of a teammate elsewhere is settled, its mail is marked read.
const settleLook = time.Second

// settleSoon is how long after a session has come to rest Settled looks again: a
// teammate elsewhere writes into the roster that it is idle a moment after the lead
// has its note.
const settleSoon = 50 * time.Millisecond

// quiet reports whether nothing is at work.
func (r *Runtime) quiet(ctx context.Context) (bool, error) {
	return r.tree.Sessions.Quiet(func() (bool, error) {
		if len(r.jobs.Active("")) > 0 {
			return false, nil
		}
		waiting, err := r.waiting(ctx)
		return err == nil && waiting == "" && len(r.jobs.Active("")) == 0, err
	})
}

// waiting says what is on its way to a session: the notice of a job, mail that is
// not marked read, a task that somebody will take, a teammate at work elsewhere. ""
// when nothing is.
func (r *Runtime) waiting(ctx context.Context) (string, error) {
	main := r.mainCaller()
	if r.jobs.Waiting(main.Key()) > 0 {
		return "a job's end has not been told", nil
	}
	for _, s := range r.tree.Sessions.Children() {
		if caller := s.Caller(); r.jobs.Waiting(caller.Key()) > 0 {
			return fmt.Sprintf("a job's end has not been told to %s", caller.AgentName), nil
		}
	}
	if seat, ok := r.teams.Seat(main); ok {
		seat.Stall(r.main.State().Stalled)
	}
	return r.teams.Waiting(ctx, main)
}

// openWork describes what is at work, for the person who waited in vain.
func (r *Runtime) openWork(ctx context.Context) []string {
	open, err := r.matesAtWork(ctx)
	if err != nil {
		open = append(open, err.Error())
	}
	for _, s := range r.tree.Sessions.Children() {
		if caller := s.Caller(); caller.Depth > 0 && s.State().Busy {
			open = append(open, fmt.Sprintf("%s is at work", caller.AgentName))
		}
	}
	for _, j := range r.jobs.Active("") {
		open = append(open, fmt.Sprintf("job %s runs (%s)", j.ID, j.Title))
	}
	if what, err := r.waiting(ctx); err != nil {
		open = append(open, err.Error())
	} else if what != "" && !slices.Contains(open, what) {
		open = append(open, what)
	}
	list, err := r.stores.tasks.List(ctx, r.teams.TaskList(r.mainCaller()))
	if err != nil {
		return append(open, err.Error())
	}
	for _, t := range list {
		if t.Status != task.Completed && !t.Internal() {
			open = append(open, fmt.Sprintf("task #%s is %s (%s)", t.ID, t.Status, t.Subject))
		}
	}
	return open
}

// matesAtWork names the teammates that are at work, wherever they run.
func (r *Runtime) matesAtWork(ctx context.Context) ([]string, error) {
	if _, ok := r.teams.Seat(r.mainCaller()); !ok {
		return nil, nil
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // a look, and no wait
	p, err := r.teams.Await(now, r.mainCaller(), team.Awaited{})
	var working []string
	for _, a := range p.Agents {
		if a.State == team.AgentWorking {
			working = append(working, a.Name+" is at work")
		}
	}
	return working, err
}

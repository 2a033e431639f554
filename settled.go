package cadre

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/session"
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

// UnstoredError says that an agent could not store what it did, several times in a row:
// the disk is full, for example. What was acknowledged before is stored.
type UnstoredError struct {
	Agent string // its name; "" for the lead
	Err   error
}

func (e *UnstoredError) Error() string {
	who := e.Agent
	if who == "" {
		who = "the lead"
	}
	return fmt.Sprintf("store what %s does, after several tries: %s", who, e.Err)
}

func (e *UnstoredError) Unwrap() error { return e.Err }

// Settled blocks until nothing of the tree is at work or will be: the lead is
// idle, no teammate or sub-agent works, no job runs, no mail is unread. It gives up
// with an [*OpenWorkError] when the lead has not been at work for as long as the
// setting printWaitCeilingMs says, and with an [*UnstoredError] when an agent has failed to
// store what it does for several seconds: it would go on trying for ever.
func (r *Runtime) Settled(ctx context.Context) error {
	work := &work{r.main, r.tree, r.jobs, r.teams}
	ceiling := r.settings.PrintWaitCeiling
	timer := time.NewTimer(ceiling)
	defer timer.Stop()
	check := time.NewTimer(checkEvery)
	defer check.Stop()
	epoch := r.main.State().Epoch
	for {
		quiet, err := work.quiet(ctx)
		if err == nil && !quiet {
			err = work.unstored()
		}
		if err != nil || quiet {
			return err
		}
		if now := r.main.State().Epoch; now != epoch {
			epoch = now
			timer.Reset(ceiling)
		}
		select {
		case <-r.tree.IdleSignal():
			check.Reset(checkSoon)
		case <-check.C:
			check.Reset(checkEvery)
		case <-r.main.Done():
			return nil
		case <-timer.C:
			if r.main.State().Busy {
				timer.Reset(ceiling)
				continue
			}
			return &OpenWorkError{ceiling, work.open(ctx)}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// checkEvery is how late Settled notices what comes about without a session of this
// process: a question of a teammate elsewhere is answered, its mail is marked read.
const checkEvery = time.Second

// checkSoon is how long after a session became idle Settled checks again: a
// teammate elsewhere writes into the roster that it is idle a moment after the lead
// has its note.
const checkSoon = 50 * time.Millisecond

// work is what a process and its teams may still be doing.
type work struct {
	main  *session.Session
	tree  *session.Tree
	jobs  *job.Pool
	teams *team.Teams
}

// quiet reports whether nothing is at work.
func (w *work) quiet(ctx context.Context) (bool, error) {
	return w.tree.Sessions.Quiet(func() (bool, error) {
		if len(w.jobs.Active("")) > 0 {
			return false, nil
		}
		waiting, err := w.waiting(ctx)
		return err == nil && waiting == "" && len(w.jobs.Active("")) == 0, err
	})
}

// unstored says which session stores nothing; nil for none.
func (w *work) unstored() error {
	for _, s := range append(w.tree.Sessions.Children(), w.main) {
		if err := s.State().Unstored; err != nil {
			return &UnstoredError{s.Agent().Name, err}
		}
	}
	return nil
}

// waiting says what is on its way to a session: the notice of a job, mail that is
// not marked read, a task that a teammate will claim, a teammate at work elsewhere. ""
// when nothing is.
func (w *work) waiting(ctx context.Context) (string, error) {
	main := w.main.Caller()
	if w.jobs.Waiting(main.Key()) > 0 {
		return "nobody has been notified of a job's end", nil
	}
	for _, s := range w.tree.Sessions.Children() {
		if caller := s.Caller(); w.jobs.Waiting(caller.Key()) > 0 {
			return fmt.Sprintf("%s has not been notified of a job's end", caller.AgentName), nil
		}
	}
	if seat, ok := w.teams.Seat(main); ok {
		seat.Stall(w.main.State().Stalled)
	}
	return w.teams.Waiting(ctx, main)
}

// open describes what is at work, for the person who waited in vain.
func (w *work) open(ctx context.Context) []string {
	open, err := w.matesAtWork(ctx)
	if err != nil {
		open = append(open, err.Error())
	}
	for _, s := range w.tree.Sessions.Children() {
		if caller := s.Caller(); caller.Depth > 0 && s.State().Busy {
			open = append(open, fmt.Sprintf("%s is at work", caller.AgentName))
		}
	}
	for _, j := range w.jobs.Active("") {
		open = append(open, fmt.Sprintf("job %s runs (%s)", j.ID, j.Title))
	}
	if what, err := w.waiting(ctx); err != nil {
		open = append(open, err.Error())
	} else if what != "" && !slices.Contains(open, what) {
		open = append(open, what)
	}
	list, err := w.teams.Tasks.List(ctx, w.main.Caller())
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
func (w *work) matesAtWork(ctx context.Context) ([]string, error) {
	if _, ok := w.teams.Seat(w.main.Caller()); !ok {
		return nil, nil
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // a look, and no wait
	p, err := w.teams.Await(now, w.main.Caller(), team.Awaited{})
	var working []string
	for _, a := range p.Agents {
		if a.State == team.AgentWorking {
			working = append(working, a.Name+" is at work")
		}
	}
	return working, err
}

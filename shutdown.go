package cadre

import (
	"context"
	"errors"
	"time"

	"github.com/cadre-dev/cadre/session"
)

// shutdownTime is how long a team may take to end in order.
const shutdownTime = 30 * time.Second

// Shutdown ends everything in order: the lead accepts no more input, each
// teammate is asked to end and does, jobs are stopped, transcripts are given
// back. It blocks until that is done; when ctx ends first, what still runs is
// stopped. After it the runtime is closed; a second call does nothing.
func (r *Runtime) Shutdown(ctx context.Context) error {
	orderly, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	err := r.main.Close(session.ErrClosed)
	if r.own == nil { // a teammate leaves alone
		if e := r.teams.Shutdown(orderly, r.mainCaller()); e != nil && !errors.Is(e, context.DeadlineExceeded) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, r.close(session.ErrClosed))
}

// Stop ends everything at once, without asking anybody: turns are interrupted, and
// what was going on is kept as far as it got. Teammates stay in their team, to be
// resumed; those with a process of their own end within the second. It blocks until
// nothing of the runtime runs in this process any more.
func (r *Runtime) Stop() error { return r.close(session.ErrClosed) }

// Kill is [Runtime.Stop] for who can do nothing about an error.
func (r *Runtime) Kill() { _ = r.Stop() }

func (r *Runtime) close(cause error) error {
	return r.closing(func() error {
		err := r.main.Close(cause)
		r.tree.Sessions.Close(cause)
		return errors.Join(err, r.end(), r.stores.close())
	})
}

// end ends what runs beside the sessions.
func (r *Runtime) end() error {
	r.jobs.Close()
	r.stopWatching()
	r.watching.Wait()
	err := r.teams.Close()
	r.tree.Stream.End()
	r.folding.Wait()
	return err
}

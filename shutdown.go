package cadre

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
)

// shutdownTime is how long a team may take to end in order.
const shutdownTime = 30 * time.Second

// Shutdown ends everything in order: the lead accepts no more input, each
// teammate is asked to end and does, jobs are stopped, transcripts are given
// back. It blocks until that is done; when ctx ends first, what still runs is
// stopped. [Runtime.AbandonShutdown] ends the waiting at once. After it the runtime is
// closed; a second call does nothing.
func (r *Runtime) Shutdown(ctx context.Context) error {
	err := r.main.Close(session.ErrClosed)
	if r.own == nil { // a teammate leaves alone
		err = errors.Join(err, r.shutdownTeam(ctx))
	}
	return errors.Join(err, r.close(session.ErrClosed))
}

// shutdownTeam ends the teammates, for as long as an orderly end may take.
func (r *Runtime) shutdownTeam(ctx context.Context) error {
	orderly, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	orderly, abandon := context.WithCancelCause(orderly)
	defer abandon(nil)
	watching.Go(func() {
		select {
		case <-r.closing.abandoned:
			abandon(team.ErrAbandoned)
		case <-orderly.Done():
		}
	})
	err := r.teams.Shutdown(orderly, r.mainCaller())
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, team.ErrAbandoned) {
		return nil
	}
	return err
}

// AbandonShutdown lets a [Runtime.Shutdown], under way or to come, wait for no teammate:
// they stay in their team as after [Runtime.Stop]. It does not block.
func (r *Runtime) AbandonShutdown() { r.closing.abandon() }

// Stop ends everything at once, without asking anybody: turns are interrupted, and
// what was going on is kept as far as it got. Teammates stay in their team, to be
// resumed; those with a process of their own end within the second. It blocks until
// nothing of the runtime runs in this process any more.
func (r *Runtime) Stop() error {
	r.AbandonShutdown()
	return r.close(session.ErrClosed)
}

// Kill is [Runtime.Stop] for who can do nothing about an error.
func (r *Runtime) Kill() { _ = r.Stop() }

// closing is the end of a runtime, which comes about once.
type closing struct {
	once      sync.Once
	err       error         // of the end; set once
	abandoned chan struct{} // closed by abandon
	abandon   func()
}

func newClosing() *closing {
	c := &closing{abandoned: make(chan struct{})}
	c.abandon = sync.OnceFunc(func() { close(c.abandoned) })
	return c
}

// do runs end, the first time, and returns that error ever after.
func (c *closing) do(end func() error) error {
	c.once.Do(func() { c.err = end() })
	return c.err
}

func (r *Runtime) close(cause error) error {
	return r.closing.do(func() error {
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

package main

import (
	"context"
	"errors"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/control"
	"github.com/cadre-dev/cadre/session"
)

// course is a run without a person: one prompt, what follows from it, and the
// end, which a signal may bring early.
type course struct {
	rt      *cadre.Runtime
	signals <-chan *stopped
	note    func(string)
	ending  ending
	broken  chan error // of capacity one: whoever prints what happens cannot go on
	stopped bool       // nothing can be stored: the team cannot be asked to end, and stays to be resumed
}

func newCourse(rt *cadre.Runtime, signals <-chan *stopped, note func(string)) course {
	return course{rt: rt, signals: signals, note: note, broken: make(chan error, 1)}
}

// work gives the prompt and waits until all that follows from it is done, or
// somebody ends it.
func (c *course) work(ctx context.Context, prompt string) control.End {
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	lead := c.rt.Session()
	go func() {
		err := lead.Prompt(working, prompt)
		if err == nil {
			err = c.rt.Settled(working)
		}
		done <- err
	}()
	var end control.End
	select {
	case err := <-done:
		var unstored *cadre.UnstoredError
		c.stopped = errors.As(err, &unstored)
		var open *cadre.OpenWorkError
		if errors.As(err, &open) {
			end.OpenWork = open
		} else if !errors.Is(err, session.ErrClosed) {
			end.Err = err
		}
		return end
	case s := <-c.signals:
		c.ending.next(s)
		c.note(c.ending.String())
	case err := <-c.broken:
		end.Err = err
	}
	_ = lead.Interrupt(ctx, session.ErrInterrupt) // closed already is as good
	stop()
	<-done
	end.Interrupted = true
	return end
}

// close ends the session tree in order, or at once when signals insist.
func (c *course) close(ctx context.Context) error {
	if c.ending.atOnce() || c.stopped {
		return c.rt.Stop()
	}
	done := make(chan error, 1)
	go func() { done <- c.rt.Shutdown(ctx) }()
	killed := false
	for {
		select {
		case err := <-done:
			return err
		case s := <-c.signals:
			_, kill := c.ending.next(s)
			c.note(c.ending.String())
			if (kill || c.ending.atOnce()) && !killed {
				killed = true
				c.rt.Kill()
			}
		}
	}
}

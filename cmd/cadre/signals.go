package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// stopped is the cause of a run that a signal ended.
type stopped struct {
	name string
	code int
}

func (s *stopped) Error() string { return "ended by " + s.name }

var (
	byInterrupt = &stopped{"Ctrl+C", exitInterrupted}
	byTerminate = &stopped{"SIGTERM", exitTerminated}
	byHangup    = &stopped{"SIGHUP", exitHangup}
	byQuit      = &stopped{"SIGQUIT", exitQuit}
)

// watchSignals delivers what asks us to end, from when caught is closed until stop is
// called. A signal that the parent had ignored (nohup, a background job of a script)
// stays ignored. Once caught is closed, a write to a closed pipe is an error like any
// other, and does not kill the process in the middle of its work; a handler, unlike an
// ignored signal, is not inherited by the commands that agents run.
//
// To begin catching a signal, or to stop it, costs two switches of threads for each. So
// the caller may do something else until caught is closed, and stop leaves the signals
// caught: it is for the end of the program, which a signal then ends at once.
func watchSignals() (causes <-chan *stopped, caught <-chan struct{}, stop func()) {
	raw, out := make(chan os.Signal, 8), make(chan *stopped)
	ready, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { // ends with the program
		catch(raw)
		close(ready)
		deliver(raw, out, over)
		close(out)
		close(ended)
		os.Exit(causeOf(<-raw).code)
	}()
	return out, ready, func() {
		close(over)
		<-ended
	}
}

func catch(raw chan<- os.Signal) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(raw, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// deliver passes signals on until over is closed. Those that nobody has received by then
// are dropped.
func deliver(raw <-chan os.Signal, out chan<- *stopped, over <-chan struct{}) {
	for {
		select {
		case s := <-raw:
			select {
			case out <- causeOf(s):
			case <-over:
			}
		case <-over:
			for len(raw) > 0 {
				<-raw
			}
			return
		}
	}
}

// interruptible is ctx until a signal asks us to end. stop is for the end of the program,
// like that of [watchSignals].
func interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	signals, caught, unwatch := watchSignals()
	<-caught
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := range signals {
			end(s)
		}
	}()
	return ctx, func() {
		unwatch()
		<-done
		end(nil)
	}
}

func causeOf(s os.Signal) *stopped {
	switch s {
	case syscall.SIGTERM:
		return byTerminate
	case syscall.SIGHUP:
		return byHangup
	case syscall.SIGQUIT:
		return byQuit
	}
	return byInterrupt
}

// ending counts signals, and says what the next one does.
type ending struct {
	cause *stopped // the first one
	count int
}

// atOnce reports whether the end must not wait for anybody: only a person who
// pressed Ctrl+C can press it again, a supervisor kills after a moment.
func (e *ending) atOnce() bool { return e.cause != nil && e.cause != byInterrupt }

// next counts a signal. first is true for the one that begins the end; kill is true
// when everything has to end at once: for the third Ctrl+C, or another signal after any.
func (e *ending) next(s *stopped) (first, kill bool) {
	e.count++
	if e.cause == nil {
		e.cause = s
		return true, false
	}
	if s != byInterrupt || e.cause != byInterrupt {
		e.cause = s
		return false, true
	}
	return false, e.count >= 3
}

func (e *ending) String() string {
	if e.cause == byInterrupt && e.count == 2 {
		return "shutting down; a third Ctrl+C ends everything at once"
	}
	return fmt.Sprintf("%v: shutting down", e.cause)
}

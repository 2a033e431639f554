// Package tui is the conversation on a terminal, line by line: no full screen,
// no raw mode, nothing but lines that come, and a prompt. It holds a session
// and its events, nothing else of the runtime, and works on a pipe as well.
package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/session"
)

// Config is the session that a person talks to, and how.
type Config struct {
	Session *session.Session
	// In is what the person enters. Run closes it, if it can be closed, and
	// then waits until a Read that is under way has returned.
	In  io.Reader
	Out io.Writer
	// Terminal says that In is a terminal: each Read gives one entry, a prompt
	// is shown, and the end of the input ends the conversation. Otherwise each
	// line is one entry, read when the one before has been answered, and the end of
	// the input ends the conversation as soon as all work is done.
	Terminal bool
	Style

	Prompt    string // the first entry, given before the conversation; "": none
	Welcome   *Welcome
	Interrupt <-chan struct{} // one value for each Ctrl+C

	Cost    func() string               // for /cost
	Settled func(context.Context) error // blocks until the team is at rest
	// Close ends the session tree in order, and with it the stream of events;
	// Kill makes that quick. Both are called at most once, Kill only after
	// Close.
	Close func(context.Context) error
	Kill  func()
}

// Welcome is what the very first run says about itself.
type Welcome struct {
	Model   string // the model in use
	Sent    string // where requests go, as a person knows it; "": nowhere, a script answers
	Root    string // where everything is stored
	Folders string // what the agents work in
}

// Run holds the conversation until the person leaves, the session ends, or ctx
// does; then it closes the session tree. It blocks until all is closed. The
// error is what Close, Settled or reading In gave, or the cause of ctx.
func Run(ctx context.Context, cfg Config) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	c := newConversation(cfg)
	leave := cfg.Session.Attend()
	defer leave()
	c.unattend = leave

	var pumps sync.WaitGroup
	events := make(chan event.Event, pending)
	typed := make(chan string)
	pumps.Go(func() {
		defer close(events)
		for ev := range cfg.Session.Events(inner, 0) {
			select {
			case events <- ev:
			case <-inner.Done():
				return
			}
		}
	})
	pumps.Go(func() {
		defer close(typed)
		c.readErr = entries(cfg.In, cfg.Terminal, func(text string) bool {
			select {
			case typed <- text:
				return true
			case <-inner.Done():
				return false
			}
		})
	})
	err := c.loop(ctx, inner, events, typed)
	stop()
	if in, ok := cfg.In.(io.Closer); ok {
		in.Close()
	}
	pumps.Wait()
	c.work.Wait()
	return err
}

// ErrKilled says that the person did not wait for the orderly end.
var ErrKilled = errors.New("ended at once")

// pending is how many events may wait for the screen before their pump waits.
const pending = 256

// loop is the one goroutine that touches the conversation. ctx outlives outer:
// what is to be closed is closed also after outer has ended.
func (c *conversation) loop(outer, ctx context.Context, events <-chan event.Event, typed <-chan string) error {
	c.begin(ctx)
	cancelled, gone := outer.Done(), c.Session.Done()
	for !c.over(events) {
		c.prompt(len(events) == 0)
		select {
		case ev, ok := <-events:
			if !ok {
				events = nil
				c.leave(ctx, nil)
				continue
			}
			c.event(ev)
		case text, ok := <-c.input(typed):
			if !ok {
				typed = nil
				c.endOfInput(ctx)
				continue
			}
			c.entered(ctx, text)
		case err := <-c.unstored:
			c.notStored(err)
		case <-c.Interrupt:
			c.interrupt(ctx)
		case err := <-c.settled:
			c.leave(ctx, err)
		case err := <-c.ending.closed:
			c.ending.done, c.ending.err = true, errors.Join(c.ending.err, err)
		case <-gone:
			gone = nil
			c.leave(ctx, nil)
		case <-cancelled:
			cancelled = nil
			c.leave(ctx, context.Cause(outer))
		}
	}
	c.screen.endStream()
	c.screen.leavePrompt()
	return c.ending.err
}

// over reports whether everything is closed and shown.
func (c *conversation) over(events <-chan event.Event) bool {
	return c.ending.done && events == nil
}

func (c *conversation) begin(ctx context.Context) {
	if w := c.Welcome; w != nil {
		c.screen.line("Welcome to cadre. Before the first run, in short:")
		if w.Sent == "" {
			c.screen.line(fmt.Sprintf("  Sent:    nothing: a script answers, %s.", Clean(w.Model)))
			c.screen.line("           There are no usage figures and no update checks.")
		} else {
			c.screen.line(fmt.Sprintf("  Sent:    your prompts, the files the agents read and what commands print go to %s, for the model %s.", Clean(w.Sent), Clean(w.Model)))
			c.screen.line("           Nothing goes anywhere else: no usage figures, no update checks.")
		}
		c.screen.line(fmt.Sprintf("  Stored:  conversations, teams, tasks and mail lie in %s, readable for you alone; delete them there.", Clean(w.Root)))
		c.screen.line(fmt.Sprintf("  Touched: agents work in %s, and ask before they change a file or run a command.", Clean(w.Folders)))
	}
	if c.Terminal && c.Prompt == "" {
		c.screen.line("Ctrl+C interrupts, Ctrl+D leaves, /help lists the commands.")
	}
	if c.Prompt != "" {
		c.send(ctx, c.Prompt)
	}
}

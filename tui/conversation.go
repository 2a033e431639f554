package tui

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/transcript"
)

// conversation is the state of Run. Only its loop touches it.
type conversation struct {
	Config
	screen *screen
	lines  *Lines

	idle     bool       // the lead's last turn has ended
	sent     []string   // prompts that are not in the transcript yet
	unstored chan error // why a prompt was not stored
	asks     []*question
	strikes  int // Ctrl+C since something was entered
	reply    reply

	unattend func() // says that nobody is here to answer any more
	readErr  error  // of the input, valid when it has ended
	settled  chan error
	ending   ending
	work     sync.WaitGroup
}

// reply is how far the lead's reply in progress is shown.
type reply struct {
	clean    Cleaner
	streamed bool   // its text was shown as it came
	shown    string // id of the newest reply whose text was shown so
}

// ending is how far the end of the conversation is.
type ending struct {
	closing bool // Close was called
	closed  chan error
	done    bool // Close has returned
	killed  bool
	err     error // what Run returns
}

func newConversation(cfg Config) *conversation {
	s := &screen{out: cfg.Out, prompts: cfg.Terminal}
	c := &conversation{
		Config: cfg, screen: s, lines: newLines(cfg.Style, s.line), idle: true,
		unstored: make(chan error), settled: make(chan error, 1), ending: ending{closed: make(chan error, 1)},
	}
	c.lines.Results = true
	return c
}

// ready reports whether the next entry would start a turn.
func (c *conversation) ready() bool { return c.idle && len(c.sent) == 0 && len(c.asks) == 0 }

// input is the source of entries while one can be handled, which on a terminal is
// always; nil blocks it.
func (c *conversation) input(typed <-chan string) <-chan string {
	if c.ending.closing || !c.Terminal && !c.ready() && len(c.asks) == 0 {
		return nil
	}
	return typed
}

// prompt shows the prompt when there is nothing else to show.
func (c *conversation) prompt(quiet bool) {
	switch {
	case !quiet || c.ending.closing:
	case len(c.asks) > 0:
		c.screen.prompt(c.asks[0].prompt())
	case c.ready():
		c.screen.prompt(c.modeMark() + "> ")
	}
}

// modeMark names the permission mode before the prompt, unless it is the usual one.
func (c *conversation) modeMark() string {
	if mode := c.Session.State().Mode; mode != "" && mode != permission.Default {
		return string(mode)
	}
	return ""
}

// entered handles an entry: an answer, a command, or a prompt.
func (c *conversation) entered(ctx context.Context, text string) {
	c.screen.entered()
	c.strikes = 0
	switch {
	case strings.TrimSpace(text) != "" && isWholeCommand(text): // also while a question waits
		c.command(ctx, strings.Fields(text))
	case len(c.asks) > 0:
		c.answer(ctx, text)
	case strings.TrimSpace(text) == "":
	case isCommand(text) && !knownCommand(text):
		c.command(ctx, strings.Fields(text))
	case isCommand(text):
		c.screen.line(Clean(strings.Fields(text)[0]) + " is a command only when nothing else follows. To send this to the agent, put a space before it.")
	default:
		c.send(ctx, text)
	}
}

// send gives a prompt to the lead. A busy lead gets it between two rounds.
func (c *conversation) send(ctx context.Context, text string) {
	unstored := c.unstored
	in := session.Text(session.Prompt, text)
	in.Kept = func(reporting context.Context, err error) {
		if err == nil {
			return // event.Stored follows
		}
		select {
		case unstored <- err:
		case <-ctx.Done():
		case <-reporting.Done():
		}
	}
	if err := c.Session.Send(ctx, in); err != nil {
		c.lines.noticed(event.Agent{}, event.Noticed{Level: "error", Text: err.Error()})
		return
	}
	c.sent = append(c.sent, text)
}

// notStored says that a prompt is lost.
func (c *conversation) notStored(err error) {
	if len(c.sent) > 0 {
		c.sent = c.sent[1:]
	}
	if !errors.Is(err, session.ErrClosed) {
		c.lines.noticed(event.Agent{}, event.Noticed{Level: "error", Text: "your prompt was not stored: " + err.Error()})
	}
}

// event shows an event.
func (c *conversation) event(ev event.Event) {
	lead := ev.Agent.ID == ""
	switch body := ev.Body.(type) {
	case event.Asked:
		c.asked(body.Ask)
	case event.Answered:
		c.answered(body.ID, body.Answer)
	case event.TextDelta:
		if lead && !body.Thinking {
			c.screen.stream(c.reply.clean.Clean(body.Text))
			c.reply.streamed = true
		}
	case event.Stored:
		if lead {
			c.stored(body.Entry)
		}
	case event.TurnStarted:
		if lead {
			c.idle = false
		}
	case event.TurnEnded:
		if lead {
			c.endReply()
		}
		c.lines.Event(ev)
	case event.Idle:
		if lead {
			c.idle = true
		}
	default:
		c.lines.Event(ev)
	}
}

// stored shows text that was not streamed, and drops prompts that have reached the
// transcript from those that were sent.
func (c *conversation) stored(e transcript.Entry) {
	text := transcript.JoinText(e.Message.Content)
	if e.Kind == transcript.KindUser {
		c.reply.shown = ""
		if len(c.sent) > 0 && c.sent[0] == text {
			c.sent = c.sent[1:]
			c.idle = false
		}
		return
	}
	switch {
	case text == "":
	case c.reply.streamed:
		c.reply.shown = e.Message.ID
		c.endReply()
	case c.reply.shown != "" && c.reply.shown == e.Message.ID:
	default:
		c.screen.stream(Clean(text))
	}
	c.screen.endStream()
}

func (c *conversation) endReply() {
	c.screen.endStream()
	c.reply.streamed = false
	c.reply.clean = Cleaner{}
}

// interrupt handles Ctrl+C: the first one ends the turn, the second the conversation,
// the third everything at once.
func (c *conversation) interrupt(ctx context.Context) {
	c.strikes++
	switch {
	case c.ending.closing:
		if !c.ending.killed {
			c.ending.killed, c.ending.err = true, errors.Join(c.ending.err, ErrKilled)
			c.Kill()
		}
	case !c.idle || len(c.sent) > 0:
		c.screen.endStream()
		if err := c.Session.Interrupt(ctx, session.ErrInterrupt); err != nil {
			c.leave(ctx, nil)
		}
		if c.strikes > 1 { // the turn does not end by itself
			c.leave(ctx, nil)
		}
	case c.strikes > 1:
		c.leave(ctx, nil)
	default:
		c.screen.line("Press Ctrl+C again to leave, or Ctrl+D.")
	}
}

// endOfInput is the end of the conversation on a terminal; elsewhere what was
// asked for is still done.
func (c *conversation) endOfInput(ctx context.Context) {
	if c.readErr != nil {
		c.ending.err = errors.Join(c.ending.err, c.readErr)
	}
	c.unattend()
	if c.Terminal {
		c.leave(ctx, nil)
		return
	}
	for _, q := range c.asks {
		c.submit(ctx, q, ask.Answer{Message: "Nobody is left to answer. The call did not run.", By: "person"})
	}
	c.work.Go(func() { c.settled <- c.Settled(ctx) })
}

// leave closes the session tree, once.
func (c *conversation) leave(ctx context.Context, cause error) {
	c.ending.err = errors.Join(c.ending.err, cause)
	if c.ending.closing {
		return
	}
	c.ending.closing = true
	c.unattend()
	c.work.Go(func() { c.ending.closed <- c.Close(ctx) })
}

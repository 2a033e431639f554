package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

func newTeamWatch() *cobra.Command {
	var asJSON, untilClosed bool
	cmd := &cobra.Command{
		Use: "watch NAME", Short: "Watch a team: members, tasks, questions, mail", Args: exactly(1, "the name of a team"),
		Long:              "Shows a team as it changes, from outside its processes, until the team is removed or you press q\nor Ctrl+C. With --until-closed it also ends when no process leads the team any more. When the output is not\na terminal, each change is a line; with --json, a JSON object (docs/cli.md).",
		ValidArgsFunction: complete(teamCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error {
				return watchTeam(cmd.Context(), places, args[0], newWatcher(asJSON), untilClosed)
			})
		},
	}
	cmd.Flags().BoolVar(&untilClosed, "until-closed", false, "end when no process leads the team")
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each change, one per line")
	return cmd
}

// watchInterval is how often a watch reads what sends no signal when it changes: the
// roster, the questions, the size of the terminal, and whether its reader is still there.
const watchInterval = time.Second

// teamState is what a watch shows.
type teamState struct {
	view  teamView
	tasks []task.Task
	asks  []askView
	mail  []post
}

// post is a message and the inbox that it is in.
type post struct {
	to mailbox.Address
	mailbox.Message
}

func (m post) view() mailView {
	return mailView{m.to.Agent, m.From, m.Timestamp, m.Read, m.Summary, m.Text}
}

// watcher shows a team. draw is called again and again, also when nothing has changed;
// removed or closed is called once, last, when the team is gone or its run is over.
type watcher interface {
	draw(now *teamState) error
	removed() error
	closed() error
}

const teamIsGone = "The team is gone."

// newWatcher draws a picture on a terminal; elsewhere it writes a line for each change.
func newWatcher(asJSON bool) watcher {
	if asJSON {
		return &teamChanges{}
	}
	if term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb" {
		return &teamPicture{size: func() (columns, rows int) {
			columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil || columns <= 0 || rows <= 0 {
				return 80, 24
			}
			return columns, rows
		}}
	}
	return &teamLines{}
}

func watchTeam(ctx context.Context, places []place, name string, shown watcher, untilClosed bool) error {
	p, config, err := findTeam(ctx, places, name)
	if err != nil {
		return err
	}
	ctx, stopSignals := interruptible(ctx)
	defer stopSignals()
	if _, onTerminal := shown.(*teamPicture); onTerminal {
		var stopKeys func()
		if ctx, stopKeys, err = leavable(ctx); err != nil {
			return err
		}
		defer stopKeys()
	}
	changed, stop := p.Tasks().Watch(config.Name)
	defer stop()
	posted, stopMail := p.Mail().Watch(mailbox.Address{Team: config.Name, Agent: mailbox.LeadName})
	defer stopMail()
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	mail := newMailReader(p)
	for {
		now, err := p.stateOf(ctx, config.Name, mail)
		switch {
		case ctx.Err() != nil:
			return watchEnd(ctx)
		case errors.Is(err, roster.ErrNotFound):
			return shown.removed()
		case err != nil:
			return err
		}
		if err := shown.draw(now); err != nil {
			return err
		}
		if untilClosed && now.view.state() == stateClosed {
			return shown.closed()
		}
		select {
		case <-changed:
		case <-posted:
		case <-ticks.C:
			if readerGone(os.Stdout) {
				return exitWith(exitNoReader)
			}
		case <-ctx.Done():
			return watchEnd(ctx)
		}
	}
}

// leavable is ctx until somebody at the terminal presses q or Ctrl+C. Without the terminal's
// own handling of lines, a key is read at once and does not show in the picture. stop gives
// the terminal back as it was.
func leavable(ctx context.Context) (_ context.Context, stop func(), err error) {
	stdin := int(os.Stdin.Fd())
	if !term.IsTerminal(stdin) {
		return ctx, func() {}, nil
	}
	keys, err := newKeyboard(os.Stdin, false)
	if err != nil {
		return ctx, nil, fmt.Errorf("read the keyboard: %w", err)
	}
	before, err := term.MakeRaw(stdin)
	if err != nil {
		return ctx, nil, errors.Join(fmt.Errorf("set up the terminal: %w", err), keys.Close())
	}
	ctx, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		pressed := make([]byte, 16)
		for {
			n, err := keys.Read(pressed)
			if err != nil {
				return
			}
			if bytes.ContainsAny(pressed[:n], "qQ\x03") {
				end(byInterrupt)
			}
		}
	}()
	return ctx, func() {
		_ = keys.Close()
		<-done
		_ = term.Restore(stdin, before) // it was a terminal a moment ago
		end(nil)
	}, nil
}

// watchEnd is the error of a watch that a signal ended: none when a person left.
func watchEnd(ctx context.Context) error {
	var s *stopped
	if errors.As(context.Cause(ctx), &s) && s != byInterrupt {
		return exitWith(s.code)
	}
	return nil
}

// stateOf reads all that a watch shows.
func (p place) stateOf(ctx context.Context, name string, mail *mailReader) (*teamState, error) {
	config, err := p.Rosters().Load(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &teamState{view: p.viewTeam(ctx, config)}
	if s.tasks, err = p.Tasks().List(ctx, config.Name); err != nil {
		return nil, err
	}
	if s.asks, err = p.asksOf(ctx, config); err != nil {
		return nil, err
	}
	s.view.markAsking(s.asks)
	s.mail = mail.all(ctx, config)
	return s, nil
}

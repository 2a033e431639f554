package main

import (
	"context"
	"errors"
	"os"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

func newTeamWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch NAME", Short: "Watch a team: members, tasks, questions, mail", Args: exactly(1, "the name of a team"),
		Long:              "Shows a team as it changes, from outside its processes, until it is removed or Ctrl+C.\nWhen the output is no terminal, each change is a line.",
		ValidArgsFunction: complete(teamCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withPlaces(func(places []place) error { return watchTeam(cmd.Context(), places, args[0]) })
		},
	}
}

// look is how often the roster, the questions and the size of the terminal are
// looked at: no signal tells of their changes.
const look = time.Second

// teamState is what a watch shows.
type teamState struct {
	view  teamView
	tasks []task.Task
	asks  []askView
	mail  []post
}

// post is a message and whose inbox it lies in.
type post struct {
	to mailbox.Address
	mailbox.Message
}

// watcher shows a team as it is now. draw is called again and again; it need not
// do anything when nothing has changed. end leaves the terminal in order.
type watcher interface {
	draw(now *teamState) error
	end() error
}

// newWatcher draws on a terminal, and tells lines elsewhere.
func newWatcher() watcher {
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

func watchTeam(ctx context.Context, places []place, name string) error {
	p, config, err := findTeam(ctx, places, name)
	if err != nil {
		return err
	}
	ctx, stopSignals := interruptible(ctx)
	defer stopSignals()
	changed, stop := p.Tasks().Watch(config.Name)
	defer stop()
	posted, stopMail := p.Mail().Watch(mailbox.Address{Team: config.Name, Agent: mailbox.LeadName})
	defer stopMail()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	shown, mail := newWatcher(), newMailReader(p)
	for was := (*teamState)(nil); ; {
		now, err := p.stateOf(ctx, config.Name, mail)
		switch {
		case errors.Is(err, roster.ErrNotFound):
			return errors.Join(shown.end(), writeOut([]byte("The team is gone.\n")))
		case ctx.Err() != nil:
			return shown.end()
		case err != nil:
			return errors.Join(shown.end(), err)
		}
		if was != nil && reflect.DeepEqual(was, now) {
			now = was
		}
		if err := shown.draw(now); err != nil {
			return err
		}
		was = now
		select {
		case <-changed:
		case <-posted:
		case <-ticks.C:
		case <-ctx.Done():
			return shown.end()
		}
	}
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

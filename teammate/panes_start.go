package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
)

// Start implements [team.Backend]: it opens a pane, writes down everything that the
// program needs, lets the program begin, and waits until it has checked in. When
// it does not, what its pane shows is part of the error, and the pane is closed.
func (b *Panes) Start(ctx context.Context, s team.Spawn) (team.Started, error) {
	who := s.Seat.Address()
	m, err := b.start(ctx, s, who)
	if err != nil {
		return team.Started{}, fmt.Errorf("start teammate %s: %w", who, err)
	}
	b.showAttachOnce()
	return team.Started{PaneID: m.place.Pane}, nil
}

func (b *Panes) start(ctx context.Context, s team.Spawn, who mailbox.Address) (*paneMate, error) {
	m, err := b.open(ctx, s, who)
	if err != nil {
		return nil, err
	}
	if s.Placed != nil {
		s.Placed()
	}
	if err := b.begin(ctx, s, m); err != nil {
		return nil, errors.Join(err, b.undo(ctx, m))
	}
	return m, nil
}

// open opens a pane for a teammate, whose program does not start yet.
func (b *Panes) open(ctx context.Context, s team.Spawn, who mailbox.Address) (*paneMate, error) {
	if err := b.Sweep(ctx, who); err != nil {
		return nil, err
	}
	if err := b.cfg.Ready(ctx, who.Team); err != nil {
		return nil, err
	}
	session, err := b.session(ctx, s)
	if err != nil {
		return nil, err
	}
	files, err := b.write(who.Agent, s.Member.Cwd, slices.Concat(b.cfg.Command, b.flags(s, session)))
	if err != nil {
		return nil, fmt.Errorf("write its start script: %w", err)
	}
	place, err := b.cfg.Terminal.Open(ctx, pane.Spec{
		Title: s.Member.Name, Color: s.Member.Color, Script: files.script, Window: s.Window,
	})
	if err != nil {
		files.remove()
		return nil, err
	}
	return &paneMate{who: who, place: place, files: files}, nil
}

// begin records the pane before anything else, lets the program start and waits
// until it has checked in.
func (b *Panes) begin(ctx context.Context, s team.Spawn, m *paneMate) error {
	// However ctx ends: what is open must be on record.
	if err := b.record(context.WithoutCancel(ctx), m.who, m.place); err != nil {
		return err
	}
	// What the program looks for when it begins: its pane on the roster, and its first
	// message.
	if err := b.enroll(ctx, m); err != nil {
		return err
	}
	prompt, err := s.DeliverPrompt(ctx)
	if err != nil {
		return err
	}
	if err := b.followTasks(ctx, m.who.Team); err != nil {
		return err
	}
	if err := m.files.open(); err != nil {
		return fmt.Errorf("let its program start: %w", err)
	}
	if err := b.awaitCheckIn(ctx, m, prompt); err != nil {
		return err
	}
	if err := s.Seat.CheckedIn(ctx); err != nil {
		return err
	}
	return b.add(ctx, m)
}

// Sweep closes the pane of a former teammate of this name: it still shows why that
// one has ended, or its lead was killed while it started. A program that has just
// taken its place there is waited for.
func (b *Panes) Sweep(ctx context.Context, who mailbox.Address) error {
	place, ok, err := b.recorded(ctx, who)
	if err != nil || !ok {
		return err
	}
	return b.end(ctx, &paneMate{who: who, place: place})
}

// session is the conversation that a teammate which comes back goes on with; ""
// is a new one.
func (b *Panes) session(ctx context.Context, s team.Spawn) (string, error) {
	switch {
	case s.Record == nil:
		return "", nil
	case b.cfg.Resume != nil:
		return b.cfg.Resume(ctx, *s.Record)
	}
	return s.Record.SessionID, nil
}

// enroll writes the pane of a teammate into the roster: its program reads it
// there.
func (b *Panes) enroll(ctx context.Context, m *paneMate) error {
	_, err := b.cfg.Rosters.Update(ctx, m.who.Team, func(c *roster.Roster) error {
		member := c.Find(m.who.Agent)
		if member == nil {
			return &roster.UnknownMemberError{Name: m.who.Agent, Team: m.who.Team}
		}
		member.PaneID, member.BackendType = m.place.Pane, b.terminalKind()
		return nil
	})
	if err != nil {
		return fmt.Errorf("write its pane into the roster: %w", err)
	}
	return nil
}

// undoTime is how long closing the pane of a teammate that did not start may take.
const undoTime = 10 * time.Second

// undo closes the pane of a teammate that did not start.
func (b *Panes) undo(ctx context.Context, m *paneMate) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err := b.end(ctx, m)
	m.files.remove()
	return err
}

// showAttachOnce says to the person how to look at panes that are not in front of them.
func (b *Panes) showAttachOnce() {
	b.mu.Lock()
	first := !b.attachShown
	b.attachShown = true
	b.mu.Unlock()
	if attach := b.cfg.Terminal.Attach(); first && attach != "" {
		b.cfg.Notify("Teammates run in " + b.terminalKind() + ". To look at them: " + attach)
	}
}

package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// tailLines is how much of a pane an error quotes.
const tailLines = 15

// paneLooks is how many looks at what costs little come on one at the terminal,
// which is asked through a program.
const paneLooks = 10

var errPaneClosed = errors.New("its pane was closed")

// awaitCheckIn blocks until a teammate has checked in: ours holds its place;
// another program has read its first message, or says on the roster that it is
// at work. Errors: the program has ended, or its pane; the deadline has passed.
func (b *Panes) awaitCheckIn(ctx context.Context, m *paneMate, prompt mailbox.Message) error {
	deadline := time.NewTimer(b.cfg.CheckIn)
	defer deadline.Stop()
	tick := time.NewTicker(b.cfg.Poll)
	defer tick.Stop()
	read, stop := b.cfg.Mail.Watch(m.who)
	defer stop()
	for looks := 1; ; looks++ {
		up, err := b.hasCheckedIn(ctx, m, prompt)
		if up || err != nil {
			return err
		}
		if code, ok := m.files.exited(); ok {
			return b.withTail(ctx, m, fmt.Errorf("its program has ended with exit code %d", code))
		}
		if looks%paneLooks == 0 {
			if open, err := b.isOpen(ctx, m.place); err == nil && !open {
				return errPaneClosed
			}
		}
		select {
		case <-tick.C:
		case <-read:
		case <-deadline.C:
			return b.withTail(ctx, m, fmt.Errorf("it has not checked in within %s", b.cfg.CheckIn))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *Panes) hasCheckedIn(ctx context.Context, m *paneMate, prompt mailbox.Message) (bool, error) {
	_, present, err := b.cfg.Presence.Find(ctx, m.who)
	if present || err != nil {
		m.ours = present
		return present, err
	}
	config, err := b.cfg.Rosters.Load(ctx, m.who.Team)
	if err != nil {
		return false, err
	}
	member := config.Find(m.who.Agent)
	switch {
	case member == nil: // removed meanwhile, and its mail with it
		return false, &roster.UnknownMemberError{Name: m.who.Agent, Team: m.who.Team}
	case member.IsActive != nil && *member.IsActive:
		return true, nil
	case prompt.Text == "":
		return false, nil
	}
	unread, err := b.cfg.Mail.Unread(ctx, m.who)
	first := mailbox.FirstID(prompt)
	return err == nil && !slices.ContainsFunc(unread, func(u mailbox.Message) bool { return u.ID == first }), err
}

// withTail adds to an error what the pane shows.
func (b *Panes) withTail(ctx context.Context, m *paneMate, err error) error {
	tail, tailErr := b.cfg.Terminal.Tail(ctx, m.place, tailLines)
	if tailErr != nil || tail == "" {
		return err
	}
	return fmt.Errorf("%w; its pane shows:\n%s", err, tail)
}

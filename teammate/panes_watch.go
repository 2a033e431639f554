package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// watchAll looks at the teammates until none is left, or ctx ends.
func (b *Panes) watchAll(ctx context.Context) {
	tick := time.NewTicker(b.cfg.Check)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		mates, ok := b.running()
		if !ok {
			return
		}
		b.check(ctx, mates)
	}
}

// running lists the teammates under watch; ok is false when there is none, and
// the watch ends.
func (b *Panes) running() (mates []*paneMate, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.mates {
		mates = append(mates, m)
	}
	b.watching = len(mates) > 0
	return mates, b.watching
}

// check finds out who has ended. What cannot be known now is looked at next time.
func (b *Panes) check(ctx context.Context, mates []*paneMate) {
	var others []*paneMate
	for _, m := range mates {
		_, present, err := b.cfg.Presence.Find(ctx, m.who)
		switch {
		case err != nil:
		case present:
			b.mu.Lock()
			m.ours = true
			b.mu.Unlock()
		case m.ours:
			b.report(ctx, m, "its process has ended")
		default:
			others = append(others, m)
		}
	}
	b.checkOthers(ctx, others)
}

// checkOthers looks at the teammates whose programs take no place.
func (b *Panes) checkOthers(ctx context.Context, mates []*paneMate) {
	mates = slices.DeleteFunc(mates, func(m *paneMate) bool { return b.checkRoster(ctx, m) })
	places := make(map[string][]pane.Place)
	for _, m := range mates {
		places[m.place.Terminal] = append(places[m.place.Terminal], m.place)
	}
	for _, group := range places {
		terminal, err := b.terminal(group[0])
		if err != nil {
			continue
		}
		alive, err := terminal.Alive(ctx, group)
		if err != nil {
			continue
		}
		for _, m := range mates {
			if !slices.Contains(group, m.place) {
				continue
			}
			if _, exited := m.files.exited(); exited {
				b.report(ctx, m, "its program has ended")
			} else if !alive[m.place] {
				b.report(ctx, m, "its pane was closed")
			}
		}
	}
}

// checkRoster looks at what the roster says of a teammate. It reports whether there
// is nothing more to look at.
func (b *Panes) checkRoster(ctx context.Context, m *paneMate) (done bool) {
	config, err := b.cfg.Rosters.Load(ctx, m.who.Team)
	if err != nil {
		return false
	}
	member := config.Find(m.who.Agent)
	if member == nil {
		b.endRemoved(ctx, m)
		return true
	}
	if active := member.IsActive != nil && *member.IsActive; active != m.active {
		// What is not kept is seen again at the next look.
		if b.noteActivity(ctx, m.who, active) == nil {
			m.active = active
		}
	}
	return false
}

// noteActivity keeps that a teammate's word has changed.
func (b *Panes) noteActivity(ctx context.Context, who mailbox.Address, active bool) error {
	seen := roster.Activity{Active: active, Since: protocol.Stamp(time.Now())}
	return b.cfg.Records.Put(ctx, who.Team, roster.RecordActivity, who.Agent, jsonx.MustMarshal(seen))
}

// endRemoved ends a teammate that a person has removed from its team ([team.Teams.Remove]):
// another program does not look whether it is still on the roster.
func (b *Panes) endRemoved(ctx context.Context, m *paneMate) {
	why := errors.New("it was removed from the team")
	if err := b.Stop(ctx, m.who, why); err != nil {
		b.cfg.Notify(err.Error())
		return
	}
	if err := b.cfg.Gone(ctx, m.who, why.Error()); err != nil {
		b.cfg.Notify(err.Error())
	}
}

// report reports that a teammate has ended, except one that has agreed to: its
// approval waits for the lead, which will stop it when it has read that. A report
// that fails is made again at the next look.
func (b *Panes) report(ctx context.Context, m *paneMate, why string) {
	if ctx.Err() != nil {
		return // the lead is ending, and the team stays as it is
	}
	if code, ok := m.files.exited(); ok && code != 0 {
		why = fmt.Sprintf("%s with exit code %d", why, code)
	}
	approved, err := b.hasApproved(ctx, m.who)
	if err != nil {
		return
	}
	if !approved {
		if err := b.forgetPane(ctx, m); err != nil {
			return
		}
		if err := b.cfg.Gone(ctx, m.who, why); err != nil {
			return
		}
	}
	m.files.remove()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mates[m.who] == m {
		delete(b.mates, m.who)
	}
}

// hasApproved reports whether a teammate's consent to shut down waits for the
// lead.
func (b *Panes) hasApproved(ctx context.Context, who mailbox.Address) (bool, error) {
	waiting, err := b.cfg.Mail.Unread(ctx, mailbox.Address{Team: who.Team, Agent: mailbox.LeadName})
	return slices.ContainsFunc(waiting, func(m mailbox.Message) bool {
		c, _ := protocol.Parse(m.Text)
		_, approved := c.(protocol.ShutdownApproved)
		return approved && m.From == who.Agent
	}), err
}

// forgetPane forgets the pane of a teammate that has ended, unless it is still open:
// then it shows why.
func (b *Panes) forgetPane(ctx context.Context, m *paneMate) error {
	open, err := b.isOpen(ctx, m.place)
	if err != nil {
		return err
	}
	if !open {
		return b.cfg.Records.Drop(ctx, m.who.Team, roster.RecordPane, m.who.Agent)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mates[m.who] == m {
		b.ended[m.who] = m.place
	}
	return nil
}

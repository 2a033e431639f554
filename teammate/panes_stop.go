package teammate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
)

// Stop implements [team.Backend], also for teammates that an earlier lead has started.
// The pane is closed, which hangs the program up; a process of ours that goes on
// all the same is killed.
func (b *Panes) Stop(ctx context.Context, who mailbox.Address, cause error) error {
	place, _, err := b.recorded(ctx, who)
	if err != nil {
		return fmt.Errorf("stop teammate %s: %w", who, err)
	}
	m := b.remove(who) // its end is no news any more
	m.place = place    // only what is on record
	if errors.Is(cause, team.ErrShutdownApproved) {
		err = b.await(ctx, b.cfg.Leave, func() (bool, error) { return b.hasEnded(ctx, m) })
	}
	if err == nil || errors.Is(err, errStillRuns) {
		err = b.end(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("stop teammate %s: %w", who, err)
	}
	m.files.remove()
	return nil
}

// errStillRuns says that a teammate has not ended in time.
var errStillRuns = errors.New("it still runs")

// await looks again and again whether something has come about, but no longer
// than limit: then it is [errStillRuns].
func (b *Panes) await(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(b.cfg.Poll)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return errStillRuns
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hasEnded reports whether nothing of a teammate runs any more.
func (b *Panes) hasEnded(ctx context.Context, m *paneMate) (bool, error) {
	_, present, err := b.cfg.Presence.Find(ctx, m.who)
	if present || err != nil {
		return false, err
	}
	if _, exited := m.files.exited(); exited || m.ours {
		return true, nil
	}
	open, err := b.isOpen(ctx, m.place)
	return !open, err
}

// end closes the pane of a teammate and waits for its process. What no record
// says we opened is not ended.
func (b *Panes) end(ctx context.Context, m *paneMate) error {
	if m.place != (pane.Place{}) {
		if err := b.closePane(ctx, m.who, m.place); err != nil {
			return err
		}
	}
	var last roster.Process
	absent := func() (bool, error) {
		p, present, err := b.cfg.Presence.Find(ctx, m.who)
		last = p
		return !present, err
	}
	if m.place == (pane.Place{}) {
		if ok, err := absent(); ok || err != nil {
			return err
		}
		return fmt.Errorf("process %d on %s runs it, in a place that no lead of this team has opened: end it there", last.PID, last.Host)
	}
	err := b.await(ctx, b.cfg.HangUp, absent)
	if !errors.Is(err, errStillRuns) {
		return err
	}
	if err := kill(last); err != nil {
		return err
	}
	return b.await(ctx, b.cfg.HangUp, absent)
}

// kill ends a process of this machine at once.
func kill(p roster.Process) error {
	host, err := os.Hostname()
	if err == nil && host != p.Host || p.PID <= 0 || p.PID == os.Getpid() {
		return fmt.Errorf("process %d runs it on %s, and did not end with its pane", p.PID, p.Host)
	}
	process, err := os.FindProcess(p.PID)
	if err == nil {
		err = process.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	return nil
}

// Adopt begins to watch a teammate that an earlier lead has started, when it
// still lives: ours when its place is taken and it is not about to end for want of a
// lead ([Seat.EndWithoutLead]), another program when its pane is open. It starts
// nothing.
func (b *Panes) Adopt(ctx context.Context, who mailbox.Address) (lives bool, err error) {
	place, _, err := b.recorded(ctx, who)
	if err != nil {
		return false, err
	}
	m := &paneMate{who: who, place: place}
	if _, m.ours, err = b.cfg.Presence.Find(ctx, who); err != nil {
		return false, err
	}
	var r roster.AgentRecord
	if _, err := b.kept(ctx, roster.RecordAgent, who, &r); err != nil || r.Orphaned {
		return false, err
	}
	var seen roster.Activity
	if _, err := b.kept(ctx, roster.RecordActivity, who, &seen); err != nil {
		return false, err
	}
	m.active = seen.Active
	if !m.ours {
		lives, err := b.foreignLives(ctx, r, m)
		if !lives || err != nil {
			return false, err
		}
	}
	return true, errors.Join(b.followTasks(ctx, who.Team), b.add(ctx, m))
}

// foreignLives reports whether a program that is not ours runs in a pane: of one
// that is ours, an open pane only shows why it has ended.
func (b *Panes) foreignLives(ctx context.Context, r roster.AgentRecord, m *paneMate) (bool, error) {
	if r.Signs {
		return false, nil
	}
	return b.isOpen(ctx, m.place)
}

package teammate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/ctxlock"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

// joinTime is how long a lead may take to put a teammate on the roster after starting
// it.
const joinTime = 30 * time.Second

// Process is a process whose main session is a teammate: its lead is another process.
type Process struct {
	host     *Host
	seat     *team.Seat
	activity *activity
	usage    ownUsage
	// orphanGrace is how long the teammate goes on without a lead.
	orphanGrace time.Duration
}

// Join takes the place of a teammate in its team, before the main session is opened: it
// waits until the lead has put the teammate on the roster. From then on questions of
// this process go to the lead too. Errors are those of [team.Teams.Join].
func Join(ctx context.Context, h *Host, by tool.Caller, orphanGrace time.Duration) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	seat, err := h.Teams.Join(ctx, by)
	if err != nil {
		return nil, err
	}
	p := &Process{
		host: h, seat: seat, activity: newActivity(seat), usage: ownUsage{lock: ctxlock.New()}, orphanGrace: orphanGrace,
	}
	h.own = p
	h.Tree.Questions.Elsewhere(p.askLead)
	return p, nil
}

// askLead puts a question to the lead. A person may have answered it before it was
// sent, when there was nothing to withdraw yet.
func (p *Process) askLead(ctx context.Context, a ask.Ask) error {
	if _, err := p.seat.Questions.Ask(ctx, a); err != nil || p.host.Tree.Questions.IsPending(a.ID) {
		return err
	}
	return p.seat.Questions.Withdraw(ctx, a.ID)
}

// Prepare makes the main session the teammate that it is. A new one is introduced to its
// team; one that comes back knows it. release is to be called when the session has
// ended.
func (p *Process) Prepare(ctx context.Context, spec *session.Spec, mustPlan, comesBack bool) (release func(), err error) {
	if spec.Mode, err = startingMode(ctx, p.seat, mustPlan); err != nil {
		return nil, err
	}
	if !comesBack {
		spec.Preface = p.introduction
	}
	// Seen from outside, the agent must be at work or its mail unread, at any moment.
	// What fails is written with the next change.
	spec.BeforeMailIsRead = func(ctx context.Context) { _ = p.activity.write(ctx) }
	spec.Life, release = p.host.newLife(p.seat)
	return release, nil
}

// introduction says to a new teammate who and where it is.
func (p *Process) introduction(ctx context.Context) string {
	text, err := p.seat.Introduction(ctx)
	if err != nil {
		p.host.warn(err)
	}
	return text
}

// Serve looks after the teammate's place in its team until ctx ends: it keeps its
// entry in the roster true, and ends main when the lead has died and does not come back,
// or when it is to be stopped at once. At the end it stores what the process has used.
func (p *Process) Serve(ctx context.Context, main *session.Session) {
	var serving sync.WaitGroup
	serving.Go(func() { p.host.withdrawStale(ctx, p.seat) })
	serving.Go(func() { p.activity.follow(ctx, p.host.warn) })
	serving.Go(func() { p.watchLead(ctx, main) })
	serving.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), departTime)
	defer cancel()
	p.keepUsage(ctx)
}

// begins sets that the teammate is at work; in a lead's process it does nothing.
func (p *Process) begins() {
	if p != nil {
		p.activity.set(true)
	}
}

// isAtWork writes into the roster that the teammate is at work, since it has found some
// by itself. In a lead's process it does nothing: teammates there have no such entry.
func (p *Process) isAtWork(ctx context.Context) {
	if p != nil {
		p.activity.set(true)
		_ = p.activity.write(ctx) // what fails is written with the next change
	}
}

// isIdle writes into the roster that the teammate is idle; in a lead's process it does
// nothing.
func (p *Process) isIdle(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.activity.set(false)
	return p.activity.write(ctx)
}

// leadCheck is how often a teammate checks whether its lead is there.
const leadCheck = time.Second

var errOrphan = errors.New("the lead of the team is gone")

// watchLead ends the main session when the lead is gone: at once when it has ended in
// order, after the grace when it was killed and does not come back. A turn is interrupted,
// and everything stays as it is, to be resumed. It returns when ctx ends.
func (p *Process) watchLead(ctx context.Context, main *session.Session) {
	check := time.NewTimer(leadCheck)
	defer check.Stop()
	var end time.Time // when the teammate ends; zero while it has a lead
	for {
		select {
		case <-check.C:
		case <-p.seat.Stopping():
			p.stopNow(ctx, main)
			return
		case <-ctx.Done():
			return
		}
		check.Reset(leadCheck)
		present, known, err := p.host.Teams.LeadPresent(ctx, p.seat.Team)
		if err != nil || present || !known {
			end = time.Time{}
			continue
		}
		if end.IsZero() {
			end = time.Now().Add(p.graceNow(ctx))
		}
		if left := time.Until(end); left > 0 {
			check.Reset(min(left, leadCheck))
			continue
		}
		ends, err := p.seat.EndWithoutLead(ctx)
		if err != nil {
			p.host.warn(err) // it is tried again at the next check
		}
		if ends {
			p.host.notify("warning", "the lead did not come back; to go on with the team: cadre team resume "+p.seat.Team)
			_ = main.Close(errOrphan)
			return
		}
	}
}

// graceNow is how long the teammate goes on without its lead, which has just been found
// gone.
func (p *Process) graceNow(ctx context.Context) time.Duration {
	var end roster.LeadEnd
	err := roster.GetRecord(ctx, p.host.Records, p.seat.Team, roster.RecordLeadEnd, p.seat.Team, &end)
	if err == nil {
		return 0
	}
	p.host.warn(fmt.Errorf("the lead of %s is gone; without it this teammate ends in %s, to be resumed later", p.seat.Team, p.orphanGrace))
	return p.orphanGrace
}

// departTime is how long others may lock the files of a team when a teammate leaves it.
const departTime = 3 * time.Second

// stopNow ends the agent at once, and removes it from its team.
func (p *Process) stopNow(ctx context.Context, main *session.Session) {
	_ = main.Close(session.ErrLeave) // the failure to store something was published
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), departTime)
	defer cancel()
	if err := p.seat.Depart(ctx); err != nil {
		p.host.warn(err)
	}
}

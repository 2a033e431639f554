package teammate

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
)

// life is what a teammate does when a turn begins and when it is idle ([session.Life]).
type life struct {
	seat  *team.Seat
	own   *Process // the teammate's, when it has one to itself; else nil
	tasks <-chan struct{}
}

// newLife is the life of a teammate in this process. release is to be called when its
// session has ended.
func (h *Host) newLife(seat *team.Seat) (l *life, release func()) {
	tasks, release := seat.WatchTasks()
	return &life{seat, h.own, tasks}, release
}

// Wake implements [session.Life]: there may be a task to claim.
func (l *life) Wake() <-chan struct{} { return l.tasks }

// Begins implements [session.Life].
func (l *life) Begins() {
	l.own.begins()
	l.seat.Working()
}

// Idle implements [session.Life]: the teammate leaves when it has agreed to shut down, or
// would have to and cannot say so; else it claims an open task; else it notifies the lead
// that it is idle.
func (l *life) Idle(ctx context.Context, last *event.Outcome) (*session.Input, error) {
	if left, err := hasLeft(ctx, l.seat, last); left || err != nil {
		return nil, errors.Join(err, leaving(left))
	}
	if last != nil {
		l.seat.Stall(last.Stalled)
	}
	claimed, ok, err := l.seat.Claim(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim a task: %w", err)
	}
	if ok {
		l.own.isAtWork(ctx)
		in := inputOf(claimed)
		in.Kept = func(ctx context.Context, err error) {
			if err != nil {
				_ = l.seat.GiveBackTasks(ctx) // its model does not know of the task
			}
		}
		return &in, nil
	}
	if last == nil {
		return nil, nil
	}
	l.own.keepUsage(ctx) // before anybody who waits for the teammate reads it
	reason, failure := idleReason(*last)
	// When the roster says that it is idle, its note is in the lead's inbox already.
	return nil, errors.Join(l.seat.NotifyIdle(ctx, reason, failure), l.own.isIdle(ctx))
}

// hasLeft reports whether a teammate has agreed to shut down. When its model
// cannot answer, since its turns fail, its runtime agrees for it.
func hasLeft(ctx context.Context, seat *team.Seat, last *event.Outcome) (bool, error) {
	select {
	case <-seat.Left():
		return true, nil
	default:
	}
	if last == nil || last.Reason != event.Failed {
		return false, nil
	}
	return seat.TurnFailed(ctx)
}

func leaving(left bool) error {
	if left {
		return session.ErrLeave
	}
	return nil
}

func idleReason(o event.Outcome) (reason protocol.IdleReason, failure string) {
	switch o.Reason {
	case event.Interrupted:
		return protocol.IdleInterrupted, ""
	case event.Failed, event.MaxRounds:
		return protocol.IdleFailed, o.Err
	}
	return protocol.Available, ""
}

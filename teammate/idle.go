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

// whenIdle is what a teammate does when it becomes idle: it leaves when it has agreed to
// shut down, or would have to and cannot say so; else it claims an open task; else it
// notifies the lead that it is idle.
func (h *Host) whenIdle(seat *team.Seat) func(context.Context, *event.Outcome) (*session.Input, error) {
	return func(ctx context.Context, last *event.Outcome) (*session.Input, error) {
		if left, err := hasLeft(ctx, seat, last); left || err != nil {
			return nil, errors.Join(err, leaving(left))
		}
		if last != nil {
			seat.Stall(last.Stalled)
		}
		claimed, ok, err := seat.Claim(ctx)
		if err != nil {
			return nil, fmt.Errorf("claim a task: %w", err)
		}
		if ok {
			h.own.isAtWork(ctx)
			in := inputOf(claimed)
			in.Kept = func(ctx context.Context, err error) {
				if err != nil {
					_ = seat.GiveBackTasks(ctx) // nobody would know that it is ours
				}
			}
			return &in, nil
		}
		if last == nil {
			return nil, nil
		}
		reason, failure := idleReason(*last)
		// Whoever finds it idle in the roster finds its note in the lead's inbox.
		return nil, errors.Join(seat.NotifyIdle(ctx, reason, failure), h.own.isIdle(ctx))
	}
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

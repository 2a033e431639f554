package team

import (
	"context"

	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tool"
)

// Waiting reports whether something waits in the caller's team that will start
// a turn of one of its idle agents: mail that is not marked read, or a task that
// a teammate may claim. Without a team nothing does.
func (t *Teams) Waiting(ctx context.Context, by tool.Caller) (bool, error) {
	seat, ok := t.Seat(by)
	if !ok {
		return false, nil
	}
	names := append(t.running(seat.Team), LeadName)
	for _, name := range names {
		at := seat.Address()
		at.Agent = name
		unread, err := t.mail.Unread(ctx, at)
		if err != nil {
			return false, err
		}
		if len(unread) > 0 {
			return true, nil
		}
	}
	list, err := t.tasks.List(ctx, seat.Team)
	if err != nil {
		return false, err
	}
	if task.FirstClaimable(list) < 0 {
		return false, nil
	}
	for _, name := range names[:len(names)-1] {
		if !hasBegun(list, name) {
			return true, nil
		}
	}
	return false, nil
}

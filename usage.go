package cadre

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
)

// Usage is what each agent has used so far, the main session first. It waits
// until every event published before the call has been counted, or ctx ends. Of a teammate
// in a process of its own it has what that process has stored: all but the reply that it
// is getting now.
func (r *Runtime) Usage(ctx context.Context) []event.AgentTally {
	r.tally.Until(r.tree.Stream.Published(), ctx.Done())
	if seat, ok := r.teams.Seat(r.mainCaller()); ok && seat.Lead {
		if err := r.elsewhere.Read(ctx, seat.Team); err != nil {
			r.warn(fmt.Errorf("find out what the team has used: %w", err))
		}
	}
	all := r.elsewhere.AddTo(r.tally.Agents())
	slices.SortStableFunc(all, func(a, b event.AgentTally) int {
		return cmp.Compare(min(len(a.Agent.ID), 1), min(len(b.Agent.ID), 1)) // the main session has no id
	})
	return all
}

// OpenTasks names the task list of the main session, and the tasks on it that are not
// completed, in the order of their ids.
func (r *Runtime) OpenTasks(ctx context.Context) (list string, open []task.Task, err error) {
	all, err := r.teams.Tasks.List(ctx, r.mainCaller())
	open = slices.DeleteFunc(all, func(t task.Task) bool { return t.Status == task.Completed || t.Internal() })
	return r.teams.Tasks.ListOf(r.mainCaller()), open, err
}

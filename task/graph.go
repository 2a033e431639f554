package task

import (
	"fmt"
	"slices"
)

// Blockers lists the ids in t.BlockedBy that block t: those of tasks in the list that are
// not completed. An id that names no task blocks nothing.
func Blockers(list []Task, t Task) []string {
	status := statusIn(list)
	var open []string
	for _, id := range t.BlockedBy {
		if blocks(status, id) {
			open = append(open, id)
		}
	}
	return open
}

// Claimable reports whether anybody may claim t: pending, unassigned, not blocked, and not
// another program's bookkeeping.
func Claimable(list []Task, t Task) bool { return ClaimableIn(statusIn(list), &t) }

// FirstClaimable returns the index of the first claimable task of the list in its order, or
// -1. It is linear in the size of the list.
func FirstClaimable(list []Task) int {
	status := statusIn(list)
	return slices.IndexFunc(list, func(t Task) bool { return ClaimableIn(status, &t) })
}

// ClaimableIn is [Claimable] in a list of any form: status finds a task of it by
// its id. t is not changed.
func ClaimableIn(status func(id string) (Status, bool), t *Task) bool {
	return t.Status == Pending && t.Owner == "" && !t.Internal() &&
		!slices.ContainsFunc(t.BlockedBy, func(id string) bool { return blocks(status, id) })
}

func statusIn(list []Task) func(id string) (Status, bool) {
	status := make(map[string]Status, len(list))
	for _, t := range list {
		status[t.ID] = t.Status
	}
	return func(id string) (Status, bool) { s, ok := status[id]; return s, ok }
}

// blocks reports whether the task with this id blocks those that wait for it.
func blocks(status func(id string) (Status, bool), id string) bool {
	s, ok := status(id)
	return ok && s != Completed
}

// CheckEdges reports a self-dependency, an edge to a task that does not exist,
// or a cycle, that adding the edges to the task with this id would make.
func CheckEdges(list []Task, id string, addBlocks, addBlockedBy []string) error {
	if len(addBlocks)+len(addBlockedBy) == 0 {
		return nil
	}
	index := make(map[string]int, len(list))
	for i, t := range list {
		index[t.ID] = i
	}
	for _, other := range slices.Concat(addBlocks, addBlockedBy) {
		if other == id {
			return fmt.Errorf("task #%s cannot depend on itself: %w", id, ErrCycle)
		}
		if _, ok := index[other]; !ok {
			return fmt.Errorf("task #%s: %w", other, ErrNotFound)
		}
	}
	// blockers maps a task to those that block it, with the new edges.
	blockers := make(map[string][]string, len(list))
	for _, t := range list {
		blockers[t.ID] = slices.Clone(t.BlockedBy)
	}
	blockers[id] = append(blockers[id], addBlockedBy...)
	for _, other := range addBlocks {
		blockers[other] = append(blockers[other], id)
	}
	if path := cycleThrough(blockers, id); path != nil {
		return fmt.Errorf("#%s would wait for itself (%s): %w", id, joinPath(path), ErrCycle)
	}
	return nil
}

// cycleThrough returns a path from id along blockers back to id, or nil.
func cycleThrough(blockers map[string][]string, id string) []string {
	type step struct {
		id   string
		from int
	}
	steps := []step{{id, -1}}
	seen := map[string]bool{}
	for i := 0; i < len(steps); i++ {
		for _, next := range blockers[steps[i].id] {
			if next == id {
				path := []string{id}
				for j := i; j >= 0; j = steps[j].from {
					path = append(path, steps[j].id)
				}
				slices.Reverse(path)
				return path
			}
			if !seen[next] {
				seen[next] = true
				steps = append(steps, step{next, i})
			}
		}
	}
	return nil
}

func joinPath(path []string) string {
	out := ""
	for i, id := range path {
		if i > 0 {
			out += " waits for "
		}
		out += "#" + id
	}
	return out
}

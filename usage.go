package cadre

import (
	"cmp"
	"slices"

	"github.com/cadre-dev/cadre/event"
)

// Usage is what each agent has used so far, the main session first. It waits
// until every event published before the call has been counted.
func (r *Runtime) Usage() []event.AgentTally {
	r.tally.Until(r.tree.Stream.Published(), nil)
	all := r.tally.Agents()
	slices.SortStableFunc(all, func(a, b event.AgentTally) int {
		return cmp.Compare(min(len(a.Agent.ID), 1), min(len(b.Agent.ID), 1)) // the main session has no id
	})
	return all
}

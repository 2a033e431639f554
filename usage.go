package cadre

import (
	"cmp"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/transcript"
)

// AgentUsage is what one agent of the tree has used.
type AgentUsage struct {
	ID, Name, Color string // ID is "" for the main session
	Teammate        bool
	Rounds          int
	ToolCalls       int
	Usage           transcript.Usage
	PerModel        map[string]transcript.Usage
	CostUSD         float64
	CostKnown       bool // false when the price of a model is unknown; CostUSD is then too low
	Took            time.Duration
	APITime         time.Duration
}

// Usage is what each agent has used so far, the main session first. It waits
// until every event published before the call has been counted.
func (r *Runtime) Usage() []AgentUsage {
	r.tally.Until(r.tree.Stream.Last(), nil)
	var all []AgentUsage
	for _, a := range r.tally.Agents() {
		u := AgentUsage{
			ID: a.Agent.ID, Name: a.Agent.Name, Color: a.Agent.Color, Teammate: a.Teammate, Rounds: a.Rounds,
			ToolCalls: a.ToolCalls, PerModel: a.Usage, CostUSD: a.CostUSD, CostKnown: !a.Unpriced,
			Took: a.Took, APITime: a.APITime,
		}
		for _, used := range a.Usage {
			u.Usage = u.Usage.Add(used)
		}
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(a, b AgentUsage) int {
		return cmp.Compare(min(len(a.ID), 1), min(len(b.ID), 1)) // the main session has no id
	})
	return all
}

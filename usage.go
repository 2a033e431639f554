package cadre

import (
	"time"

	"github.com/cadre-dev/cadre/provider"
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
			ToolCalls: a.ToolCalls, PerModel: a.Usage, CostKnown: true, Took: a.Took, APITime: a.APITime,
		}
		for model, used := range a.Usage {
			u.Usage = u.Usage.Add(used)
			usd, known := provider.Cost(model, used)
			u.CostUSD += usd
			u.CostKnown = u.CostKnown && known
		}
		all = append(all, u)
	}
	return all
}

package event

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/transcript"
)

// Tally sums up what each agent of a tree did, from its events.
type Tally struct {
	mu     sync.Mutex
	seen   uint64
	moved  chan struct{} // closed and renewed whenever seen grows
	agents []*AgentTally
	index  map[string]*AgentTally
}

// AgentTally is the sum for one agent.
type AgentTally struct {
	Agent     Agent
	Teammate  bool
	Type      string
	Rounds    int
	ToolCalls int
	Usage     map[string]transcript.Usage // per model
	CostUSD   float64
	Unpriced  bool          // CostUSD is too low
	Took      time.Duration // in turns
	APITime   time.Duration
	Denied    []Denied
	LastText  string // of the last turn that said something
}

// Tokens is every token that went in or out.
func (a AgentTally) Tokens() int {
	n := 0
	for _, u := range a.Usage {
		n += u.Total()
	}
	return n
}

// NewTally makes an empty tally.
func NewTally() *Tally {
	return &Tally{index: make(map[string]*AgentTally), moved: make(chan struct{})}
}

// Fold adds events until the sequence ends.
func (t *Tally) Fold(events iter.Seq[Event]) {
	for ev := range events {
		t.add(ev)
	}
}

func (t *Tally) add(ev Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch body := ev.Body.(type) {
	case AgentStarted:
		a := t.of(ev.Agent)
		a.Teammate, a.Type = body.Teammate, body.Type
	case TurnEnded:
		t.of(ev.Agent).addTurn(body.Outcome)
	}
	t.seen = ev.Seq
	close(t.moved)
	t.moved = make(chan struct{})
}

func (t *Tally) of(agent Agent) *AgentTally {
	a := t.index[agent.ID]
	if a == nil {
		a = &AgentTally{Agent: agent, Usage: make(map[string]transcript.Usage)}
		t.index[agent.ID] = a
		t.agents = append(t.agents, a)
	}
	return a
}

func (a *AgentTally) addTurn(o Outcome) {
	a.Rounds += o.Rounds
	a.ToolCalls += o.ToolCalls
	a.Took += o.Took
	a.APITime += o.APITime
	a.CostUSD += o.CostUSD
	a.Unpriced = a.Unpriced || o.Unpriced
	a.Denied = append(a.Denied, o.Denied...)
	if o.Text != "" {
		a.LastText = o.Text
	}
	for model, u := range o.Usage {
		a.Usage[model] = a.Usage[model].Add(u)
	}
}

// Agents returns the sums, in the order in which the agents appeared.
func (t *Tally) Agents() []AgentTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]AgentTally, len(t.agents))
	for i, a := range t.agents {
		out[i] = a.copy()
	}
	return out
}

// Of returns the sum for the agent with this id ("" for the root session).
func (t *Tally) Of(id string) AgentTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.index[id]; a != nil {
		return a.copy()
	}
	return AgentTally{}
}

func (a *AgentTally) copy() AgentTally {
	c := *a
	c.Usage = maps.Clone(a.Usage)
	c.Denied = slices.Clip(a.Denied)
	return c
}

// Until waits until every event up to seq is in the sums, or stop is closed.
func (t *Tally) Until(seq uint64, stop <-chan struct{}) {
	for {
		t.mu.Lock()
		seen, moved := t.seen, t.moved
		t.mu.Unlock()
		if seen >= seq {
			return
		}
		select {
		case <-moved:
		case <-stop:
			return
		}
	}
}

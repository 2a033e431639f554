package event

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/transcript"
)

// Price is what one request to a model costs in US dollars; known is false when
// the model has no known price. Some models price by the length of the prompt,
// so usages must not be added up before they are priced.
type Price func(model string, usage transcript.Usage) (usd float64, known bool)

// Tally sums up what each agent of a tree did, from its events. It is the only
// place that counts rounds, tokens and money; a turn in progress counts too.
type Tally struct {
	price Price

	mu     sync.Mutex
	seen   uint64
	last   time.Time     // when the newest event happened
	moved  chan struct{} // closed and renewed whenever seen grows
	agents []*AgentTally
	index  map[string]*AgentTally
}

// AgentTally is the sum for one agent.
type AgentTally struct {
	Agent     Agent
	Teammate  bool
	Type      string
	Rounds    int // replies of the model
	ToolCalls int
	Models    map[string]Spending // by model
	Took      time.Duration       // in turns

	// Of the turns that have ended.

	APITime  time.Duration
	Denied   []Denied
	Last     *Outcome // of the newest; nil when none has ended
	LastText string   // of the newest that said something
	// Interruption is the text that the last interruption left in the
	// transcript; "" when there was none.
	Interruption string

	reply string    // id of the reply whose blocks are being stored; "" between replies
	began time.Time // of the turn in progress; zero when there is none
}

// Spending is what requests used and cost.
type Spending struct {
	Usage    transcript.Usage
	CostUSD  float64
	Unpriced bool // the price of a model is unknown: CostUSD is too low
}

// Add sums up two spendings.
func (s Spending) Add(other Spending) Spending {
	return Spending{s.Usage.Add(other.Usage), s.CostUSD + other.CostUSD, s.Unpriced || other.Unpriced}
}

// Spent is what the agent used and cost over all models.
func (a AgentTally) Spent() Spending {
	var sum Spending
	for _, model := range slices.Sorted(maps.Keys(a.Models)) { // in order: floats do not add up the same otherwise
		sum = sum.Add(a.Models[model])
	}
	return sum
}

// Plus adds what another sum, of the same agent in another process, has counted. How
// turns ended stays as it is.
func (a AgentTally) Plus(other AgentTally) AgentTally {
	models := maps.Clone(other.Models)
	for model, spent := range a.Models {
		models[model] = spent.Add(models[model])
	}
	a.Models = models
	a.Rounds += other.Rounds
	a.ToolCalls += other.ToolCalls
	a.Took += other.Took
	a.APITime += other.APITime
	return a
}

// NewTally makes an empty tally of requests that cost what price says.
func NewTally(price Price) *Tally {
	return &Tally{price: price, index: make(map[string]*AgentTally), moved: make(chan struct{})}
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
	case TurnStarted:
		t.of(ev.Agent).began = ev.At
	case Stored:
		t.of(ev.Agent).addEntry(body.Entry, t.price)
	case TurnEnded:
		t.of(ev.Agent).endTurn(body.Outcome)
	}
	t.seen, t.last = ev.Seq, ev.At
	close(t.moved)
	t.moved = make(chan struct{})
}

func (t *Tally) of(agent Agent) *AgentTally {
	a := t.index[agent.ID]
	if a == nil {
		a = &AgentTally{Agent: agent, Models: make(map[string]Spending)}
		t.index[agent.ID] = a
		t.agents = append(t.agents, a)
	}
	return a
}

// addEntry counts a reply when its first block is stored: every block is an
// entry of its own, and each carries the usage of the whole reply.
func (a *AgentTally) addEntry(e transcript.Entry, price Price) {
	m := e.Message
	if e.Kind != transcript.KindAssistant {
		a.reply = "" // some servers give every reply the same id
		if mark := m.Interruption(); mark != "" {
			a.Interruption = mark
		}
		return
	}
	a.ToolCalls += len(m.ToolUses())
	if a.reply != "" && a.reply == m.ID {
		return
	}
	a.reply = m.ID
	a.Rounds++
	usd, known := price(m.Model, m.Usage)
	a.Models[m.Model] = a.Models[m.Model].Add(Spending{m.Usage, usd, !known})
}

func (a *AgentTally) endTurn(o Outcome) {
	a.reply, a.began = "", time.Time{}
	a.Took += o.Took
	a.APITime += o.APITime
	a.Denied = append(a.Denied, o.Denied...)
	a.Last = &o
	if o.Text != "" {
		a.LastText = o.Text
	}
}

// Agents returns the sums, in the order in which the agents appeared.
func (t *Tally) Agents() []AgentTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]AgentTally, len(t.agents))
	for i, a := range t.agents {
		out[i] = t.copy(a)
	}
	return out
}

// Of returns the sum for the agent with this id ("" for the root session).
func (t *Tally) Of(id string) AgentTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.index[id]; a != nil {
		return t.copy(a)
	}
	return AgentTally{}
}

// copy is the sum as it is now: a turn in progress has taken the time up to the
// newest event.
func (t *Tally) copy(a *AgentTally) AgentTally {
	c := *a
	c.Models = maps.Clone(a.Models)
	c.Denied = slices.Clip(a.Denied)
	if !a.began.IsZero() {
		c.Took += t.last.Sub(a.began)
	}
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

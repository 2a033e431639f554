package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ctxlock"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/transcript"
)

// usageRecord is what a teammate and its sub-agents have used in processes of their own,
// all of them together. What a teammate uses inside its lead's process is not in it: the
// lead counts that itself.
type usageRecord struct {
	Name   string       `json:"name"`
	Agents []agentUsage `json:"agents"`
}

// agentUsage is what one agent of a process has used.
type agentUsage struct {
	ID        string              `json:"id,omitempty"` // "": the teammate itself
	Name      string              `json:"name,omitempty"`
	Type      string              `json:"type,omitempty"`
	Color     string              `json:"color,omitempty"`
	Rounds    int                 `json:"rounds"`
	ToolCalls int                 `json:"toolCalls"`
	Models    map[string]spending `json:"models"`
	Took      time.Duration       `json:"tookNs"`
	APITime   time.Duration       `json:"apiTimeNs"`
}

// spending is [event.Spending] as it is stored.
type spending struct {
	Usage    transcript.Usage `json:"usage"`
	CostUSD  float64          `json:"costUsd"`
	Unpriced bool             `json:"unpriced,omitempty"`
}

// plus is the sum of u and what was used beside it; sign -1 takes other away from u.
func (u agentUsage) plus(sign int, other agentUsage) agentUsage {
	models := make(map[string]spending)
	for model, s := range u.Models {
		models[model] = s
	}
	for model, o := range other.Models {
		s := event.Spending(models[model]).Add(event.Spending{
			Usage: transcript.Usage{
				InputTokens: sign * o.Usage.InputTokens, OutputTokens: sign * o.Usage.OutputTokens,
				CacheCreationInputTokens: sign * o.Usage.CacheCreationInputTokens,
				CacheReadInputTokens:     sign * o.Usage.CacheReadInputTokens,
			},
			CostUSD: float64(sign) * o.CostUSD, Unpriced: o.Unpriced,
		})
		if models[model] = spending(s); s.Usage == (transcript.Usage{}) {
			delete(models, model)
		}
	}
	u.Models = models
	u.Rounds += sign * other.Rounds
	u.ToolCalls += sign * other.ToolCalls
	u.Took += time.Duration(sign) * other.Took
	u.APITime += time.Duration(sign) * other.APITime
	return u
}

// combined adds (sign 1) or takes away (sign -1), agent by agent, what others say.
func combined(all []agentUsage, sign int, others []agentUsage) []agentUsage {
	all = slices.Clone(all)
	for _, o := range others {
		i := slices.IndexFunc(all, func(u agentUsage) bool { return u.ID == o.ID })
		if i < 0 {
			i, all = len(all), append(all, agentUsage{ID: o.ID, Name: o.Name, Type: o.Type, Color: o.Color})
		}
		all[i] = all[i].plus(sign, o)
	}
	return all
}

// ownUsage stores what a teammate's process has used, for its lead to read.
type ownUsage struct {
	lock   ctxlock.Mutex // guards what follows
	loaded bool
	before []agentUsage // by earlier processes of the teammate
	stored int          // the rounds of this process in what is stored
	failed bool         // the last attempt has, and the person knows
}

// keepUsage stores what this process has used up to now, unless it has made no request
// since it last did. A failure is shown once and holds nothing up: the figures are stored
// with the next ones.
func (p *Process) keepUsage(ctx context.Context) {
	if p == nil || p.host.Tally == nil {
		return
	}
	u := &p.usage
	if u.lock.Lock(ctx) != nil {
		return
	}
	defer u.lock.Unlock()
	p.host.Tally.Until(p.host.Tree.Stream.Published(), ctx.Done())
	rounds, record := 0, usageRecord{Name: p.seat.Name}
	for _, a := range p.host.Tally.Agents() {
		rounds += a.Rounds
		record.Agents = append(record.Agents, usageOf(a))
	}
	if rounds == u.stored {
		return
	}
	err := p.loadUsage(ctx)
	if err == nil {
		record.Agents = combined(record.Agents, 1, u.before)
		err = roster.PutRecord(ctx, p.host.Records, p.seat.Team, roster.RecordUsage, p.seat.Name, record)
	}
	switch {
	case err == nil:
		u.stored, u.failed = rounds, false
	case ctx.Err() == nil && !u.failed && !errors.Is(err, roster.ErrNotFound):
		u.failed = true
		p.host.warn(fmt.Errorf("store what this teammate has used: %w", err))
	}
}

// loadUsage reads, once, what earlier processes of the teammate have used.
func (p *Process) loadUsage(ctx context.Context) error {
	u := &p.usage
	if u.loaded {
		return nil
	}
	var record usageRecord
	err := roster.GetRecord(ctx, p.host.Records, p.seat.Team, roster.RecordUsage, p.seat.Name, &record)
	if err != nil && !errors.Is(err, roster.ErrNoRecord) {
		return err
	}
	u.loaded, u.before = true, record.Agents
	return nil
}

func usageOf(a event.AgentTally) agentUsage {
	u := agentUsage{
		ID: a.Agent.ID, Name: a.Agent.Name, Type: a.Type, Color: a.Agent.Color, Rounds: a.Rounds, ToolCalls: a.ToolCalls,
		Models: make(map[string]spending), Took: a.Took, APITime: a.APITime,
	}
	for model, s := range a.Models {
		u.Models[model] = spending(s)
	}
	return u
}

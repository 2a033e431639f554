package teammate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/roster"
)

// UsageElsewhere is what teammates in processes of their own have used since their lead's
// process began, also those that have left, and those of teams that are gone. It is
// read from what their processes have stored. Its methods may be called from any
// goroutine.
type UsageElsewhere struct {
	records roster.Records
	lead    string // id of the lead's session

	mu    sync.Mutex // guards what follows; never held across I/O
	teams []*teamUsage
}

// teamUsage is what is known of a team.
type teamUsage struct {
	name   string
	before map[string][]agentUsage // used before the lead's process began, by teammate
	now    []usageRecord           // as last read
	ended  bool                    // the team is gone; another may get its name
}

// NewUsageElsewhere makes one for the teams of a lead, whose session has this id.
func NewUsageElsewhere(records roster.Records, lead string) *UsageElsewhere {
	return &UsageElsewhere{records: records, lead: lead}
}

// Begin says that a resumed lead takes over a team: what its teammates have used up to
// now does not count.
func (u *UsageElsewhere) Begin(ctx context.Context, team string) error {
	records, err := roster.AllRecords[usageRecord](ctx, u.records, team, roster.RecordUsage)
	t := u.team(team)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range records {
		t.before[r.Name] = r.Agents
	}
	return err
}

// End reads for the last time what is stored of a team, which is about to be removed.
func (u *UsageElsewhere) End(ctx context.Context, team string) error {
	err := u.Read(ctx, team)
	t := u.team(team)
	u.mu.Lock()
	defer u.mu.Unlock()
	t.ended = true
	return err
}

// Read reads what is stored of a team. After an error, and of a team that is gone, what
// was read before stays.
func (u *UsageElsewhere) Read(ctx context.Context, team string) error {
	records, err := roster.AllRecords[usageRecord](ctx, u.records, team, roster.RecordUsage)
	if errors.Is(err, roster.ErrNotFound) {
		return nil
	}
	t := u.team(team)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range records {
		if i := slices.IndexFunc(t.now, func(old usageRecord) bool { return old.Name == r.Name }); i >= 0 {
			t.now[i] = r
		} else {
			t.now = append(t.now, r)
		}
	}
	return err
}

// team is what is known of a team that there is, from now on something.
func (u *UsageElsewhere) team(name string) *teamUsage {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, t := range u.teams {
		if t.name == name && !t.ended {
			return t
		}
	}
	t := &teamUsage{name: name, before: make(map[string][]agentUsage)}
	u.teams = append(u.teams, t)
	return t
}

// AddTo adds what was last read to the sums of the agents in the lead's process. A
// teammate that has worked in both is listed once.
func (u *UsageElsewhere) AddTo(all []event.AgentTally) []event.AgentTally {
	u.mu.Lock()
	defer u.mu.Unlock()
	all = slices.Clone(all)
	for _, t := range u.teams {
		for _, r := range t.now {
			for _, a := range combined(r.Agents, -1, t.before[r.Name]) {
				if a.Rounds > 0 {
					all = u.add(all, t.name, r.Name, a)
				}
			}
		}
	}
	return all
}

// add adds what an agent of a teammate's process has used.
func (u *UsageElsewhere) add(all []event.AgentTally, team, mate string, a agentUsage) []event.AgentTally {
	itself := a.ID == ""
	sum := event.AgentTally{
		Agent: event.Agent{Session: u.lead, ID: a.ID, Name: a.Name, Color: a.Color}, Teammate: itself, Type: a.Type,
		Rounds: a.Rounds, ToolCalls: a.ToolCalls, Models: make(map[string]event.Spending), Took: a.Took, APITime: a.APITime,
	}
	for model, s := range a.Models {
		sum.Models[model] = event.Spending(s)
	}
	if itself {
		sum.Agent.ID, sum.Agent.Name = roster.AgentID(mate, team), mate
	}
	here := slices.IndexFunc(all, func(other event.AgentTally) bool {
		return itself && other.Teammate && strings.EqualFold(other.Agent.Name, mate)
	})
	if here < 0 {
		return append(all, sum)
	}
	all[here] = all[here].Plus(sum)
	return all
}

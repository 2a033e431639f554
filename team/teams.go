package team

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tool"
)

// Options is what the teams of a process stand on.
type Options struct {
	Store   Store
	Mail    mailbox.Store
	Tasks   task.Store
	Backend Backend // nil: no teammate can be started

	Seals    mailbox.Seals
	Records  Records
	Presence Presence
	Policy   Policy

	// Publish tells what happened: by names the agent that did it, with its
	// root session. It must neither block nor call the Teams. nil: nobody listens.
	Publish func(by event.Agent, body event.Body)
}

// Policy is what the person has decided about how teams work.
type Policy struct {
	// PlanApproval is who approves a teammate's plan: "auto" (the lead's runtime,
	// at once), "lead" (its model) or "person".
	PlanApproval string
	// TrustUnsigned takes permission answers without a seal from a lead that is
	// another program.
	TrustUnsigned bool
}

// Teams is the teams of this process. Its methods may be called from any
// goroutine.
type Teams struct {
	store   Store
	mail    mailbox.Store
	tasks   task.Store
	backend Backend
	publish func(by event.Agent, body event.Body)
	ledger  ledger

	mu    sync.Mutex // guards what follows; never held across I/O
	crews map[string]*crew
	leads map[string]*lead
}

// crew is what this process knows of a team beyond its roster.
type crew struct {
	leadSession string
	mates       map[string]*Seat // the teammates that run in this process
	colors      int              // given so far; never goes back
	departures  map[string]*departure

	changes int // of the roster, by this process
	told    int // the newest change that was published
}

// lead is what a main session leads.
type lead struct {
	seat    *Seat         // nil: no team
	notes   []Mail        // for its inbox, from the runtime
	inbox   *Inbox        // nil while nobody reads
	changed chan struct{} // closed, and made anew, when seat or notes change
}

// New makes the teams of a process, with none known yet.
func New(o Options) *Teams {
	publish := o.Publish
	if publish == nil {
		publish = func(event.Agent, event.Body) {}
	}
	return &Teams{
		store: o.Store, mail: o.Mail, tasks: o.Tasks, backend: o.Backend, publish: publish,
		crews: make(map[string]*crew), leads: make(map[string]*lead),
	}
}

// Reopen finds the team that a resumed main session leads, by the session's id
// in the rosters. It returns the teammates on its roster that do not run in
// this process: whoever is not started again must be reported to [Teams.Gone].
// ok is false when the session leads none.
func (t *Teams) Reopen(ctx context.Context, by tool.Caller) (absent []Member, ok bool, err error) {
	configs, err := t.store.List(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("find the team of session %s: %w", by.SessionID, err)
	}
	at := slices.IndexFunc(configs, func(c Config) bool { return c.LeadSessionID == by.SessionID })
	if by.SessionID == "" || at < 0 {
		return nil, false, nil
	}
	config := &configs[at]
	t.takeLead(config)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range config.Teammates() {
		if t.crews[config.Name].mates[m.Name] == nil {
			absent = append(absent, m)
		}
	}
	return absent, true, nil
}

// takeLead seats the lead of a team that its session has created or found.
func (t *Teams) takeLead(c *Config) *Seat {
	seat := newSeat(t, c.Name, LeadName, c.LeadSessionID)
	seat.Lead = true
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[c.Name]
	if !ok {
		crew = newCrew()
		t.crews[c.Name] = crew
	}
	crew.leadSession = c.LeadSessionID
	crew.colors = max(crew.colors, colorsGiven(c))
	l := t.leadOf(c.LeadSessionID)
	l.seat = seat
	l.change()
	return seat
}

func newCrew() *crew {
	return &crew{mates: make(map[string]*Seat), departures: make(map[string]*departure)}
}

// leadOf returns what is known of a main session; t.mu is held.
func (t *Teams) leadOf(session string) *lead {
	l, ok := t.leads[session]
	if !ok {
		l = &lead{changed: make(chan struct{})}
		t.leads[session] = l
	}
	return l
}

// change wakes whoever waits for a change; t.mu is held.
func (l *lead) change() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Seat returns the caller's place in a team: a teammate's own, or that of the
// main session as a lead. Sub-agents have none.
func (t *Teams) Seat(by tool.Caller) (*Seat, bool) {
	if by.Depth > 0 {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if by.Team != "" {
		if crew, ok := t.crews[by.Team]; ok {
			seat, ok := crew.mates[by.AgentName]
			return seat, ok
		}
		return nil, false
	}
	if l, ok := t.leads[by.SessionID]; ok && l.seat != nil {
		return l.seat, true
	}
	return nil, false
}

// teamOf is the team that the caller works for, also as a sub-agent.
func (t *Teams) teamOf(by tool.Caller) (string, bool) {
	if by.Team != "" {
		return by.Team, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.leads[by.SessionID]; ok && l.seat != nil {
		return l.seat.Team, true
	}
	return "", false
}

// TaskList names the caller's task list: its team's, else its session's own.
func (t *Teams) TaskList(by tool.Caller) string {
	if team, ok := t.teamOf(by); ok {
		return team
	}
	return by.SessionID
}

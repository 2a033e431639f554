package team

import (
	"context"
	"sync"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// Options is what the teams of a process stand on.
type Options struct {
	Store   roster.Store // taken as it is when it is a [*roster.RepairingStore], else made one
	Mail    mailbox.Store
	Tasks   task.Store
	Backend Backend // nil: no teammate can be started

	Seals    mailbox.Seals // vouch for what our own runtimes post
	Records  roster.Records
	Presence roster.Presence
	Policy   Policy

	// Mode is the permission mode that the lead of this process is in now; nil:
	// "default". Plans that are approved are carried out in it.
	Mode func() string
	// Relay puts a teammate's question before whoever may answer it, and returns;
	// answer is called later, or at once. See [Relay]. nil: nobody can be asked.
	Relay Relay
	// Withdrawn says that a relayed question needs no answer any more, also one that
	// an earlier process has relayed. It may be called from any goroutine, may take
	// as long as a store does, and may come before Relay returns.
	Withdrawn func(ctx context.Context, askID string)
	// Answered delivers the lead's answer to a question of a teammate of this
	// process ([Questions.Ask]) to the session that asked. After ErrUnknown and
	// ErrAnswered of package ask nothing waits for it any more; after any other error
	// it is delivered again.
	Answered func(ctx context.Context, who mailbox.Address, askID string, answer ask.Answer) error

	// Conversed reports whether anything was kept of a teammate's conversation. nil:
	// a record that names one is taken at its word.
	Conversed func(ctx context.Context, r roster.AgentRecord) (bool, error)
	// Shown lists the receipts of the mail that stands in a teammate's conversation,
	// as [Teams.Inbox] takes them. It may be marked unread still when the teammate was
	// killed. nil: nothing is known of it.
	Shown func(ctx context.Context, r roster.AgentRecord) ([]mailbox.ID, error)

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
	store    *roster.RepairingStore
	mail     mailbox.Store
	tasks    task.Store
	backend  Backend
	publish  func(by event.Agent, body event.Body)
	seals    mailbox.Seals
	records  roster.Records
	presence roster.Presence
	options  Options // as they were given, with defaults for what was left out
	changes  pulse   // of what agents do, and of who is there
	waits    waits   // of agents for each other
	posted   posted  // what this process has posted

	mu    sync.Mutex // guards what follows; never held across I/O
	crews map[string]*crew
	leads map[string]*lead
}

// crew is what this process knows of a team beyond its roster.
type crew struct {
	leadSession string
	founded     bool             // our own runtime leads it ([roster.Founding])
	mates       map[string]*Seat // the teammates that this process started, or is
	leave       func() error     // gives up the lead's place; nil when another process leads
	colors      int              // given so far; never goes back
	departures  map[string]*departure

	changes   int // of the roster, by this process
	published int // the newest change that was published
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
	if o.Publish == nil {
		o.Publish = func(event.Agent, event.Body) {}
	}
	if o.Mode == nil {
		o.Mode = func() string { return protocol.ModeDefault }
	}
	if o.Withdrawn == nil {
		o.Withdrawn = func(context.Context, string) {}
	}
	rosters, ok := o.Store.(*roster.RepairingStore)
	if !ok {
		rosters = roster.NewRepairingStore(o.Store, o.Records)
	}
	return &Teams{
		store: rosters, mail: o.Mail, tasks: o.Tasks, backend: o.Backend,
		seals: o.Seals, records: o.Records, presence: o.Presence, publish: o.Publish, options: o,
		crews: make(map[string]*crew), leads: make(map[string]*lead),
	}
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

// updateRoster changes a roster and tells of it. Of changes that are made at the
// same time, an older one is not told after a newer one.
func (t *Teams) updateRoster(ctx context.Context, team string, by event.Agent, change func(*roster.Roster) error) (roster.Roster, error) {
	var turn int
	config, err := t.store.Update(ctx, team, func(c *roster.Roster) error {
		if err := change(c); err != nil {
			return err
		}
		turn = t.countChange(team)
		return nil
	})
	if err != nil {
		return roster.Roster{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[team]; ok && turn > crew.published {
		crew.published = turn
		t.publish(by, event.TeamChanged{Team: team, Members: rosterOf(config)})
	}
	return config, nil
}

// countChange numbers a change of a roster, while the store's lock is held.
func (t *Teams) countChange(team string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[team]
	if !ok {
		return 0
	}
	crew.changes++
	return crew.changes
}

// rosterOf is a roster as events carry it.
func rosterOf(c roster.Roster) []event.Member {
	members := make([]event.Member, len(c.Members))
	for i, m := range c.Members {
		members[i] = event.Member{
			Name: m.Name, AgentType: m.AgentType, Model: m.Model, Color: m.Color, Backend: m.BackendType,
			Lead: m.AgentID == c.LeadAgentID,
		}
	}
	return members
}

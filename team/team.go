package team

import (
	"context"
	"errors"

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
	Store   roster.Store // made a [*roster.RepairingStore] unless it is one
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

	// Conversed reports whether anything was stored of a teammate's conversation. nil:
	// it exists when the record names one.
	Conversed func(ctx context.Context, r roster.AgentRecord) (bool, error)
	// Shown lists the receipts of the mail that stands in a teammate's conversation,
	// as [Teams.Inbox] takes them. It may be marked unread still when the teammate was
	// killed. nil: none is known.
	Shown func(ctx context.Context, r roster.AgentRecord) ([]mailbox.ID, error)

	// Removing is called before what is stored of a team that its lead deletes is
	// removed. An error of it keeps nothing from being removed. nil: nobody cares.
	Removing func(ctx context.Context, team string) error

	// Publish is called with what happened; by names the agent that did it, with its
	// root session. It must neither block nor call the Teams. nil: nobody listens.
	Publish func(by event.Agent, body event.Body)
}

// Policy is what the person has decided about how teams work.
type Policy struct {
	// PlanApproval is who approves a teammate's plan: "auto" (the lead's runtime,
	// at once), "lead" (its model) or "person". While the lead is in plan mode it is a
	// person in any case.
	PlanApproval string
	// TrustUnsigned takes permission answers without a seal from a lead that is
	// another program.
	TrustUnsigned bool
}

// Teams is the teams of this process: every act of a lead, and the way into a team for
// its teammates. What each agent may do in its team is a [Seat], its mail an [Inbox],
// the task lists are [Tasks]. Its methods may be called from any goroutine.
type Teams struct {
	Tasks *Tasks

	options    Options // with defaults for what was left out
	crews      *crews
	members    *members
	outbox     *outbox
	verifier   *verifier
	departures *departures
	changes    broadcast // of what agents do, and of who is there
	waits      waits     // of agents for each other
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
	if o.Removing == nil {
		o.Removing = func(context.Context, string) error { return nil }
	}
	rosters, ok := o.Store.(*roster.RepairingStore)
	if !ok {
		rosters = roster.NewRepairingStore(o.Store, o.Records)
	}
	t := &Teams{options: o, crews: newCrews()}
	t.members = &members{
		rosters: rosters, records: o.Records, presence: o.Presence, mail: o.Mail, crews: t.crews, publish: o.Publish,
	}
	t.outbox = &outbox{mail: o.Mail, seals: o.Seals, members: t.members, publish: o.Publish}
	t.verifier = &verifier{seals: o.Seals, members: t.members, trustUnsigned: o.Policy.TrustUnsigned}
	t.Tasks = &Tasks{store: o.Tasks, records: o.Records, crews: t.crews, changes: newTaskChanges(o.Publish)}
	t.departures = &departures{
		crews: t.crews, members: t.members, outbox: t.outbox, verifier: t.verifier,
		tasks: o.Tasks, backend: o.Backend, changes: &t.changes, taskChanges: t.Tasks.changes, shown: o.Shown,
	}
	return t
}

// Seat returns the caller's place in a team: a teammate's own, or that of the
// main session as a lead. Sub-agents have none.
func (t *Teams) Seat(by tool.Caller) (*Seat, bool) { return t.crews.seat(by) }

// LeadPresent reports whether a process leads the team. known is false when the
// lead is another program, which takes no place: only when its
// roster is gone, that is known.
func (t *Teams) LeadPresent(ctx context.Context, team string) (present, known bool, err error) {
	return t.members.leadPresent(ctx, team)
}

// Present reports whether a process reads an agent's mail: the agent's own, or
// for one that runs inside its lead's process that. known is false when it is
// another program's, which takes no place. It says nothing about who is on the
// roster: a teammate that is not on it is known not to be present.
func (t *Teams) Present(ctx context.Context, who mailbox.Address) (present, known bool, err error) {
	return t.members.present(ctx, who)
}

// Signs reports whether an agent's program is ours, which seals what it posts and
// shows its questions on the desk.
func (t *Teams) Signs(ctx context.Context, who mailbox.Address) (bool, error) {
	return t.members.isOurs(ctx, who)
}

// Close gives up the places of this process, as its end would: the teams stay as
// they are, to be resumed. Nothing of the Teams may be used after it.
func (t *Teams) Close() error {
	var errs []error
	for _, release := range t.crews.detachReleases() {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

package team_test

import (
	"context"
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

// world is the teams of a process, over stores in memory and a backend that only
// remembers.
type world struct {
	*team.Teams
	kept    *memstore.Store
	rosters *rosters
	mails   *mails
	lists   *lists
	seals   *seals
	backend *backend
	events  *events
	policy  team.Policy
	shown   map[string][]mailbox.ID // by session: what its conversation shows

	// apart says that each teammate has a process, that is Teams, of its own.
	apart bool
	mates map[string]*team.Teams
}

func newWorld() *world {
	kept := memstore.New()
	w := &world{
		kept:    kept,
		mates:   make(map[string]*team.Teams),
		rosters: &rosters{Store: kept.Teams()},
		mails:   &mails{Store: kept.Mail(), failPost: make(map[string]error)},
		lists:   &lists{Store: kept.Tasks()},
		seals:   &seals{Seals: kept.Seals()},
		backend: &backend{},
		events:  &events{},
	}
	w.restart()
	return w
}

// restart ends the process of the lead, with the teammates that run in it, and
// makes its teams anew over the same stores.
func (w *world) restart() {
	if w.Teams != nil {
		_ = w.Close()
	}
	w.Teams = w.process(w.backend)
}

// process makes the teams of a process.
func (w *world) process(b team.Backend) *team.Teams {
	return team.New(team.Options{
		Store: w.rosters, Mail: w.mails, Tasks: w.lists, Backend: b, Publish: w.events.publish,
		Seals: w.seals, Records: w.kept.Records(), Presence: w.kept.Presence(), Policy: w.policy,
		Shown: func(_ context.Context, r roster.AgentRecord) ([]mailbox.ID, error) { return w.shown[r.SessionID], nil },
	})
}

// start makes a world with the team alpha and these teammates.
type start func(t *testing.T, mates ...string) *world

// overWorlds runs a test with teammates that run in their lead's process, and
// with teammates that have one each.
func overWorlds(t *testing.T, test func(t *testing.T, alpha start)) {
	t.Helper()
	t.Run("in-process", func(t *testing.T) { test(t, alphaTeam) })
	t.Run("apart", func(t *testing.T) { test(t, apartTeam) })
}

// apartTeam is [alphaTeam] with a process for each teammate.
func apartTeam(t *testing.T, mates ...string) *world {
	t.Helper()
	w := newWorld()
	w.apart, w.backend.kind = true, "tmux"
	w.backend.join = func(s team.Spawn) error { return w.startProcess(t, s.Member.Name) }
	w.backend.end = func(who mailbox.Address) { w.endProcess(t, who.Agent) }
	w.form(t, mates)
	return w
}

// startProcess makes the process of a teammate.
func (w *world) startProcess(t *testing.T, name string) error {
	process := w.process(nil)
	if _, err := process.Join(t.Context(), mate(name)); err != nil {
		return err
	}
	w.mates[name] = process
	return nil
}

// endProcess ends the process of a teammate, if it has one.
func (w *world) endProcess(t *testing.T, name string) {
	if process := w.mates[name]; process != nil {
		delete(w.mates, name)
		if err := process.Close(); err != nil {
			t.Error(err)
		}
	}
}

// gone ends a teammate and tells the lead.
func (w *world) gone(t *testing.T, name, why string) {
	t.Helper()
	w.endProcess(t, name)
	if err := w.Gone(t.Context(), mailbox.Address{Team: "alpha", Agent: name}, why); err != nil {
		t.Fatal(err)
	}
}

// at is the process that a caller runs in.
func (w *world) at(by tool.Caller) *team.Teams {
	if process := w.mates[by.AgentName]; process != nil && by.Team != "" {
		return process
	}
	return w.Teams
}

// Seat, Inbox, UpdateTask and Waiting are called in the caller's own process.
func (w *world) Seat(by tool.Caller) (*team.Seat, bool) { return w.at(by).Seat(by) }

func (w *world) Inbox(by tool.Caller, shown []mailbox.ID) (*team.Inbox, bool) {
	return w.at(by).Inbox(by, shown)
}

func (w *world) UpdateTask(ctx context.Context, by tool.Caller, id string, c task.Change) (task.Outcome, error) {
	return w.at(by).Tasks.Update(ctx, by, id, c)
}

// leader is the main session of every test, and alpha the team it leads.
var leader = tool.Caller{SessionID: "session-1", Model: "model-1", Cwd: "/project"}

// alphaTeam is a world with the team alpha and these teammates.
func alphaTeam(t *testing.T, mates ...string) *world {
	t.Helper()
	w := newWorld()
	w.form(t, mates)
	return w
}

// form makes the team alpha.
func (w *world) form(t *testing.T, mates []string) {
	t.Helper()
	if _, err := w.Create(t.Context(), leader, "alpha", "", ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range mates {
		w.spawn(t, name)
	}
}

func (w *world) spawn(t *testing.T, name string) roster.Member {
	t.Helper()
	spawned, err := w.Spawn(t.Context(), leader, team.SpawnRequest{
		Name: name, AgentType: "general-purpose", Prompt: "Do it.", Description: "the work",
	})
	if err != nil {
		t.Fatal(err)
	}
	return spawned.Member
}

func mate(name string) tool.Caller {
	return tool.Caller{SessionID: leader.SessionID, AgentID: "a" + name, AgentName: name, Team: "alpha"}
}

// caller is a member of alpha.
func (w *world) caller(name string) tool.Caller {
	if name == mailbox.LeadName {
		return leader
	}
	return mate(name)
}

// seat is the seat of a member of alpha.
func (w *world) seat(t *testing.T, name string) *team.Seat {
	t.Helper()
	seat, ok := w.Seat(w.caller(name))
	if !ok {
		t.Fatalf("%s has no seat", name)
	}
	return seat
}

func (w *world) inbox(t *testing.T, by tool.Caller, shown ...mailbox.ID) *team.Inbox {
	t.Helper()
	in, ok := w.Inbox(by, shown)
	if !ok {
		t.Fatalf("no inbox for %+v", by)
	}
	t.Cleanup(in.Close)
	return in
}

// next takes in what waits; the test must know that something does.
func next(t *testing.T, in *team.Inbox) []team.Mail {
	t.Helper()
	mails, err := in.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mails
}

// send posts plain mail from one member of alpha to another.
func (w *world) send(t *testing.T, from, to, text string) {
	t.Helper()
	if _, err := w.seat(t, from).Send(t.Context(), to, text, "about "+text); err != nil {
		t.Fatal(err)
	}
}

// mailOf is the whole inbox of a member of alpha.
func (w *world) mailOf(t *testing.T, name string) []mailbox.Message {
	t.Helper()
	all, err := w.mails.All(t.Context(), mailbox.Address{Team: "alpha", Agent: name})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// names lists who is on the roster of alpha.
func (w *world) names(t *testing.T) []string {
	t.Helper()
	config, err := w.rosters.Load(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range config.Members {
		names = append(names, m.Name)
	}
	return names
}

// tasks is the list of alpha.
func (w *world) tasks(t *testing.T) []task.Task {
	t.Helper()
	all, err := w.lists.List(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// texts lists the texts of mail.
func texts(mails []team.Mail) []string {
	var all []string
	for _, m := range mails {
		all = append(all, m.Text)
	}
	return all
}

func mailIDs(mails []team.Mail) []mailbox.ID {
	var all []mailbox.ID
	for _, m := range mails {
		all = append(all, m.IDs...)
	}
	return all
}

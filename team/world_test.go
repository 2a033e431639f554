package team_test

import (
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

// world is the teams of a process, over stores in memory and a backend that only
// remembers.
type world struct {
	*team.Teams
	rosters *rosters
	mails   *mails
	lists   *lists
	backend *backend
	events  *events
}

func newWorld() *world {
	kept := memstore.New()
	w := &world{
		rosters: &rosters{Store: kept.Teams()},
		mails:   &mails{Store: kept.Mail(), failPost: make(map[string]error)},
		lists:   &lists{Store: kept.Tasks()},
		backend: &backend{},
		events:  &events{},
	}
	w.restart()
	return w
}

// restart makes the teams anew over the same stores, as a new process would.
func (w *world) restart() {
	w.Teams = team.New(team.Options{
		Store: w.rosters, Mail: w.mails, Tasks: w.lists, Backend: w.backend, Publish: w.events.publish,
	})
}

// leader is the main session of every test, and alpha the team it leads.
var leader = tool.Caller{SessionID: "session-1", Model: "model-1", Cwd: "/project"}

// alphaTeam is a world with the team alpha and these teammates.
func alphaTeam(t *testing.T, mates ...string) *world {
	t.Helper()
	w := newWorld()
	if _, err := w.Create(t.Context(), leader, "alpha", "", ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range mates {
		w.spawn(t, name)
	}
	return w
}

func (w *world) spawn(t *testing.T, name string) team.Member {
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

// seat is the seat of a member of alpha.
func (w *world) seat(t *testing.T, name string) *team.Seat {
	t.Helper()
	by := mate(name)
	if name == team.LeadName {
		by = leader
	}
	seat, ok := w.Seat(by)
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

func ids(mails []team.Mail) []mailbox.ID {
	var all []mailbox.ID
	for _, m := range mails {
		all = append(all, m.IDs...)
	}
	return all
}

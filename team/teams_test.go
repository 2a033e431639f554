package team_test

import (
	"errors"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

func TestCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // for the time
		w := newWorld()
		if _, err := w.lists.Create(t.Context(), "alpha", task.Task{Subject: "left over"}); err != nil {
			t.Fatal(err)
		}
		created, err := w.Create(t.Context(), leader, " alpha ", "Test team", "")
		if err != nil {
			t.Fatal(err)
		}
		const now = 946684800000 // midnight, 1 January 2000: where synctest begins
		want := roster.Roster{
			Name: "alpha", Description: "Test team", CreatedAt: now, LeadAgentID: "team-lead@alpha", LeadSessionID: "session-1",
			Members: []roster.Member{{
				AgentID: "team-lead@alpha", Name: "team-lead", AgentType: "team-lead", Model: "model-1", JoinedAt: now,
				Cwd: "/project", Subscriptions: []string{},
			}},
		}
		if created.Name != "alpha" {
			t.Errorf("created %q", created.Name)
		}
		kept, err := w.rosters.Load(t.Context(), "alpha")
		if err != nil {
			t.Fatal(err)
		}
		ignoreExtra := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Extra" }, cmp.Ignore())
		if diff := cmp.Diff(want, kept, ignoreExtra); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		if left := w.tasks(t); len(left) > 0 {
			t.Errorf("the task list was not emptied: %v", left)
		}
		want1 := []event.TeamChanged{{Team: "alpha", Members: []event.Member{
			{Name: "team-lead", AgentType: "team-lead", Model: "model-1", Lead: true},
		}}}
		if diff := cmp.Diff(want1, of[event.TeamChanged](w.events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestCreateRefuses(t *testing.T) {
	w := alphaTeam(t, "w1")
	for _, tt := range []struct {
		what string
		by   tool.Caller
		name string
		want func(error) bool
	}{
		{"a second team", leader, "beta", func(err error) bool {
			leading, ok := errors.AsType[*team.LeadingError](err)
			return ok && leading.Team == "alpha"
		}},
		{"no name", tool.Caller{SessionID: "session-2"}, " ", isNameError},
		{"a name with an escape", tool.Caller{SessionID: "session-2"}, "a\x1b[2J", isNameError},
		{"a teammate", mate("w1"), "beta", func(err error) bool { return errors.Is(err, team.ErrNotMain) }},
		{"a sub-agent", tool.Caller{SessionID: "session-2", AgentID: "a1", Depth: 1}, "beta",
			func(err error) bool { return errors.Is(err, team.ErrNotMain) }},
	} {
		if _, err := w.Create(t.Context(), tt.by, tt.name, "", ""); !tt.want(err) {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

func isNameError(err error) bool {
	_, ok := errors.AsType[*roster.NameError](err)
	return ok
}

func TestCreateTakesAnotherNameWhenTaken(t *testing.T) {
	three := regexp.MustCompile(`^[a-z]+-[a-z]+-[a-z]+$`)
	for _, name := range []string{"alpha", "default", "Default"} {
		w := alphaTeam(t)
		created, err := w.Create(t.Context(), tool.Caller{SessionID: "session-2"}, name, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if !three.MatchString(created.Name) || created.LeadAgentID != "team-lead@"+created.Name ||
			created.Members[0].AgentID != created.LeadAgentID {
			t.Errorf("%s: created as %q, led by %q", name, created.Name, created.LeadAgentID)
		}
	}
}

func TestCreateLeavesNothingWhenTheListCannotBeReset(t *testing.T) {
	w := newWorld()
	w.lists.failReset = errors.New("disk full")
	if _, err := w.Create(t.Context(), leader, "alpha", "", ""); !errors.Is(err, w.lists.failReset) {
		t.Errorf("error %v", err)
	}
	if _, err := w.rosters.Load(t.Context(), "alpha"); !errors.Is(err, roster.ErrNotFound) {
		t.Errorf("the roster is still there: %v", err)
	}
	if _, ok := w.Seat(leader); ok {
		t.Error("the session leads a team that does not exist")
	}
}

func TestSeatAndTaskList(t *testing.T) {
	w := alphaTeam(t, "w1")
	for _, tt := range []struct {
		who  string
		by   tool.Caller
		seat string // "" for none
		list string
	}{
		{"the lead", leader, "team-lead", "alpha"},
		{"a teammate", mate("w1"), "w1", "alpha"},
		{"a stranger", mate("w9"), "", "alpha"},
		{"a sub-agent of the lead", tool.Caller{SessionID: "session-1", AgentID: "a1", AgentName: "w1", Depth: 1}, "", "alpha"},
		{"a sub-agent of a teammate", tool.Caller{SessionID: "session-1", Team: "alpha", AgentName: "w1", Depth: 1}, "", "alpha"},
		{"another session", tool.Caller{SessionID: "session-2"}, "", "session-2"},
	} {
		seat, ok := w.Seat(tt.by)
		if ok != (tt.seat != "") || ok && seat.Name != tt.seat {
			t.Errorf("%s: seat %+v", tt.who, seat)
		}
		if got := w.Tasks.ListOf(tt.by); got != tt.list {
			t.Errorf("%s: task list %q, want %q", tt.who, got, tt.list)
		}
	}
}

func TestReopenFindsTheTeamOfAResumedSession(t *testing.T) {
	w := alphaTeam(t, "w1", "w2")
	w.restart()
	if _, ok, err := w.Reopen(t.Context(), tool.Caller{SessionID: "session-9"}); ok || err != nil {
		t.Fatalf("another session's team: %v, %v", ok, err)
	}
	absent, ok, err := w.Reopen(t.Context(), leader)
	if err != nil || !ok || len(absent) != 2 {
		t.Fatalf("Reopen = %v, %v, %v", absent, ok, err)
	}
	if seat := w.seat(t, mailbox.LeadName); !seat.Lead || seat.Team != "alpha" {
		t.Errorf("seat %+v", seat)
	}
	in := w.inbox(t, leader)
	for _, m := range absent {
		if err := w.Gone(t.Context(), mailbox.Address{Team: "alpha", Agent: m.Name}, "its process was killed"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"team-lead"}, w.names(t)); diff != "" {
		t.Errorf("roster (-want +got):\n%s", diff)
	}
	want := []string{
		"<teammate-message teammate_id=\"system\">\n{\"type\":\"teammate_terminated\",\"message\":\"w1 has ended: its process was killed.\"}\n</teammate-message>",
		"<teammate-message teammate_id=\"system\">\n{\"type\":\"teammate_terminated\",\"message\":\"w2 has ended: its process was killed.\"}\n</teammate-message>",
	}
	if diff := cmp.Diff(want, texts(next(t, in))); diff != "" {
		t.Errorf("the lead is told (-want +got):\n%s", diff)
	}
	if m := w.spawn(t, "w3"); m.Color != "yellow" {
		t.Errorf("a colour came back: %s", m.Color)
	}
}

func TestDelete(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2")
		d, err := w.Delete(t.Context(), leader)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(team.Deletion{Team: "alpha", Active: []string{"w1", "w2"}}, d); diff != "" {
			t.Errorf("with teammates (-want +got):\n%s", diff)
		}
		if _, err := w.Delete(t.Context(), mate("w1")); !errors.Is(err, team.ErrNotLead) {
			t.Errorf("by a teammate: %v", err)
		}
		for _, name := range []string{"w1", "w2"} {
			w.gone(t, name, "test")
		}
		seat := w.seat(t, mailbox.LeadName)
		if d, err = w.Delete(t.Context(), leader); err != nil || d.Team != "alpha" || len(d.Active) > 0 {
			t.Fatalf("Delete = %+v, %v", d, err)
		}
		if _, ok := w.Seat(leader); ok {
			t.Error("the lead still has a seat")
		}
		if _, err := seat.Send(t.Context(), "w1", "x", "y"); !errors.Is(err, team.ErrLeft) {
			t.Errorf("mail from a seat of a deleted team: %v", err)
		}
		if _, err := w.rosters.Load(t.Context(), "alpha"); !errors.Is(err, roster.ErrNotFound) {
			t.Errorf("the roster is still there: %v", err)
		}
		if d, err = w.Delete(t.Context(), leader); err != nil || d.Team != "" {
			t.Errorf("without a team: %+v, %v", d, err)
		}
	})
}

// What a member wrote last is shown even when the lead deletes the team first.
func TestDeleteKeepsUnreadMailForTheLead(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		in := w.inbox(t, leader)
		w.send(t, "w1", "team-lead", "first")
		got := next(t, in)
		w.send(t, "w1", "team-lead", "last words")
		w.gone(t, "w1", "test")
		if _, err := w.Delete(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		got = append(got, next(t, in)...)
		var from []string
		for _, m := range got {
			from = append(from, m.Preview)
		}
		want := []string{"about first", "about last words", "w1 has ended: test."}
		if diff := cmp.Diff(want, from); diff != "" {
			t.Errorf("mail (-want +got):\n%s", diff)
		}
		if err := in.Shown(t.Context(), mailIDs(got)); err != nil {
			t.Error(err)
		}
		if len(w.mails.marked) > 0 {
			t.Errorf("mail of a deleted team was marked in %v", w.mails.marked)
		}
	})
}

package team_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

func TestSpawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alphaTeam(t, "w0")
		w.backend.onStart = func(s team.Spawn) {
			if diff := cmp.Diff([]string{"team-lead", "w0", "w1"}, w.names(t)); diff != "" {
				t.Errorf("roster at the start (-want +got):\n%s", diff)
			}
		}
		spawned, err := w.Spawn(t.Context(), leader, team.SpawnRequest{
			Team: "alpha", Name: "w1", AgentType: "Explore", Model: "haiku", Prompt: "Do <it> & \"that\".", Description: "the \"work\"", PlanMode: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		want := roster.Member{
			AgentID: "w1@alpha", Name: "w1", AgentType: "Explore", Model: "haiku", Prompt: "Do <it> & \"that\".", Color: "green",
			PlanModeRequired: true, JoinedAt: 946684800000, PaneID: "in-process", Cwd: "/project", Subscriptions: []string{},
			BackendType: "in-process",
		}
		if diff := cmp.Diff(team.Spawned{Team: "alpha", Member: want}, spawned, ignoreStored); diff != "" {
			t.Errorf("spawned (-want +got):\n%s", diff)
		}
		start := w.backend.started[1]
		if diff := cmp.Diff(want, start.Member, ignoreStored); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		input := "<teammate-message teammate_id=\"team-lead\" summary=\"the &quot;work&quot;\">\nDo <it> & \"that\".\n</teammate-message>"
		if diff := cmp.Diff(input, start.Input); diff != "" {
			t.Errorf("input (-want +got):\n%s", diff)
		}
		for _, what := range []string{`"w1"`, `"alpha"`, `"team-lead"`, "w0 (general-purpose)", "SendMessage", "TaskList"} {
			if !strings.Contains(start.Introduction, what) {
				t.Errorf("the introduction lacks %s:\n%s", what, start.Introduction)
			}
		}
		if strings.Contains(start.Introduction, "w1 (Explore)") {
			t.Error("the introduction calls the teammate its own colleague")
		}
		if start.LeadSession != "session-1" || start.Seat.Name != "w1" || start.Seat.Lead {
			t.Errorf("start %+v", start)
		}
		rosters := of[event.TeamChanged](w.events)
		if last := rosters[len(rosters)-1].Members; len(last) != 3 || last[2].Name != "w1" || last[2].Backend != "in-process" {
			t.Errorf("told of the roster %v", last)
		}
	})
}

func TestSpawnTakesTheLeadsModel(t *testing.T) {
	w := alphaTeam(t)
	if m := w.spawn(t, "w1"); m.Model != "model-1" {
		t.Errorf("model %q", m.Model)
	}
}

func TestSpawnRefuses(t *testing.T) {
	w := alphaTeam(t, "w1")
	for _, tt := range []struct {
		what string
		by   tool.Caller
		r    team.SpawnRequest
		want func(error) bool
	}{
		{"by a teammate", mate("w1"), team.SpawnRequest{Name: "w2"}, func(err error) bool { return errors.Is(err, team.ErrNotLead) }},
		{"without a team", tool.Caller{SessionID: "session-2"}, team.SpawnRequest{Name: "w2"}, func(err error) bool { return errors.Is(err, team.ErrNoTeam) }},
		{"into a team that is not", tool.Caller{SessionID: "session-2"}, team.SpawnRequest{Name: "w2", Team: "nope"}, isUnknownTeam},
		{"into another team", leader, team.SpawnRequest{Name: "w2", Team: "nope"}, isUnknownTeam},
		{"../x", leader, team.SpawnRequest{Name: "../x"}, isNameError},
		{"Team-Lead", leader, team.SpawnRequest{Name: "Team-Lead"}, isNameError},
	} {
		if _, err := w.Spawn(t.Context(), tt.by, tt.r); !tt.want(err) {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
	if diff := cmp.Diff([]string{"team-lead", "w1"}, w.names(t)); diff != "" {
		t.Errorf("roster (-want +got):\n%s", diff)
	}
	if len(w.backend.started) != 1 {
		t.Errorf("started %v", w.backend.started)
	}
}

func isUnknownTeam(err error) bool {
	unknown, ok := errors.AsType[*team.UnknownTeamError](err)
	return ok && unknown.Team == "nope"
}

func TestSpawnThatFailsLeavesNobody(t *testing.T) {
	w := alphaTeam(t)
	w.backend.failStart = errors.New("no pane")
	if _, err := w.Spawn(t.Context(), leader, team.SpawnRequest{Name: "w1"}); !errors.Is(err, w.backend.failStart) {
		t.Errorf("error %v", err)
	}
	checkGone(t, w, "w1")
	w.backend.failStart = nil
	if m := w.spawn(t, "w1"); m.Name != "w1" || m.Color != "green" {
		t.Errorf("the next one is %+v", m)
	}
}

// What waits in the inbox of a former w1 was not meant for the new one.
func TestSpawnRetiresOldMail(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		w.send(t, "team-lead", "w1", "for the old one")
		if _, _, err := w.seat(t, mailbox.LeadName).RequestShutdown(t.Context(), "w1", "for the old one, too"); err != nil {
			t.Fatal(err)
		}
		w.gone(t, "w1", "test")
		w.backend.onStart = func(team.Spawn) { w.send(t, "team-lead", "w1", "for the new one") }
		w.spawn(t, "w1")
		if mails := next(t, w.inbox(t, mate("w1"))); len(mails) != 1 || !strings.Contains(mails[0].Text, "for the new one") {
			t.Errorf("the new one reads %q", texts(mails))
		}
	})
}

// While the old w1 is being taken off, the new one has its seat already.
func TestSpawnDuringADeparture(t *testing.T) {
	w := alphaTeam(t, "w1")
	w.rosters.updated = func() {
		w.rosters.updated = nil
		w.spawn(t, "w1")
	}
	old := w.seat(t, "w1")
	if err := w.Gone(t.Context(), old.Address(), "test"); err != nil {
		t.Fatal(err)
	}
	if now := w.seat(t, "w1"); now == old {
		t.Error("the old seat is still there")
	}
	w.send(t, "team-lead", "w1", "hello")
}

// Teammates that join at the same time under one name get different ones.
func TestSpawnAtTheSameTime(t *testing.T) {
	w := alphaTeam(t)
	var spawns sync.WaitGroup
	for range 8 {
		spawns.Go(func() {
			if _, err := w.Spawn(t.Context(), leader, team.SpawnRequest{Name: "w"}); err != nil {
				t.Error(err)
			}
		})
	}
	spawns.Wait()
	names := w.names(t)
	slices.Sort(names)
	want := []string{"team-lead", "w", "w-2", "w-3", "w-4", "w-5", "w-6", "w-7", "w-8"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestNotifyIdle(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2")
			w1 := w.seat(t, "w1")
			notify := func(reason protocol.IdleReason, failure string) {
				t.Helper()
				if err := w1.NotifyIdle(t.Context(), reason, failure); err != nil {
					t.Fatal(err)
				}
			}
			w.send(t, "w1", "w2", "x")
			w.send(t, "w1", "team-lead", "does not count")
			if _, err := w1.Broadcast(t.Context(), "nor does this", "s"); err != nil {
				t.Fatal(err)
			}
			notify(protocol.Available, "")
			notify(protocol.Available, "") // the same turn
			w1.Working()
			w.send(t, "w1", "w1", "self")
			notify(protocol.IdleInterrupted, "")
			w1.Working()
			notify(protocol.IdleFailed, "out of reach")
			if err := w.seat(t, mailbox.LeadName).NotifyIdle(t.Context(), protocol.Available, ""); err != nil {
				t.Fatal(err)
			}
			const at = `"timestamp":"2000-01-01T00:00:00.000Z"`
			want := []string{
				`{"type":"idle_notification","from":"w1",` + at + `,"idleReason":"available","summary":"[to w2] about x"}`,
				`{"type":"idle_notification","from":"w1",` + at + `,"idleReason":"interrupted","summary":"[to w1] about self"}`,
				`{"type":"idle_notification","from":"w1",` + at + `,"idleReason":"failed","failureReason":"out of reach"}`,
			}
			var got []string
			for _, m := range w.mailOf(t, "team-lead") {
				if strings.Contains(m.Text, "idle_notification") {
					got = append(got, m.Text)
					if m.Color != "blue" || m.Summary != "" {
						t.Errorf("outer fields: %+v", m)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	})
}

func TestNotifyIdleIsTriedAgain(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		w.mails.failPost["team-lead"] = errors.New("disk full")
		w1 := w.seat(t, "w1")
		if err := w1.NotifyIdle(t.Context(), protocol.Available, ""); !errors.Is(err, w.mails.failPost["team-lead"]) {
			t.Errorf("error %v", err)
		}
		delete(w.mails.failPost, "team-lead")
		if err := w1.NotifyIdle(t.Context(), protocol.Available, ""); err != nil {
			t.Fatal(err)
		}
		if n := len(w.mailOf(t, "team-lead")); n != 1 {
			t.Errorf("%d notes, want 1", n)
		}
	})
}

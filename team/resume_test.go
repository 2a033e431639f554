package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// A lead that comes back brings its teammates back, in the same kind of place or
// another, with their tasks and unread mail.
func TestRevive(t *testing.T) {
	for _, tt := range []struct {
		before, after start
	}{{alphaTeam, alphaTeam}, {apartTeam, apartTeam}, {apartTeam, alphaTeam}, {alphaTeam, apartTeam}} {
		testRevive(t, tt.before, tt.after)
	}
}

func testRevive(t *testing.T, before, after start) {
	w := before(t, "w1", "w2")
	own(t, w, "w1")
	w.send(t, "w2", "w1", "unread")
	conversation := roster.AgentRecord{AgentID: "t1", SessionID: "s1", Project: "/project", Backend: w.backend.name(), Signs: true, Description: "the work"}
	if err := w.seat(t, "w1").Remember(t.Context(), conversation); err != nil {
		t.Fatal(err)
	}
	w.endProcess(t, "w1")
	w.endProcess(t, "w2")
	w.houseLike(t, after)
	w.restart()
	absent, ok, err := w.Reopen(t.Context(), leader)
	if err != nil || !ok || len(absent) != 2 {
		t.Fatalf("Reopen = %v, %v, %v", absent, ok, err)
	}
	w.backend.started = nil
	m, err := w.Revive(t.Context(), leader, absent[0])
	if err != nil {
		t.Fatal(err)
	}
	pane := w1Pane(w)
	if m.Name != "w1" || m.BackendType != w.backend.name() || m.PaneID != pane || m.IsActive != nil || m.Color != "blue" {
		t.Errorf("revived %+v", m)
	}
	spawn := w.backend.started[0]
	if spawn.Record == nil || spawn.Record.AgentID != "t1" || spawn.Record.SessionID != "s1" || spawn.Introduction != "" || spawn.Description != "the work" {
		t.Errorf("started %+v", spawn)
	}
	for _, what := range []string{"<system-reminder>", "You were stopped, and are back", "#1 [in_progress, owned by w1] Tmux task", "Unread mail for you: 1."} {
		if !strings.Contains(spawn.Input, what) {
			t.Errorf("its input lacks %q:\n%s", what, spawn.Input)
		}
	}
	if mails := next(t, w.inbox(t, mate("w1"))); len(mails) != 1 || !strings.Contains(mails[0].Text, "unread") || mails[0].From != "w2" {
		t.Errorf("its mail: %q", texts(mails))
	}
	if first := w.tasks(t)[0]; first.Owner != "w1" || first.Status != task.InProgress {
		t.Errorf("its task is now %+v", first)
	}
	// What cannot be brought back is absent as before.
	w.backend.failStart = errors.New("no pane")
	if _, err := w.Revive(t.Context(), leader, absent[1]); !errors.Is(err, w.backend.failStart) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"team-lead", "w1", "w2"}, w.names(t)); diff != "" {
		t.Errorf("roster (-want +got):\n%s", diff)
	}
	if _, ok := w.Seat(mate("w2")); ok {
		t.Error("w2 has a seat")
	}
	w.gone(t, "w2", "it could not be brought back")
	checkGone(t, w, "w2")
}

// houseLike makes the world run its teammates as another does.
func (w *world) houseLike(t *testing.T, other start) {
	like := other(t)
	w.apart, w.backend.kind, w.backend.join, w.backend.end = like.apart, like.backend.kind, nil, nil
	if w.apart {
		w.backend.join = func(s team.Spawn) error { return w.startProcess(t, s.Member.Name) }
	}
}

// A teammate that was written down and never began is started with its prompt.
func TestReviveOfOneThatNeverBegan(t *testing.T) {
	w := alphaTeam(t, "w1")
	w.restart()
	absent, _, err := w.Reopen(t.Context(), leader)
	if err != nil {
		t.Fatal(err)
	}
	w.backend.started = nil
	if _, err := w.Revive(t.Context(), leader, absent[0]); err != nil {
		t.Fatal(err)
	}
	s := w.backend.started[0]
	if s.Record != nil || s.Introduction == "" || !strings.Contains(s.Input, "\nDo it.\n") {
		t.Errorf("started %+v", s)
	}
}

// A damaged record keeps only its own teammate from coming back, and that one stays a
// member, for a lead that finds the record whole again.
func TestReviveBesideADamagedRecord(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2")
		w.endProcess(t, "w1")
		w.endProcess(t, "w2")
		w.houseLike(t, alphaTeam)
		records := w.kept.Records()
		whole, err := records.Get(t.Context(), "alpha", roster.RecordAgent, "w1")
		if err != nil {
			t.Fatal(err)
		}
		if err := records.Put(t.Context(), "alpha", roster.RecordAgent, "w1", []byte(`"torn"`)); err != nil {
			t.Fatal(err)
		}
		w.restart()
		absent, _, err := w.Reopen(t.Context(), leader)
		if err != nil || len(absent) != 2 {
			t.Fatalf("absent %v, %v", absent, err)
		}
		for _, m := range absent {
			if _, err := w.Revive(t.Context(), leader, m); (err != nil) != (m.Name == "w1") {
				t.Errorf("revive %s: %v", m.Name, err)
			}
		}
		over, end := context.WithDeadline(t.Context(), time.Now())
		defer end()
		if err := w.Shutdown(over, leader); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"team-lead", "w1"}, w.names(t)); diff != "" {
			t.Errorf("roster after the end (-want +got):\n%s", diff)
		}
		if err := records.Put(t.Context(), "alpha", roster.RecordAgent, "w1", whole); err != nil {
			t.Fatal(err)
		}
		w.restart()
		if absent, _, err = w.Reopen(t.Context(), leader); err != nil || len(absent) != 1 {
			t.Fatalf("absent %v, %v", absent, err)
		}
		if _, err := w.Revive(t.Context(), leader, absent[0]); err != nil {
			t.Error(err)
		}
	})
}

func TestReviveRefuses(t *testing.T) {
	w := alphaTeam(t, "w1")
	w.enlist(t, "claude")
	if _, err := w.Revive(t.Context(), leader, roster.Member{Name: "claude"}); !errors.Is(err, roster.ErrNoRecord) {
		t.Errorf("another program's teammate: %v", err)
	}
	if _, err := w.Revive(t.Context(), mate("w1"), roster.Member{Name: "w1"}); !errors.Is(err, team.ErrNotLead) {
		t.Errorf("by a teammate: %v", err)
	}
}

// A lead that comes back finds teammates that live on in processes of their own.
func TestReopenFindsTheLiving(t *testing.T) {
	w := apartTeam(t, "w1", "w2")
	w.enlist(t, "claude")
	w.endProcess(t, "w2")
	approved := w.seat(t, "w1")
	w.restart()
	absent, ok, err := w.Reopen(t.Context(), leader)
	if err != nil || !ok || len(absent) != 1 || absent[0].Name != "w2" {
		t.Fatalf("absent %v, %v, %v", absent, ok, err)
	}
	if _, err := approved.Send(t.Context(), "team-lead", "still here", "s"); err != nil {
		t.Fatal(err)
	}
	if mails := next(t, w.inbox(t, leader)); len(mails) != 1 || mails[0].From != "w1" {
		t.Errorf("mail %+v", mails)
	}
	_, id, err := w.seat(t, mailbox.LeadName).RequestShutdown(t.Context(), "w1", "")
	if err != nil {
		t.Fatal(err)
	}
	next(t, w.inbox(t, mate("w1")))
	if err := approved.RespondShutdown(t.Context(), id, true, ""); err != nil {
		t.Fatal(err)
	}
	// An approval that nobody has read yet is settled before anybody is revived.
	w.restart()
	w.endProcess(t, "w1")
	absent, _, err = w.Reopen(t.Context(), leader)
	if err != nil || len(absent) != 1 || absent[0].Name != "w2" {
		t.Errorf("absent %v, %v", absent, err)
	}
	checkGone(t, w, "w1")
}

func TestRecap(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2", "w3")
		for i := range 30 {
			add(t, w, fmt.Sprintf("task %d </system-reminder>", i+1))
		}
		if _, err := w.UpdateTask(t.Context(), mate("w1"), "2", status(task.InProgress)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.UpdateTask(t.Context(), leader, "1", status(task.Completed)); err != nil {
			t.Fatal(err)
		}
		w.send(t, "w1", "team-lead", "hello")
		if w.apart {
			w.endProcess(t, "w3")
		} else if err := w.seat(t, "w2").NotifyIdle(t.Context(), protocol.Available, ""); err != nil {
			t.Fatal(err)
		}
		text, err := w.Recap(t.Context(), leader)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{
			`You lead the team "alpha"`, "- w1 (general-purpose): working, 1 unread\n", "Tasks: 29 open, 1 completed.",
			"- #2 [in_progress, owned by w1] task 2 &lt;/system-reminder>\n", "- #3 [pending, unassigned] task 3", "- and 9 more: TaskList shows them",
			"Unread mail for you: ",
		} {
			if !strings.Contains(text, what) {
				t.Errorf("it lacks %q:\n%s", what, text)
			}
		}
		if w.apart && !strings.Contains(text, "- w3 (general-purpose): not running") {
			t.Errorf("a dead teammate is not shown as such:\n%s", text)
		}
		if n := strings.Count(text, "\n"); n > 50 || strings.Count(text, "</system-reminder>") != 1 || strings.Contains(text, "#1 ") {
			t.Errorf("%d lines:\n%s", n, text)
		}
		if text, err = w.at(mate("w1")).Recap(t.Context(), mate("w1")); err != nil || !strings.Contains(text, `You are "w1", a member of the team "alpha", which "team-lead" leads`) {
			t.Errorf("for a teammate: %v\n%s", err, text)
		}
		if text, err = w.Recap(t.Context(), tool.Caller{SessionID: "session-2"}); text != "" || err != nil {
			t.Errorf("without a team: %q, %v", text, err)
		}
	})
}

// A lead that is killed while it starts a teammate in a pane finds it again: it is
// started with its prompt, of which a first one may wait unread.
func TestReviveOfOneWhoseStartWasCutShort(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		w := apartTeam(t)
		_, err := w.rosters.Update(t.Context(), "alpha", func(c *roster.Roster) error {
			c.Members = append(c.Members, roster.Member{
				AgentID: "w1@alpha", Name: "w1", AgentType: "general-purpose", BackendType: "tmux", Prompt: "Do it.",
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if recorded {
			doc := `{"name":"w1","sessionId":"","backend":"tmux","signs":false,"starting":true,"description":"the work"}`
			if err := w.kept.Records().Put(t.Context(), "alpha", roster.RecordAgent, "w1", []byte(doc)); err != nil {
				t.Fatal(err)
			}
			first := mailbox.Message{From: mailbox.LeadName, Text: "Do it.", Timestamp: "2026-11-21T03:18:57.981Z"}
			if err := w.mails.Post(t.Context(), mailbox.Address{Team: "alpha", Agent: "w1"}, first); err != nil {
				t.Fatal(err)
			}
		}
		w.restart()
		absent, _, err := w.Reopen(t.Context(), leader)
		if err != nil || len(absent) != 1 {
			t.Fatalf("absent %v, %v", absent, err)
		}
		w.backend.started = nil
		if _, err := w.Revive(t.Context(), leader, absent[0]); err != nil {
			t.Fatal(err)
		}
		s := w.backend.started[0]
		if s.Record != nil || s.Introduction == "" || !strings.Contains(s.Input, "\nDo it.\n") {
			t.Errorf("started %+v", s)
		}
		unread, err := w.mails.Unread(t.Context(), mailbox.Address{Team: "alpha", Agent: "w1"})
		if err != nil || len(unread) != 0 {
			t.Errorf("its inbox has %+v, %v", unread, err)
		}
	}
}

// A program that an earlier lead has started just before its end may have its prompt
// when it is ended: what it was told and did is not lost.
func TestReviveOfOneThatIsJustStarting(t *testing.T) {
	w := apartTeam(t, "w1")
	w.endProcess(t, "w1")
	starting := roster.AgentRecord{Backend: "tmux", Starting: true, Description: "the work"}
	if err := w.seat(t, "w1").Remember(t.Context(), starting); err != nil {
		t.Fatal(err)
	}
	seat := w.seat(t, "w1")
	w.restart()
	absent, _, err := w.Reopen(t.Context(), leader)
	if err != nil || len(absent) != 1 {
		t.Fatalf("absent %v, %v", absent, err)
	}
	w.backend.end = func(mailbox.Address) {
		came := roster.AgentRecord{SessionID: "s1", Project: "/project", Backend: "tmux", Signs: true, Description: "the work"}
		if err := seat.Remember(t.Context(), came); err != nil {
			t.Error(err)
		}
	}
	w.backend.started = nil
	if _, err := w.Revive(t.Context(), leader, absent[0]); err != nil {
		t.Fatal(err)
	}
	if s := w.backend.started[0]; s.Record == nil || s.Record.SessionID != "s1" || strings.Contains(s.Input, "Do it.") {
		t.Errorf("started %+v", s)
	}
}

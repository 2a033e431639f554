package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

// A teammate that another lead has started waits until it is written down.
func TestJoinWaitsForTheRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		process := w.process(nil)
		var joining sync.WaitGroup
		joining.Go(func() {
			seat, err := process.Join(t.Context(), mate("w1"))
			if err != nil || seat.Color != "blue" {
				t.Errorf("Join = %+v, %v", seat, err)
			}
		})
		time.Sleep(time.Second)
		err := w.rosters.Create(t.Context(), roster.Roster{Name: "alpha", LeadAgentID: "team-lead@alpha"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		_, err = w.rosters.Update(t.Context(), "alpha", func(c *roster.Roster) error {
			c.Members = append(c.Members, roster.Member{AgentID: "w1@alpha", Name: "w1", Color: "blue", BackendType: "tmux"})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		joining.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := w.process(nil).Join(ctx, mate("w2")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody writes w2 down: %v", err)
		}
	})
}

// Two processes are never the same agent, nor lead the same team.
func TestR10TwoProcessesWithOneName(t *testing.T) {
	w := apartTeam(t, "w1")
	second := w.process(nil)
	_, err := second.Join(t.Context(), mate("w1"))
	if present, ok := errors.AsType[*roster.PresentError](err); !ok || present.Who.Agent != "w1" {
		t.Errorf("a second w1: %v", err)
	}
	if _, ok := second.Seat(mate("w1")); ok {
		t.Error("the second w1 has a seat")
	}
	_, _, err = w.process(w.backend).Reopen(t.Context(), leader)
	if present, ok := errors.AsType[*roster.PresentError](err); !ok || present.Who.Agent != mailbox.LeadName {
		t.Errorf("a second lead: %v", err)
	}
	w.endProcess(t, "w1")
	if _, err := second.Join(t.Context(), mate("w1")); err != nil {
		t.Errorf("after the end of the first: %v", err)
	}
}

// What a teammate's own process knows is added to what its lead has kept.
func TestJoinIsRemembered(t *testing.T) {
	w := apartTeam(t, "w1")
	doc, err := w.kept.Records().Get(t.Context(), "alpha", roster.RecordAgent, "w1")
	if err != nil {
		t.Fatal(err)
	}
	var r roster.AgentRecord
	if err := json.Unmarshal(doc, &r); err != nil {
		t.Fatal(err)
	}
	if !r.Signs || r.SessionID != leader.SessionID || r.AgentID != "aw1" || r.Backend != "tmux" || r.Description != "the work" || r.Since.IsZero() {
		t.Errorf("kept %+v", r)
	}
}

// A teammate in a process of its own is told the same as one that is not.
// In a team of hundreds a new teammate is not told all the names.
func TestIntroductionToALargeTeam(t *testing.T) {
	w := alphaTeam(t)
	for i := range 60 {
		w.spawn(t, fmt.Sprint("w", i))
	}
	text, err := w.seat(t, "w0").Introduction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text, "(general-purpose)"); n != 40 || !strings.Contains(text, ", and 19 more.") {
		t.Errorf("%d are named:\n%s", n, text)
	}
}

func TestIntroduction(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1")
		text, err := w.seat(t, "w1").Introduction(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text != w.backend.started[0].Introduction {
			t.Errorf("introduced as %q, by its lead as %q", text, w.backend.started[0].Introduction)
		}
	})
}

func TestSetActive(t *testing.T) {
	w := apartTeam(t, "w1")
	active := func() *bool {
		c, err := w.rosters.Load(t.Context(), "alpha")
		if err != nil {
			t.Fatal(err)
		}
		return c.Find("w1").IsActive
	}
	if active() != nil {
		t.Error("active before anybody said so")
	}
	for _, want := range []bool{true, true, false} {
		if err := w.seat(t, "w1").SetActive(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if got := active(); got == nil || *got != want {
			t.Errorf("isActive %v, want %v", got, want)
		}
	}
	inside := alphaTeam(t, "w1")
	for _, name := range []string{"w1", mailbox.LeadName} {
		if err := inside.seat(t, name).SetActive(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	c, err := inside.rosters.Load(t.Context(), "alpha")
	if err != nil || c.Find("w1").IsActive != nil || c.Find(mailbox.LeadName).IsActive != nil {
		t.Errorf("an in-process agent has isActive: %+v, %v", c.Members, err)
	}
}

func TestPresent(t *testing.T) {
	w := apartTeam(t, "w1")
	w.enlist(t, "claude")
	check := func(what, agent string, wantPresent, wantKnown bool) {
		t.Helper()
		present, known, err := w.process(nil).Present(t.Context(), mailbox.Address{Team: "alpha", Agent: agent})
		if err != nil || present != wantPresent || known != wantKnown {
			t.Errorf("%s: present %v, known %v, %v", what, present, known, err)
		}
	}
	check("the lead", mailbox.LeadName, true, true)
	check("a teammate", "w1", true, true)
	check("another program's", "claude", false, false)
	check("nobody", "w9", false, true)
	w.endProcess(t, "w1")
	check("a dead teammate", "w1", false, true)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	check("a dead lead", mailbox.LeadName, false, true)
	if present, known, err := w.process(nil).LeadPresent(t.Context(), "beta"); present || !known || err != nil {
		t.Errorf("the lead of a team that is gone: %v, %v, %v", present, known, err)
	}
	foreign := foreignTeam(t, team.Policy{})
	if present, known, err := foreign.at(mate("w1")).LeadPresent(t.Context(), "alpha"); present || known || err != nil {
		t.Errorf("another program's lead: %v, %v, %v", present, known, err)
	}
}

// A teammate ends for want of a lead only when there is none after it has kept that it
// does.
func TestEndWithoutLead(t *testing.T) {
	w := apartTeam(t, "w1")
	w1 := w.seat(t, "w1")
	check := func(what string, want bool) {
		t.Helper()
		ends, err := w1.EndWithoutLead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := w.kept.Records().Get(t.Context(), "alpha", roster.RecordAgent, "w1")
		var record roster.AgentRecord
		if err == nil {
			err = json.Unmarshal(doc, &record)
		}
		if ends != want || record.Orphaned != want || err != nil {
			t.Errorf("%s: it ends: %v, and keeps %v, %v", what, ends, record.Orphaned, err)
		}
	}
	check("with a lead", false)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	check("without a lead", true)
	w.endProcess(t, "w1")
	if err := w.startProcess(t, "w1"); err != nil {
		t.Fatal(err)
	}
	w.restart()
	if _, _, err := w.Reopen(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	w1 = w.seat(t, "w1")
	check("brought back", false)
}

// A new team can be led again after it was deleted, and by another process.
func TestDeleteGivesUpTheLeadsPlace(t *testing.T) {
	w := alphaTeam(t)
	if _, err := w.Delete(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	if _, err := w.process(nil).Create(t.Context(), tool.Caller{SessionID: "session-2"}, "alpha", "", ""); err != nil {
		t.Error(err)
	}
}

// counted counts the places that are taken through it.
type counted struct {
	roster.Presence
	taken int
}

func (c *counted) Enter(ctx context.Context, who mailbox.Address) (func() error, error) {
	leave, err := c.Presence.Enter(ctx, who)
	if err != nil {
		return nil, err
	}
	c.taken++
	return func() error { c.taken--; return leave() }, nil
}

// No place is kept by a lead that has no team any more, nor by a process that
// ends.
func TestPlacesAreGivenUp(t *testing.T) {
	kept := memstore.New()
	places := &counted{Presence: kept.Presence()}
	open := func() *team.Teams {
		return team.New(team.Options{
			Store: kept.Teams(), Mail: kept.Mail(), Tasks: kept.Tasks(), Seals: kept.Seals(), Records: kept.Records(), Presence: places,
		})
	}
	teams := open()
	for what, end := range map[string]func() error{
		"Delete": func() error { _, err := teams.Delete(t.Context(), leader); return err },
		"Close":  func() error { return teams.Close() },
	} {
		if _, err := teams.Create(t.Context(), leader, "alpha", "", ""); err != nil {
			t.Fatal(err)
		}
		if places.taken != 1 {
			t.Fatalf("%d places are taken", places.taken)
		}
		if err := end(); err != nil || places.taken != 0 {
			t.Errorf("after %s %d places are taken, %v", what, places.taken, err)
		}
		teams = open()
	}
}

// A teammate in another process that is at work is waited for.
func TestWaitingForAnotherProcess(t *testing.T) {
	w := apartTeam(t, "w1")
	waiting := func(what string, by tool.Caller, want bool) {
		t.Helper()
		if got, err := w.at(by).Waiting(t.Context(), by); err != nil || (got != "") != want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	waiting("idle", leader, false)
	if err := w.seat(t, "w1").SetActive(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	waiting("at work", leader, true)
	waiting("at work, for itself", mate("w1"), false)
	w.send(t, "w1", "team-lead", "x")
	waiting("mail for the lead, for the teammate", mate("w1"), false)
	in := w.inbox(t, leader)
	if err := in.Shown(t.Context(), mailIDs(next(t, in))); err != nil {
		t.Fatal(err)
	}
	w.endProcess(t, "w1")
	waiting("dead, which its lead does not know", leader, true)
	if err := w.Gone(t.Context(), mailbox.Address{Team: "alpha", Agent: "w1"}, "its process has ended"); err != nil {
		t.Fatal(err)
	}
	if err := in.Shown(t.Context(), mailIDs(next(t, in))); err != nil {
		t.Fatal(err)
	}
	waiting("dead, which its lead was told", leader, false)
}

package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
)

// course is what the files of alpha say of what an agent in a pane was given, and what
// it said. Times are seconds after the beginning of the test.
type course struct {
	told   []int // it was sent plain mail, which it has read
	silent []int // and mail that its runtime consumes
	noted  []int // it told the lead that it is idle
	joined int
	flag   *bool // isActive
	seen   *roster.Activity
}

// lay writes a course, all of it read.
func (c course) lay(t *testing.T, w *world, name string) {
	t.Helper()
	begin := time.Now()
	at := func(s int) string {
		return begin.Add(time.Duration(s) * time.Second).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	post := func(to, from, text string, seconds []int) {
		who := mailbox.Address{Team: "alpha", Agent: to}
		for _, s := range seconds {
			m := mailbox.Message{From: from, Text: text, Timestamp: at(s)}
			if err := w.mails.Post(t.Context(), who, m); err != nil {
				t.Fatal(err)
			}
			if err := w.mails.MarkRead(t.Context(), who, []mailbox.ID{mailbox.FirstID(m)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	post(name, mailbox.LeadName, "do it", c.told)
	post(name, mailbox.LeadName, `{"type":"permission_response","request_id":"p","subtype":"success"}`, c.silent)
	post(mailbox.LeadName, name, fmt.Sprintf(`{"type":"idle_notification","from":%q,"idleReason":"available"}`, name), c.noted)
	_, err := w.rosters.Update(t.Context(), "alpha", func(roster *roster.Roster) error {
		m := roster.Find(name)
		m.IsActive = c.flag
		if c.joined > 0 {
			m.JoinedAt = begin.Add(time.Duration(c.joined) * time.Second).UnixMilli()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.seen != nil {
		var since int
		if _, err := fmt.Sscan(c.seen.Since, &since); err != nil {
			t.Fatal(err)
		}
		doc, err := json.Marshal(roster.Activity{Active: c.seen.Active, Since: at(since)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.kept.Records().Put(t.Context(), "alpha", roster.RecordActivity, name, doc); err != nil {
			t.Fatal(err)
		}
	}
}

// checkState checks that all who ask get the same answer: the list of states, whoever
// waits for the team, and whoever waits for the agent.
func checkState(t *testing.T, w *world, name string, want team.AgentState) {
	t.Helper()
	states, err := w.States(t.Context(), "alpha")
	if err != nil || states[name] != want {
		t.Errorf("it is %q, %v; want %q", states[name], err, want)
	}
	waiting := ""
	if want == team.AgentWorking {
		waiting = name + " is at work"
	}
	if got, err := w.Waiting(t.Context(), leader); err != nil || got != waiting {
		t.Errorf("waited for: %q, %v; want %q", got, err, waiting)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := w.Await(now, leader, team.Awaited{Agents: []string{name}})
	if err != nil || p.Agents[0].State != want {
		t.Errorf("awaited: %+v, %v; want %q", p, err, want)
	}
}

// Another program writes the roster without a lock, so what stands there may be
// undone, or be the undoing of something. Mail tells.
func TestAtWorkInAnotherProgram(t *testing.T) {
	saw := func(active bool, since int) *roster.Activity {
		return &roster.Activity{Active: active, Since: fmt.Sprint(since)}
	}
	for what, c := range map[string]struct {
		course
		want team.AgentState
	}{
		"its end of the turn was undone":               {course{told: []int{1}, noted: []int{2}, flag: new(true)}, team.AgentIdle},
		"it was sent more after that":                  {course{told: []int{1, 3}, noted: []int{2}, flag: new(true)}, team.AgentWorking},
		"its second turn has begun":                    {course{told: []int{1, 2}, noted: []int{3}, flag: new(true)}, team.AgentWorking},
		"it had a first turn before":                   {course{told: []int{1, 3}, noted: []int{2, 4}, flag: new(true)}, team.AgentIdle},
		"its second turn is over":                      {course{told: []int{1, 2}, noted: []int{3, 4}, flag: new(true)}, team.AgentIdle},
		"both were of one turn":                        {course{told: []int{1, 2}, noted: []int{3}, flag: new(false)}, team.AgentIdle},
		"all came at once":                             {course{told: []int{1}, silent: []int{2}, noted: []int{3}, flag: new(true)}, team.AgentIdle},
		"its beginning was undone":                     {course{told: []int{1}, flag: new(false)}, team.AgentWorking},
		"its first word was undone":                    {course{told: []int{1}}, team.AgentWorking},
		"its later beginning was undone":               {course{told: []int{1, 3}, noted: []int{2}, flag: new(false), seen: saw(false, 2)}, team.AgentWorking},
		"it could not say that it is idle":             {course{told: []int{1}, flag: new(false), seen: saw(false, 2)}, team.AgentIdle},
		"it is seen at work, and nobody has looked":    {course{told: []int{1}, flag: new(false), seen: saw(true, 2)}, team.AgentWorking},
		"it was sent nothing that begins a turn since": {course{told: []int{1}, noted: []int{2}, silent: []int{3}, flag: new(false)}, team.AgentIdle},
		"it was never sent anything":                   {course{}, team.AgentIdle},
		"a person talks to it":                         {course{flag: new(true)}, team.AgentWorking},
		"another of its name was idle":                 {course{told: []int{1, 5}, noted: []int{2}, joined: 4, flag: new(false)}, team.AgentWorking},
		"a person talks to it, and another was idle":   {course{noted: []int{2}, joined: 4, flag: new(true)}, team.AgentWorking},
		"another of its name is idle later":            {course{told: []int{1, 5}, noted: []int{2, 6}, joined: 4, flag: new(true)}, team.AgentIdle},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := alphaTeam(t)
				w.enlist(t, "claude")
				c.lay(t, w, "claude")
				time.Sleep(time.Hour) // synthetic time
				checkState(t, w, "claude", c.want)
			})
		})
	}
}

// It takes another program a moment to say that it goes on with what it was sent
// while it worked.
func TestAtWorkBetweenTwoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alphaTeam(t)
		w.enlist(t, "claude")
		course{told: []int{1, 2}, noted: []int{3}, flag: new(false)}.lay(t, w, "claude")
		time.Sleep(4 * time.Second) // synthetic time
		checkState(t, w, "claude", team.AgentWorking)
		time.Sleep(time.Minute)
		checkState(t, w, "claude", team.AgentIdle)
	})
}

// A teammate of ours corrects its word in the roster: that counts, once it has had the
// time.
func TestAtWorkInAProgramOfOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := apartTeam(t, "w1")
		course{told: []int{0}, noted: []int{1}, flag: new(true)}.lay(t, w, "w1")
		time.Sleep(time.Hour) // synthetic time
		checkState(t, w, "w1", team.AgentWorking)
		course{told: []int{0}, flag: new(false)}.lay(t, w, "w1")
		checkState(t, w, "w1", team.AgentWorking)
		time.Sleep(time.Minute)
		checkState(t, w, "w1", team.AgentIdle)
		w.endProcess(t, "w1")
		if states, err := w.States(t.Context(), "alpha"); err != nil || states["w1"] != team.AgentGone {
			t.Errorf("dead, it is %q, %v", states["w1"], err)
		}
	})
}

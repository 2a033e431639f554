package team_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

func metadata(t *testing.T, text string) jsonx.Object {
	t.Helper()
	var o jsonx.Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// Who works on a task does not choose what proves it, neither when it has claimed it
// nor with the claim.
func TestAClaimedTaskGetsItsCheckFromTheLead(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1")
	helper := mate("w1")
	helper.Depth = 1
	check := task.Change{Metadata: metadata(t, `{"check":"true"}`)}
	claim := status(task.InProgress)
	claim.Metadata = check.Metadata
	for _, tt := range []struct {
		name   string
		by     tool.Caller
		owner  string
		change task.Change
		ok     bool
	}{
		{"its own", mate("w1"), "w1", check, false},
		{"of another", mate("w1"), "w2", check, false},
		{"by its sub-agent", helper, "w1", check, false},
		{"with the claim", mate("w1"), "", claim, false},
		{"of nobody", mate("w1"), "", check, true},
		{"by the lead", leader, "w1", check, true},
	} {
		created, err := p.lists.Create(t.Context(), "alpha", task.Task{Subject: "x", Status: task.Pending, Owner: tt.owner})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.UpdateTask(t.Context(), tt.by, created.ID, tt.change); tt.ok != (err == nil) || !tt.ok && !errors.Is(err, team.ErrCheck) {
			t.Errorf("%s: %v", tt.name, err)
		}
		after, err := p.Tasks.Get(t.Context(), leader, created.ID)
		if (after.Check() == "true") != tt.ok || err != nil {
			t.Errorf("%s: the check is %q, %v", tt.name, after.Check(), err)
		}
	}
}

// Who works on a task does not weaken its proof.
func TestWhoMayChangeAChecksTask(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1")
	helper := mate("w1")
	helper.Depth = 1
	leadHelper := leader
	leadHelper.Depth = 1
	deleted := status(task.Deleted)
	change := func(text string) task.Change { return task.Change{Metadata: metadata(t, text)} }
	for _, tt := range []struct {
		name   string
		by     tool.Caller
		has    string
		change task.Change
		ok     bool
	}{
		{"another check", mate("w1"), `{"check":"go test"}`, change(`{"check":"true"}`), false},
		{"no check", mate("w1"), `{"check":"go test"}`, change(`{"check":null}`), false},
		{"no task", mate("w1"), `{"check":"go test"}`, deleted, false},
		{"by a sub-agent", helper, `{"check":"go test"}`, change(`{"check":null}`), false},
		{"by the lead's sub-agent", leadHelper, `{"check":"go test"}`, change(`{"check":null}`), false},
		{"evidence of its own", mate("w1"), `{"check":"go test"}`, change(`{"checked":{"command":"go test","passed":true}}`), false},
		{"evidence by the lead", leader, `{"check":"go test"}`, change(`{"checked":{"command":"go test","passed":true}}`), false},
		{"something else", mate("w1"), `{"check":"go test"}`, change(`{"note":"x"}`), true},
		{"completed", mate("w1"), `{"check":"go test"}`, task.Change{Subject: new("done")}, true},
		{"a first check", mate("w1"), `{}`, change(`{"check":"go vet"}`), true},
		{"no task without a check", mate("w1"), `{}`, deleted, true},
		{"another check by the lead", leader, `{"check":"go test"}`, change(`{"check":"go vet"}`), true},
		{"no task by the lead", leader, `{"check":"go test"}`, deleted, true},
	} {
		created, err := p.lists.Create(t.Context(), "alpha", task.Task{Subject: "x", Status: task.Pending, Metadata: metadata(t, tt.has)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.UpdateTask(t.Context(), tt.by, created.ID, tt.change)
		if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, team.ErrCheck) {
			t.Errorf("%s: %v", tt.name, err)
		}
		after, err := p.Tasks.Get(t.Context(), leader, created.ID)
		if !tt.ok && (err != nil || after.Check() != "go test") {
			t.Errorf("%s: check %q, %v", tt.name, after.Check(), err)
		}
	}
}

func TestTaskThatBringsItsEvidence(t *testing.T) {
	p := newParley(t, team.Policy{})
	_, err := p.Tasks.Create(t.Context(), leader, task.Task{Subject: "x", Metadata: metadata(t, `{"check":"go test","checked":{"command":"go test","passed":true}}`)})
	if !errors.Is(err, team.ErrCheck) {
		t.Errorf("error %v", err)
	}
}

// A session without a team is nobody's teammate.
func TestSoloSessionChangesItsChecks(t *testing.T) {
	p := newParley(t, team.Policy{})
	solo := tool.Caller{SessionID: "solo"}
	if _, err := p.Tasks.Create(t.Context(), solo, task.Task{Subject: "x", Metadata: metadata(t, `{"check":"go test"}`)}); err != nil {
		t.Fatal(err)
	}
	out, err := p.UpdateTask(t.Context(), solo, "1", task.Change{Metadata: metadata(t, `{"check":null}`)})
	if err != nil || out.After.Check() != "" {
		t.Errorf("check %q, %v", out.After.Check(), err)
	}
}

func TestKeepEvidence(t *testing.T) {
	p := newParley(t, team.Policy{}, "w1")
	if _, err := p.lists.Create(t.Context(), "alpha", task.Task{Subject: "x", Metadata: metadata(t, `{"check":"go test"}`)}); err != nil {
		t.Fatal(err)
	}
	kept, err := p.Tasks.KeepEvidence(t.Context(), mate("w1"), "1", task.Evidence{Command: "go test", Passed: true, By: "w1"})
	if e, ok := kept.Checked(); err != nil || !ok || !e.Passed || e.By != "w1" {
		t.Errorf("evidence %+v, %v, %v", e, ok, err)
	}
	if told := of[event.TaskChanged](p.events); len(told) != 1 || told[0].List != "alpha" {
		t.Errorf("told %+v", told)
	}
	if _, err := p.Tasks.KeepEvidence(t.Context(), mate("w1"), "9", task.Evidence{}); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// A check that a teammate has given a task does not prove the task when the teammate
// itself, or a sub-agent of it, works on it; it does when another or the lead has run it.
func TestNobodyProvesItsWorkWithItsOwnCheck(t *testing.T) {
	helper := mate("w1")
	helper.Depth = 1
	for _, tt := range []struct {
		name               string
		giver, owner, runs tool.Caller
		created            bool // with the check
		proved             bool
	}{
		{"its own", mate("w1"), mate("w1"), mate("w1"), false, false},
		{"its own, from the beginning", mate("w1"), mate("w1"), mate("w1"), true, false},
		{"of its sub-agent", helper, mate("w1"), mate("w1"), false, false},
		{"run by another", mate("w1"), mate("w1"), mate("w2"), false, false},
		{"of another", mate("w2"), mate("w1"), mate("w1"), false, true},
		{"run by the lead", mate("w1"), mate("w1"), leader, false, true},
		{"of the lead", leader, mate("w1"), mate("w1"), false, true},
	} {
		p := newParley(t, team.Policy{}, "w1", "w2")
		item := task.Task{Subject: "x", Status: task.Pending}
		if tt.created {
			item.Metadata = metadata(t, `{"check":"true"}`)
		}
		created, err := p.Tasks.Create(t.Context(), tt.giver, item)
		if err == nil && !tt.created {
			_, err = p.UpdateTask(t.Context(), tt.giver, created.ID, task.Change{Metadata: metadata(t, `{"check":"true"}`)})
		}
		if err == nil {
			_, err = p.UpdateTask(t.Context(), tt.owner, created.ID, status(task.InProgress))
		}
		if err != nil {
			t.Fatal(tt.name, err)
		}
		kept, err := p.Tasks.KeepEvidence(t.Context(), tt.runs, created.ID, task.Evidence{Command: "true", Passed: true})
		if kept.IsProved() != tt.proved || err != nil {
			t.Errorf("%s: proved %v, %v", tt.name, kept.IsProved(), err)
		}
	}
}

// Whoever gets a task is told what will prove it, and a recap says what was
// completed without proof.
func TestCheckIsHandedOutWithItsTask(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		w := alpha(t, "w1", "w2")
		for range 2 {
			item := task.Task{Subject: "parse", Description: "d", Status: task.Pending, Metadata: metadata(t, `{"check":"go test ./parse"}`)}
			if _, err := w.Tasks.Create(t.Context(), leader, item); err != nil {
				t.Fatal(err)
			}
		}
		mail, ok, err := w.seat(t, "w1").Claim(t.Context())
		if err != nil || !ok || !strings.Contains(mail.Text, "\n\nd\n\nCheck: go test ./parse\n") {
			t.Errorf("claimed %q, %v, %v", mail.Text, ok, err)
		}
		if _, err := w.UpdateTask(t.Context(), leader, "2", owner("w2")); err != nil {
			t.Fatal(err)
		}
		if got := take(t, w.inbox(t, mate("w2"))); len(got) != 1 || !strings.Contains(got[0].Text, `"check":"go test ./parse"`) {
			t.Errorf("assigned %+v", got)
		}
		if _, err := w.UpdateTask(t.Context(), leader, "2", status(task.Completed)); err != nil { // as a program without checks does
			t.Fatal(err)
		}
		text, err := w.Recap(t.Context(), leader)
		if want := "Of these 1 are not proved, their checks have not passed: #2\n"; err != nil || !strings.Contains(text, want) {
			t.Errorf("%v, %s", err, text)
		}
	})
}

//go:build unix

package cadre_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// planScript makes a lead with a teammate that has to plan before it writes.
func planScript(c *scripted.Conversation) scripted.Reply {
	if c.Role() != scripted.Teammate {
		switch {
		case made(c, "TeamCreate") == 0:
			return use("TeamCreate", map[string]any{"team_name": "plans"})
		case made(c, "Agent") == 0:
			return use("Agent", map[string]any{"name": "ann", "description": "plan", "prompt": "Plan, then write.", "subagent_type": "general-purpose", "mode": "plan"})
		}
		return say("I wait.")
	}
	path, known := plannedPath(c)
	switch {
	case !tried(c, "too early"):
		return use("Write", map[string]any{"file_path": "too early", "content": "x"})
	case !tried(c, "ExitPlanMode"):
		return use("ExitPlanMode", map[string]any{})
	case known && !did(c, "Write", path):
		return use("Write", map[string]any{"file_path": path, "content": "# Plan: write the file"})
	case made(c, "ExitPlanMode") == 0:
		return use("ExitPlanMode", map[string]any{})
	case !heard(c, "plan_approval_response"):
		return say("I wait for the approval.")
	case !did(c, "Write", "done.txt"):
		return use("Write", map[string]any{"file_path": "done.txt", "content": "planned"})
	}
	return say("Done.")
}

// plannedPath is where the agent was told that its plan belongs.
func plannedPath(c *scripted.Conversation) (string, bool) {
	for _, m := range c.Made {
		if path, _, ok := strings.Cut(after(m.Result, "No plan file found at "), ". Please"); ok && m.Tool == "ExitPlanMode" {
			return path, true
		}
	}
	return "", false
}

// openPlan is a world whose teammate waits for a person to approve its plan, and the
// question about it.
func openPlan(t *testing.T, settings string) (*world, ask.Ask) {
	t.Helper()
	w := open(t, planScript, func(c *cadre.Config) { c.Settings = settings })
	if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
		t.Fatal(err)
	}
	for ev := range w.Session().Events(t.Context(), 0) {
		if body, ok := ev.Body.(event.Asked); ok {
			return w, body.Ask
		}
	}
	t.Fatal("nobody was asked")
	return nil, ask.Ask{}
}

// decided is the answer to a question, when it has one.
func (w *world) decided(t *testing.T, id string) ask.Answer {
	t.Helper()
	for ev := range w.Session().Events(t.Context(), 0) {
		if body, ok := ev.Body.(event.Answered); ok && body.ID == id {
			return body.Answer
		}
	}
	t.Fatal("it was not answered")
	return ask.Answer{}
}

// A plan that a person decides about lies where other processes see it, and is
// answered from there.
func TestAPlanIsApprovedFromOutside(t *testing.T) {
	w, asked := openPlan(t, `{"planApproval": "person", "askDeadlineMs": 600000}`)
	state := cadre.OpenState(w.home)
	defer state.Close()
	eventually(t, "the plan lies on the desk", func() bool {
		open, err := state.Desk().Open(t.Context())
		return err == nil && len(open) == 1 && open[0].ID == asked.ID && open[0].Kind == ask.Plan && !open[0].Deadline.IsZero()
	})
	if err := state.Desk().Leave(t.Context(), asked.ID, ask.Answer{Allow: true, By: "person"}); err != nil {
		t.Fatal(err)
	}
	if answer := w.decided(t, asked.ID); !answer.Allow {
		t.Errorf("answered %+v", answer)
	}
	eventually(t, "the plan is carried out", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "done.txt"))
		return err == nil
	})
	eventually(t, "the desk is clear", func() bool {
		open, err := state.Desk().Open(context.WithoutCancel(t.Context()))
		return err == nil && len(open) == 0
	})
}

func TestAPlanEndsAtItsDeadline(t *testing.T) {
	w, asked := openPlan(t, `{"planApproval": "person", "askDeadlineMs": 1}`)
	if answer := w.decided(t, asked.ID); answer.Allow || answer.By != "deadline" || !strings.Contains(answer.Message, "Nobody answered within the time") {
		t.Errorf("answered %+v", answer)
	}
}

// A killed lead's question is asked again, and an answer that was left meanwhile
// counts.
func TestAPlanIsApprovedWhileTheLeadIsAway(t *testing.T) {
	const settings = `{"planApproval": "person", "askDeadlineMs": 600000}`
	w, asked := openPlan(t, settings)
	id := w.Info().SessionID
	w.Kill()
	state := cadre.OpenState(w.home)
	defer state.Close()
	if err := state.Desk().Leave(t.Context(), asked.ID, ask.Answer{Allow: true, By: "person"}); err != nil {
		t.Fatal(err)
	}
	w.reopen(t, planScript, func(c *cadre.Config) { c.Settings, c.Resume = settings, id })
	if answer := w.decided(t, asked.ID); !answer.Allow {
		t.Errorf("answered %+v", answer)
	}
}

// A lead may be killed between the answer and the clearing of the desk; a question
// that is open still is asked again.
func TestAResumedLeadClearsTheDesk(t *testing.T) {
	const settings = `{"planApproval": "person", "askDeadlineMs": 600000}`
	w, asked := openPlan(t, settings)
	id := w.Info().SessionID
	w.Kill()
	state := cadre.OpenState(w.home)
	defer state.Close()
	settled := asked
	settled.ID = "plan-0123456789abcdef"
	other := asked
	other.ID, other.SessionID = "plan-of-another-lead", "33333333-3333-4333-8333-333333333333"
	for _, a := range []ask.Ask{settled, other} {
		if err := state.Desk().Lay(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	w.reopen(t, planScript, func(c *cadre.Config) { c.Settings, c.Resume = settings, id })
	want := []string{asked.ID, other.ID}
	slices.Sort(want)
	eventually(t, "only what is open lies on the desk", func() bool {
		open, err := state.Desk().Open(context.WithoutCancel(t.Context()))
		var lie []string
		for _, a := range open {
			lie = append(lie, a.ID)
		}
		slices.Sort(lie)
		return err == nil && slices.Equal(lie, want)
	})
}

package cadre_test

import (
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/team/protocol"
)

// planning is an agent's prompt that has it plan before it writes done.txt.
func planning() order {
	return order{ID: "plan", Calls: []scripted.Call{
		scripted.Use("Write", fields{"file_path": "early.txt", "content": "x"}),
		scripted.Use("Bash", fields{"command": "touch early.txt"}),
		scripted.Use("Write", fields{"file_path": planFile, "content": "# The first plan"}),
		scripted.Use("ExitPlanMode", fields{}),
	}}
}

// startPlanner starts a teammate that has to plan, and whose plan is approved by
// auto, lead or person. It has submitted its plan then.
func (w *teamWorld) startPlanner(t *testing.T, by string) {
	t.Helper()
	w.settings(t, `{"orphanGraceMs": 300, "planApproval": "`+by+`"}`)
	w.open(t, nil)
	t.Cleanup(w.Session().Attend()) // a person sits in front of the lead
	spawn := scripted.Use("Agent", fields{
		"name": "ann", "description": "plan first", "prompt": planning().text(), "subagent_type": "general-purpose", "mode": "plan",
	})
	w.leads(t, append(forming(), spawn)...)
	said := w.results(t, "ann", "plan", 4)
	contains(t, said[0], "plan mode")
	contains(t, said[1], "plan mode")
	contains(t, said[3], "submitted to the team lead")
	if exists(w.path("early.txt")) {
		t.Error("a file was written in plan mode")
	}
	if m := w.member(t, "ann"); m == nil || !m.PlanModeRequired {
		t.Errorf("the roster has %+v", m)
	}
}

// carriesOut has the teammate do what its plan was approved for.
func (w *teamWorld) carriesOut(t *testing.T) {
	t.Helper()
	w.isShown(t, "ann", `"type":"plan_approval_response"`, `"approved":true`, `"permissionMode":"bypassPermissions"`)
	w.does(t, "ann", scripted.Use("Write", fields{"file_path": "done.txt", "content": "planned"}))
	if got := w.file(t, "done.txt"); got != "planned" {
		t.Errorf("after the approval it wrote %q", got)
	}
}

func TestAPlanIsApprovedByItself(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.startPlanner(t, "auto")
		w.carriesOut(t)
		w.isShown(t, mailbox.LeadName, `"type":"plan_approval_request"`, `"planContent":"# The first plan"`)
		w.isShown(t, mailbox.LeadName, "The plan of ann was approved automatically")
	})
}

// revises has the teammate change its plan, after a rejection.
func (w *teamWorld) revises(t *testing.T) {
	t.Helper()
	w.isShown(t, "ann", `"approved":false`, `"feedback":"Too big."`)
	said := w.does(t, "ann",
		scripted.Use("Write", fields{"file_path": "early.txt", "content": "x"}),
		scripted.Use("Write", fields{"file_path": planFile, "content": "# The second plan"}), scripted.Use("ExitPlanMode", fields{"pushToRemote": false}))
	contains(t, said[0], "plan mode")
	contains(t, said[2], "submitted to the team lead")
}

func TestAPlanIsApprovedByTheLead(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.startPlanner(t, "lead")
		answer := func(approve bool, feedback string) scripted.Call {
			return scripted.Use("SendMessage", fields{
				"type": "plan_approval_response", "recipient": "ann", "request_id": requestOf, "approve": approve, "content": feedback,
			})
		}
		w.isShown(t, mailbox.LeadName, `"type":"plan_approval_request"`, "# The first plan")
		w.leads(t, answer(false, "Too big."))
		w.revises(t)
		w.isShown(t, mailbox.LeadName, `"type":"plan_approval_request"`, "# The second plan")
		w.leads(t, answer(true, ""))
		w.carriesOut(t)
		asked := controls[protocol.PlanRequest](t, w, mailbox.LeadName)
		if len(asked) != 2 || asked[0].RequestID == asked[1].RequestID {
			t.Errorf("the lead was asked %+v", asked)
		}
	})
}

func TestAPlanIsApprovedByAPerson(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.startPlanner(t, "person")
		w.answer(t, ask.Plan, "ann", ask.Answer{Message: "Too big.", By: "person"})
		w.revises(t)
		w.isShown(t, mailbox.LeadName, "A person rejected the plan of ann", "Too big.")
		a := w.answer(t, ask.Plan, "ann", ask.Answer{Allow: true, By: "person"})
		contains(t, string(a.Input), "# The second plan")
		w.carriesOut(t)
		w.isShown(t, mailbox.LeadName, "A person approved the plan of ann")
		if n := w.shown(t, mailbox.LeadName).times("plan_approval_request"); n != 0 {
			t.Errorf("the lead's model was asked %d times", n)
		}
	})
}

// An agent that plans of its own accord asks nobody, and ExitPlanMode does nothing
// outside of plan mode.
func TestATeammatePlansByItself(t *testing.T) {
	overBackends(t, func(t *testing.T, w *teamWorld) {
		w.form(t, "ann")
		writes := func(text string) scripted.Call {
			return scripted.Use("Write", fields{"file_path": "by-itself.txt", "content": text})
		}
		said := w.does(t, "ann", scripted.Use("ExitPlanMode", fields{}), scripted.Use("EnterPlanMode", fields{}), writes("early"))
		contains(t, said[0], "not in plan mode")
		contains(t, said[2], "plan mode")
		path, _, _ := strings.Cut(after(said[1], "Plan file: "), "\n")
		said = w.does(t, "ann", scripted.Use("Write", fields{"file_path": path, "content": "# Mine"}), scripted.Use("ExitPlanMode", fields{}), writes("late"))
		contains(t, said[1], "the plan needed no approval")
		if got := w.file(t, "by-itself.txt"); got != "late" {
			t.Errorf("it wrote %q; %q", got, said)
		}
		if n := len(controls[protocol.PlanRequest](t, w, mailbox.LeadName)); n != 0 {
			t.Errorf("the lead was asked %d times", n)
		}
	})
}

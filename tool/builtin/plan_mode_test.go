package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
)

// planner is one session's plan mode.
type planner struct {
	mode     string
	file     string
	approver builtin.Approver
	did      []string
	broken   error
}

func newPlanner(t *testing.T, mode string, approver builtin.Approver) *planner {
	return &planner{mode: mode, file: filepath.Join(t.TempDir(), "brisk-plan.md"), approver: approver}
}

func (p *planner) Mode(tool.Caller) string                   { return p.mode }
func (p *planner) PlanFile(tool.Caller) string               { return p.file }
func (p *planner) PlanApprover(tool.Caller) builtin.Approver { return p.approver }

func (p *planner) do(what, mode string) error {
	if p.broken == nil {
		p.did, p.mode = append(p.did, what), mode
	}
	return p.broken
}

func (p *planner) EnterPlan(context.Context, tool.Caller) error { return p.do("enter", "plan") }
func (p *planner) LeavePlan(context.Context, tool.Caller) error { return p.do("leave", "default") }

func (p *planner) SubmitPlan(_ context.Context, _ tool.Caller, plan string) (builtin.PlanSubmitted, error) {
	return builtin.PlanSubmitted{RequestID: "plan_approval-1@pl@delta"}, p.do("submit "+plan, p.mode)
}

func (p *planner) write(t *testing.T, plan string) {
	t.Helper()
	if err := os.WriteFile(p.file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
}

// planCall is a call of a plan tool on its way: between is what happens while
// somebody decides about it.
func (p *planner) call(t *testing.T, by tool.Caller, name, input string, between func()) (tool.Access, tool.Result) {
	t.Helper()
	found, _ := tool.NewSet(builtin.PlanTools(p)...).Lookup(name)
	checked, err := found.Spec().Schema.Normalize(name, json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	ctx, call := tool.WithCaller(t.Context(), by), tool.Call{ID: "toolu_1", Name: name, Input: checked}
	access := found.Access(ctx, call)
	if between != nil {
		between()
	}
	return access, found.Run(ctx, call)
}

func TestEnterPlanMode(t *testing.T) {
	for approver, says := range map[builtin.Approver]string{
		builtin.ApprovedByNobody: "It needs no approval", builtin.ApprovedByLead: "The lead decides", builtin.ApprovedByPerson: "The person decides",
	} {
		p := newPlanner(t, "acceptEdits", approver)
		access, r := p.call(t, chief, "EnterPlanMode", `{}`, nil)
		if access.Ask || r.IsError || p.mode != "plan" || !strings.Contains(r.Text, "Plan file: "+p.file+"\n") || !strings.Contains(r.Text, says) {
			t.Errorf("approver %d: %+v, %+v in mode %s", approver, access, r, p.mode)
		}
		if _, r = p.call(t, chief, "EnterPlanMode", `{}`, nil); r.IsError || !strings.HasPrefix(r.Text, "You were already in plan mode.") {
			t.Errorf("again: %+v", r)
		}
		if diff := cmp.Diff([]string{"enter"}, p.did); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	p := newPlanner(t, "default", builtin.ApprovedByNobody)
	p.broken = errors.New("the mode was set by a person")
	if _, r := p.call(t, chief, "EnterPlanMode", `{}`, nil); !r.IsError || !strings.Contains(r.Text, "set by a person") {
		t.Errorf("refused: %+v", r)
	}
}

func TestExitPlanModeOutsideOfIt(t *testing.T) {
	p := newPlanner(t, "acceptEdits", builtin.ApprovedByPerson)
	p.write(t, "# Plan")
	access, r := p.call(t, chief, "ExitPlanMode", `{"pushToRemote":true,"anything":1}`, nil)
	if access.Ask || r.IsError || !strings.Contains(r.Text, "not in plan mode") || p.did != nil {
		t.Errorf("%+v, %+v, did %v", access, r, p.did)
	}
}

func TestExitPlanModeNeedsAPlan(t *testing.T) {
	for _, approver := range []builtin.Approver{builtin.ApprovedByNobody, builtin.ApprovedByLead, builtin.ApprovedByPerson} {
		p := newPlanner(t, "plan", approver)
		try := func(want string) {
			t.Helper()
			access, r := p.call(t, chief, "ExitPlanMode", `{}`, nil)
			if access.Ask || !r.IsError || !strings.Contains(r.Text, want) || p.mode != "plan" || p.did != nil {
				t.Errorf("approver %d: %+v, %+v, did %v", approver, access, r, p.did)
			}
		}
		try("No plan file found at " + p.file + ". Please write your plan to this file before calling ExitPlanMode.")
		p.write(t, " \n")
		try("is empty")
		p.write(t, strings.Repeat("x", 200_000))
		try("200000 bytes")
		_ = os.Remove(p.file)
		if err := os.Mkdir(p.file, 0o700); err != nil {
			t.Fatal(err)
		}
		try("not a regular file")
	}
}

// The text is that of facts: claude-code §6; the twin that of golden t4.
func TestTeammateSubmitsItsPlan(t *testing.T) {
	p := newPlanner(t, "plan", builtin.ApprovedByLead)
	p.write(t, "# Plan A")
	access, r := p.call(t, worker("pl"), "ExitPlanMode", `{}`, nil)
	if access.Ask || r.IsError {
		t.Fatalf("%+v, %+v", access, r)
	}
	if !strings.HasPrefix(r.Text, "Your plan has been submitted to the team lead for approval.\n") ||
		!strings.Contains(r.Text, "\nPlan file: "+p.file+"\n") || !strings.HasSuffix(r.Text, "\nRequest ID: plan_approval-1@pl@delta") ||
		!strings.Contains(r.Text, "End your turn") {
		t.Errorf("text:\n%s", r.Text)
	}
	twin := `{"plan":"# Plan A","isAgent":true,"filePath":"` + p.file + `","awaitingLeaderApproval":true,"requestId":"plan_approval-1@pl@delta"}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"submit # Plan A"}, p.did); diff != "" || p.mode != "plan" {
		t.Errorf("mode %s (-want +got):\n%s", p.mode, diff)
	}
	p.broken = errors.New("the lead is gone")
	if _, r := p.call(t, worker("pl"), "ExitPlanMode", `{}`, nil); !r.IsError || !strings.Contains(r.Text, "the lead is gone") {
		t.Errorf("not submitted: %+v", r)
	}
}

func TestWhoEnteredByItselfLeavesByItself(t *testing.T) {
	p := newPlanner(t, "plan", builtin.ApprovedByNobody)
	p.write(t, "# Plan")
	access, r := p.call(t, worker("w1"), "ExitPlanMode", `{}`, nil)
	if access.Ask || r.IsError || p.mode != "default" || !strings.Contains(r.Text, p.file) {
		t.Errorf("%+v, %+v in mode %s", access, r, p.mode)
	}
	p.mode, p.broken = "plan", errors.New("not now")
	if _, r := p.call(t, worker("w1"), "ExitPlanMode", `{}`, nil); !r.IsError || !strings.Contains(r.Text, "still in plan mode: not now") {
		t.Errorf("refused: %+v", r)
	}
}

func TestPersonIsShownThePlanInTheFile(t *testing.T) {
	p := newPlanner(t, "plan", builtin.ApprovedByPerson)
	p.write(t, "# Delete everything")
	access, r := p.call(t, chief, "ExitPlanMode", `{"plan":"# Something harmless","allowedPrompts":[{"tool":"Bash","prompt":"run tests"}]}`, nil)
	if !access.Ask || !access.Plan {
		t.Fatalf("no question: %+v", access)
	}
	shown := `{"plan":"# Delete everything","allowedPrompts":[{"tool":"Bash","prompt":"run tests"}],"planFilePath":"` + p.file + `"}`
	if diff := cmp.Diff(shown, string(access.Detail)); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	if r.IsError || p.mode != "default" || !strings.HasPrefix(r.Text, "The person approved your plan") {
		t.Errorf("%+v in mode %s", r, p.mode)
	}
	twin := `{"plan":"# Delete everything","isAgent":false,"filePath":"` + p.file + `"}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
}

func TestAnApprovalIsForThePlanThatWasShown(t *testing.T) {
	p := newPlanner(t, "plan", builtin.ApprovedByPerson)
	p.write(t, "# A")
	_, r := p.call(t, chief, "ExitPlanMode", `{}`, func() { p.write(t, "# B") })
	if r.IsError || !strings.HasSuffix(r.Text, "This is what they approved:\n\n# A") || !strings.Contains(string(r.Structured), `"plan":"# A"`) {
		t.Errorf("changed meanwhile: %+v", r)
	}
	// A plan that appears after the decision was shown to nobody.
	p = newPlanner(t, "plan", builtin.ApprovedByPerson)
	access, r := p.call(t, chief, "ExitPlanMode", `{}`, func() { p.write(t, "# B") })
	if access.Ask || !r.IsError || p.mode != "plan" || p.did != nil {
		t.Errorf("not shown: %+v, did %v", r, p.did)
	}
}

func TestAnswerThatSetsAModeIsLeftAlone(t *testing.T) {
	p := newPlanner(t, "plan", builtin.ApprovedByPerson)
	p.write(t, "# A")
	_, r := p.call(t, chief, "ExitPlanMode", `{}`, func() { p.mode = "acceptEdits" })
	if r.IsError || p.mode != "acceptEdits" || p.did != nil || !strings.HasPrefix(r.Text, "The person approved") {
		t.Errorf("%+v in mode %s, did %v", r, p.mode, p.did)
	}
}

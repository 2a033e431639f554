package builtin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/tool"
)

type exitPlanMode struct {
	planner Planner
	asked   judged[string] // the plan that the person was shown
}

const exitPlanModeDescription = `Says that your plan is complete and asks to leave plan mode. Call it in plan mode only; otherwise it does nothing.

Before you call it, write the plan to the plan file. The plan is not a parameter: this tool reads the file, and whoever decides sees its content.

What happens next depends on who you are:
- In a main session the person sees the plan. When they agree, plan mode is over and you carry the plan out. Otherwise you stay in plan mode: change the plan as they say, or ask them what they want, and call this tool again.
- If you are a teammate that has to plan first, the plan goes to the team lead. End your turn; the answer arrives as a message. You cannot change anything before that. When the lead rejects it, change the plan file and call this tool again.
- An agent that entered plan mode by itself leaves it at once.

Do not ask "is this plan all right?" in words or with AskUserQuestion: this tool asks exactly that. Use AskUserQuestion earlier, for decisions that the plan depends on. Do not call it when the work was only reading and answering.`

const exitPlanModeSchema = `{"type":"object","properties":{` +
	`"allowedPrompts":{"type":"array","description":"Kinds of commands that the plan needs. They are shown with the plan and allow nothing by themselves","items":{"type":"object","properties":{` +
	`"tool":{"type":"string","enum":["Bash"],"description":"The tool that is meant"},` +
	`"prompt":{"type":"string","description":"What kind of command, like \"run the tests\""}` +
	`},"required":["tool","prompt"],"additionalProperties":false}},` +
	`"pushToRemote":{"type":"boolean","description":"Has no effect here"},` +
	`"remoteSessionId":{"type":"string","description":"Has no effect here"},` +
	`"remoteSessionUrl":{"type":"string","description":"Has no effect here"},` +
	`"remoteSessionTitle":{"type":"string","description":"Has no effect here"}` +
	`},"additionalProperties":{}}`

var exitPlanModeSpec = tool.Spec{
	Name: "ExitPlanMode", Description: exitPlanModeDescription, Schema: tool.NewSchema(exitPlanModeSchema),
}

func (*exitPlanMode) Spec() tool.Spec { return exitPlanModeSpec }

// Access is a question when a person decides about the plan. They are shown
// the content of the file, never what the model put into the input.
func (t *exitPlanMode) Access(ctx context.Context, call tool.Call) tool.Access {
	t.asked.forget()
	caller := tool.CallerFrom(ctx)
	if !isPlanning(t.planner, caller) || t.planner.PlanApprover(caller) != ApprovedByPerson {
		return tool.Access{}
	}
	path := t.planner.PlanFile(caller)
	plan, refusal := readPlan(path)
	if refusal != "" {
		return tool.Access{} // Run says why
	}
	var shown jsonx.Object
	if err := json.Unmarshal(call.Input, &shown); err != nil {
		return tool.Access{}
	}
	shown.Set("plan", plan)
	shown.Set("planFilePath", path)
	t.asked.keep(call, plan)
	return tool.Access{Ask: true, Plan: true, Detail: jsonx.MustMarshal(shown)}
}

// exitedPlan is the structured twin (golden t4, t6: toolUseResult of
// ExitPlanMode).
type exitedPlan struct {
	Plan      string `json:"plan"`
	IsAgent   bool   `json:"isAgent"`
	FilePath  string `json:"filePath"`
	Awaiting  bool   `json:"awaitingLeaderApproval,omitempty"`
	RequestID string `json:"requestId,omitempty"`
}

func (t *exitPlanMode) Run(ctx context.Context, call tool.Call) tool.Result {
	caller := tool.CallerFrom(ctx)
	if approved, asked := t.asked.use(call); asked {
		return t.approved(ctx, caller, approved)
	}
	if !isPlanning(t.planner, caller) {
		return tool.Text("You are not in plan mode, so there is nothing to leave and nothing was submitted. Continue with the work.")
	}
	path := t.planner.PlanFile(caller)
	plan, refusal := readPlan(path)
	if refusal != "" {
		return tool.Error(refusal)
	}
	twin := exitedPlan{Plan: plan, IsAgent: caller.AgentID != "", FilePath: path}
	switch t.planner.PlanApprover(caller) {
	case ApprovedByPerson:
		return tool.Error("The person has not seen the plan, because it did not exist when they were asked. Call ExitPlanMode again.")
	case ApprovedByLead:
		return t.submit(ctx, caller, twin)
	}
	if err := t.planner.LeavePlan(ctx, caller); err != nil {
		return stillPlanning(err)
	}
	return withTwin("You have left plan mode; the plan needed no approval. Carry it out now.\n\nPlan file: "+path, twin)
}

func stillPlanning(err error) tool.Result {
	return tool.Error("You are still in plan mode: " + err.Error() + ".")
}

// approved leaves plan mode after the person has approved the plan. Their answer may
// have set another mode already, which then stays.
func (t *exitPlanMode) approved(ctx context.Context, caller tool.Caller, plan string) tool.Result {
	if isPlanning(t.planner, caller) {
		if err := t.planner.LeavePlan(ctx, caller); err != nil {
			return stillPlanning(err)
		}
	}
	path := t.planner.PlanFile(caller)
	text := "The person approved your plan, and plan mode is over. Carry the plan out now, as it was approved: if it turns out to be wrong in " +
		"something that matters, say so before you do it another way.\n\nPlan file: " + path
	if now, _ := readPlan(path); now != plan {
		text += "\n\nThe file has changed since they were asked. This is what they approved:\n\n" + plan
	}
	return withTwin(text, exitedPlan{Plan: plan, IsAgent: caller.AgentID != "", FilePath: path})
}

// submit sends the plan to the lead (text: facts: claude-code §6).
func (t *exitPlanMode) submit(ctx context.Context, caller tool.Caller, twin exitedPlan) tool.Result {
	sent, err := t.planner.SubmitPlan(ctx, caller, twin.Plan)
	if err != nil {
		return tool.Error("The plan was not submitted, and you are still in plan mode: " + err.Error() + ".")
	}
	twin.Awaiting, twin.RequestID = true, sent.RequestID
	return withTwin(fmt.Sprintf("Your plan has been submitted to the team lead for approval.\n\nPlan file: %s\n\n"+
		"You are still in plan mode. End your turn now: the answer comes by itself, as a message. Once the plan is approved you can begin; "+
		"if it is rejected, change the plan file as the feedback says and call ExitPlanMode again.\n\nRequest ID: %s",
		twin.FilePath, sent.RequestID), twin)
}

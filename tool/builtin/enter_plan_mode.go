package builtin

import (
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/tool"
)

type enterPlanMode struct{ planner Planner }

const enterPlanModeDescription = `Puts you into plan mode: until you leave it you can read and search but change nothing, so that you think the work through before you begin it. This needs no approval.

Use it before work where a wrong start is expensive: a change across many files, a new part that can be built in several ways, a change of structure or of a format, or a request that you have to investigate before you know what it means. Do not use it for a small or obvious change, for a plain question, or for searching alone.

In plan mode:
- Read, search, and ask what you need to know. Files cannot be changed and commands are not run, whatever was allowed before; this also applies to sub-agents that you start.
- Write the plan to the file that the result of this call names. It is the only one you may write. Say in it what will change and why, in which files, in which order, how it will be checked, and what you decided against.
- Call ExitPlanMode when the plan is complete. If there is a person, they then decide whether it is carried out.`

const enterPlanModeSchema = `{"type":"object","properties":{},"additionalProperties":false}`

var enterPlanModeSpec = tool.Spec{
	Name: "EnterPlanMode", Description: enterPlanModeDescription, Schema: tool.NewSchema(enterPlanModeSchema),
}

func (enterPlanMode) Spec() tool.Spec { return enterPlanModeSpec }

func (enterPlanMode) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

func (t enterPlanMode) Run(ctx context.Context, _ tool.Call) tool.Result {
	caller := tool.CallerFrom(ctx)
	text := "You are in plan mode now. "
	if isPlanning(t.planner, caller) {
		text = "You were already in plan mode. "
	} else if err := t.planner.EnterPlan(ctx, caller); err != nil {
		return tool.Error("Plan mode was not entered: " + err.Error() + ".")
	}
	text += fmt.Sprintf("Commands are not run and files cannot be changed, except the plan file, which you write with Write and Edit.\n\n"+
		"Plan file: %s\n\nCall ExitPlanMode when the plan in it is complete. %s", t.planner.PlanFile(caller), decides(t.planner.PlanApprover(caller)))
	result := tool.Text(text)
	result.Structured = jsonx.MustMarshal(map[string]string{"message": text})
	return result
}

// decides says who decides about the plan.
func decides(by Approver) string {
	switch by {
	case ApprovedByLead:
		return "The lead decides about it."
	case ApprovedByPerson:
		return "The person decides about it."
	}
	return "It needs no approval: you then carry it out."
}

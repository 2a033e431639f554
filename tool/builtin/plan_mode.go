package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/tool"
)

// Planner reports and changes the mode of the calling session, and says where its
// plan is kept. Only the permission rules keep a session in plan mode from changing
// things; these tools merely begin and end the mode.
type Planner interface {
	// Mode is the permission mode of the calling session at this moment.
	Mode(caller tool.Caller) string
	// PlanFile is the absolute path of the file that the caller writes its plan
	// to. It stays the same for as long as the caller lives.
	PlanFile(caller tool.Caller) string
	// PlanApprover says who decides whether the caller may leave plan mode.
	PlanApprover(caller tool.Caller) Approver
	// EnterPlan puts the caller into plan mode. It needs no approval.
	EnterPlan(ctx context.Context, caller tool.Caller) error
	// SubmitPlan asks the lead to approve the plan, and returns when the request has
	// been sent. The caller stays in plan mode until the answer arrives.
	SubmitPlan(ctx context.Context, caller tool.Caller, plan string) (PlanSubmitted, error)
	// LeavePlan restores the mode from before, or sets the one in which an approved
	// plan is carried out. It is called when a person has approved the plan, or when
	// it needs no approval.
	LeavePlan(ctx context.Context, caller tool.Caller) error
}

// PlanSubmitted is a plan that awaits approval.
type PlanSubmitted struct {
	RequestID string
}

// Approver is who decides about a plan.
type Approver int

// The approvers.
const (
	// ApprovedByNobody lets an agent leave the plan mode that it entered by
	// itself.
	ApprovedByNobody Approver = iota
	// ApprovedByLead is for a teammate that was started to plan first.
	ApprovedByLead
	// ApprovedByPerson is for a main session that a person works with.
	ApprovedByPerson
)

// PlanTools are the tools that begin and end planning.
func PlanTools(planner Planner) []tool.Tool {
	return []tool.Tool{&exitPlanMode{planner: planner}, enterPlanMode{planner}}
}

func isPlanning(p Planner, caller tool.Caller) bool {
	return p.Mode(caller) == string(permission.Plan)
}

// readPlan reads a plan file. The refusal is for the model.
func readPlan(path string) (plan, refusal string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Sprintf("No plan file found at %s. Please write your plan to this file before calling ExitPlanMode.", path)
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Sprintf("%s is not a regular file, so it cannot be read as a plan.", path)
	case err == nil && info.Size() > maxWritten:
		return "", fmt.Sprintf("The plan in %s has %d bytes, more than the %d allowed. Shorten it: say what changes where, not every line.",
			path, info.Size(), maxWritten)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Sprintf("The plan file %s cannot be read: %v.", path, err)
	}
	if strings.TrimSpace(string(content)) == "" {
		return "", fmt.Sprintf("The plan file %s is empty. Write your plan to this file before calling ExitPlanMode.", path)
	}
	return string(content), ""
}

// judged keeps what a permission decision was about from a call's Access to its Run,
// so that nothing else is done. It is for tools that are not Parallel: their calls
// come one at a time, and it holds the last.
type judged[T any] struct {
	call  string
	value T
}

func (j *judged[T]) keep(call tool.Call, value T) { j.call, j.value = call.ID, value }

func (j *judged[T]) forget() { *j = judged[T]{} }

// use returns what was decided about for this call, once; false when nothing was.
func (j *judged[T]) use(call tool.Call) (T, bool) {
	kept := *j
	j.forget()
	return kept.value, kept.call != "" && kept.call == call.ID
}

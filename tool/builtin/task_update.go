package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type taskUpdate struct {
	teams *team.Teams
	check checker
	asked judged[string] // the check that may be run
}

const taskUpdateDescription = `Changes a task of the task list: its status, owner, texts, or dependencies. Give only the fields to change.

Status: pending -> in_progress -> completed.
- Set in_progress when you begin, before the first edit. For a teammate this also claims the task: it becomes yours unless it belongs to another agent or is still blocked; then the call is refused, and you choose another one.
- Set completed only when the work is entirely done and you have checked it. When checks fail, a part is missing, or you ran into an error, leave it in_progress, and tell the lead what is in the way or add a task for it.
- A task with a check (TaskGet shows it) is completed only when the check passes: it runs in your working folder when you set completed, and the call waits for it. If it fails, you get its output and the task stays as it is. Fix the cause; never make a check pass by weakening what it tests.
- Set deleted to remove a task that is no longer needed. Its number is not used again and it no longer blocks anything.

owner: the name of a member of the team. The new owner is notified by a message. An empty string removes the owner, so that anybody may claim the task.
addBlockedBy: numbers of tasks that must be completed before this one may begin. addBlocks: the reverse. Both tasks must exist, and there must be no cycles.
metadata: values to merge into those of the task; null removes a key. The key check holds the command that proves the task; in a team only the lead can change or remove it once it is set.

Read the task with TaskGet before you change its texts: somebody else may have changed them.`

const taskUpdateSchema = `{"type":"object","properties":{` +
	`"taskId":{"type":"string","description":"The task's number"},` +
	`"subject":{"type":"string","description":"New subject"},` +
	`"description":{"type":"string","description":"New description"},` +
	`"activeForm":{"type":"string","description":"New text to show while it is in progress"},` +
	`"status":{"anyOf":[{"type":"string","enum":["pending","in_progress","completed"]},{"type":"string","const":"deleted"}],"description":"New status"},` +
	`"addBlocks":{"type":"array","items":{"type":"string"},"description":"Numbers of tasks that wait for this one"},` +
	`"addBlockedBy":{"type":"array","items":{"type":"string"},"description":"Numbers of tasks that this one waits for"},` +
	`"owner":{"type":"string","description":"Name of the member who is to do it; empty for none"},` +
	`"metadata":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{},"description":"Values to merge; null removes a key. check is a command that must pass before the task counts as completed"}` +
	`},"required":["taskId"],"additionalProperties":false}`

var taskUpdateSpec = tool.Spec{
	Name: "TaskUpdate", Description: taskUpdateDescription, Schema: tool.NewSchema(taskUpdateSchema),
	Delegates: true,
}

// nextTask is added to the result when a teammate has completed a task.
const nextTask = "\n\nCall TaskList now: this may have unblocked other tasks, and the next open one can be yours."

func (*taskUpdate) Spec() tool.Spec { return taskUpdateSpec }

// Access is that of the task's check, when the call would run it.
func (t *taskUpdate) Access(ctx context.Context, call tool.Call) tool.Access {
	t.asked.forget()
	in, failed := parseInput[taskUpdateInput](call)
	if failed != nil || !in.completes() {
		return tool.Access{}
	}
	caller, id := tool.CallerFrom(ctx), taskID(in.TaskID)
	found, err := t.teams.Tasks.Get(ctx, caller, id)
	if err != nil {
		return tool.Access{} // Run says why
	}
	check := in.dueCheck(found)
	if check == "" {
		return tool.Access{}
	}
	t.asked.keep(call, check)
	return tool.Access{Command: check, Dir: t.check.dir(caller), As: bashSpec.Name, Detail: checkDetail(found, check)}
}

type taskUpdateInput struct {
	TaskID       string       `json:"taskId"`
	Subject      *string      `json:"subject"`
	Description  *string      `json:"description"`
	ActiveForm   *string      `json:"activeForm"`
	Status       *task.Status `json:"status"`
	AddBlocks    []string     `json:"addBlocks"`
	AddBlockedBy []string     `json:"addBlockedBy"`
	Owner        *string      `json:"owner"`
	Metadata     jsonx.Object `json:"metadata"`
}

func (in taskUpdateInput) completes() bool { return in.Status != nil && *in.Status == task.Completed }

func (t *taskUpdate) Run(ctx context.Context, call tool.Call) tool.Result {
	judged, _ := t.asked.use(call)
	in, failed := parseInput[taskUpdateInput](call)
	if failed != nil {
		return *failed
	}
	if failed, ok := checkLength(map[string]string{"subject": deref(in.Subject), "description": deref(in.Description)}); !ok {
		return failed
	}
	if refusal := checkMetadata(in.Metadata); refusal != "" {
		return tool.UseError(refusal)
	}
	caller, id := tool.CallerFrom(ctx), taskID(in.TaskID)
	if !in.completes() {
		return t.update(ctx, caller, id, in, "")
	}
	if in.Metadata.Has(task.CheckKey) {
		return tool.UseError("A task's check cannot be changed by the call that completes it. Change it first.")
	}
	found, err := t.teams.Tasks.Get(ctx, caller, id)
	switch {
	case err != nil:
		return t.refused(ctx, id, err)
	case in.dueCheck(found) != judged:
		return tool.Error(fmt.Sprintf("The check of task #%s has just been changed. Nothing was run and nothing was changed: call TaskUpdate again.", id))
	case judged != "":
		return t.prove(ctx, call, found, judged, in)
	}
	return t.update(ctx, caller, id, in, "")
}

// update makes the change and describes the result; remark is added.
func (t *taskUpdate) update(ctx context.Context, caller tool.Caller, id string, in taskUpdateInput, remark string) tool.Result {
	out, err := t.teams.Tasks.Update(ctx, caller, id, task.Change{
		Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm, Status: in.Status,
		Owner: in.Owner, AddBlocks: taskIDs(in.AddBlocks), AddBlockedBy: taskIDs(in.AddBlockedBy), Metadata: in.Metadata,
	})
	if err != nil && len(out.Fields) == 0 {
		return t.refused(ctx, id, err)
	}
	result := updated(id, out)
	result.Text += remark
	if err != nil {
		result.Text += "\n\nThe change was made, but its new owner was not notified: " + err.Error() + ". Send a message yourself."
	}
	if seat, ok := t.teams.Seat(caller); ok && !seat.Lead && justCompleted(out) {
		result.Text += nextTask
	}
	return result
}

func justCompleted(out task.Outcome) bool {
	return out.After.Status == task.Completed && out.Before.Status != task.Completed
}

// statusChange is part of the structured twin (facts: claude-code §3.2).
type statusChange struct {
	From task.Status `json:"from"`
	To   task.Status `json:"to"`
}

type taskUpdated struct {
	Success       bool          `json:"success"`
	TaskID        string        `json:"taskId"`
	UpdatedFields []string      `json:"updatedFields"`
	StatusChange  *statusChange `json:"statusChange,omitempty"`
	Error         string        `json:"error,omitempty"`
}

// updated describes the result of a change. When nothing has changed the text ends
// in a space, as observed.
func updated(id string, out task.Outcome) tool.Result {
	twin := taskUpdated{Success: true, TaskID: id, UpdatedFields: listed(out.Fields)}
	if out.After.Status != out.Before.Status {
		twin.StatusChange = &statusChange{out.Before.Status, out.After.Status}
	}
	return tool.Result{
		Text: "Updated task #" + id + " " + strings.Join(out.Fields, ", "), Structured: jsonx.MustMarshal(twin),
	}
}

// refused says why nothing was changed.
func (t *taskUpdate) refused(ctx context.Context, id string, err error) tool.Result {
	switch {
	case errors.Is(err, task.ErrNotFound):
		if _, missing := t.teams.Tasks.Get(ctx, tool.CallerFrom(ctx), id); missing != nil {
			twin := taskUpdated{TaskID: id, UpdatedFields: []string{}, Error: taskNotFound}
			return tool.Result{Text: taskNotFound, Structured: jsonx.MustMarshal(twin)}
		}
		return tool.Error(capitalized(err.Error()) + " Nothing was changed. Dependencies must name tasks that exist; TaskList shows them.")
	case errors.Is(err, team.ErrCheck):
		return tool.Error(capitalized(err.Error()) + " Nothing was changed. If the check is wrong, say why to " + mailbox.LeadName + " with SendMessage.")
	case errors.Is(err, task.ErrCycle):
		return tool.Error(capitalized(err.Error()) + " Nothing was changed.")
	case errors.Is(err, task.ErrOwned):
		return tool.Error(capitalized(err.Error()) + " Nothing was changed. Call TaskList and claim another task; to take this one over, agree with its owner and set owner.")
	case errors.Is(err, task.ErrBlocked):
		return tool.Error(capitalized(err.Error()) + " Nothing was changed. Call TaskList and claim a task that is not blocked.")
	}
	return teamError(err)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func taskIDs(asked []string) []string {
	ids := make([]string, len(asked))
	for i, a := range asked {
		ids[i] = taskID(a)
	}
	return ids
}

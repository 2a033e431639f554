package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type taskGet struct{ teams *team.Teams }

const taskGetDescription = `Shows one task of the task list in full: its description, its status, which tasks it waits for and which wait for it, and, if there is one, the check that must pass before it counts as completed, with its last result.

Call it before you begin a task: TaskList shows subjects only, and what counts as done is in the description. Do not begin a task whose blockers are not all completed; "Blocked by" also names completed blockers, so call TaskList to see what still blocks it.`

const taskGetSchema = `{"type":"object","properties":{` +
	`"taskId":{"type":"string","description":"The task's number, as TaskList shows it"}` +
	`},"required":["taskId"],"additionalProperties":false}`

var taskGetSpec = tool.Spec{
	Name: "TaskGet", Description: taskGetDescription, Schema: tool.NewSchema(taskGetSchema),
	Parallel: true, ReadOnly: true, Delegates: true,
}

func (taskGet) Spec() tool.Spec { return taskGetSpec }

func (taskGet) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

// taskNotFound is the text for a number that no task has; it is not an error
// (facts: claude-code §3.2).
const taskNotFound = "Task not found"

type taskGetInput struct {
	TaskID string `json:"taskId"`
}

func (t taskGet) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[taskGetInput](call)
	if failed != nil {
		return *failed
	}
	found, err := t.teams.Tasks.Get(ctx, tool.CallerFrom(ctx), taskID(in.TaskID))
	if errors.Is(err, task.ErrNotFound) {
		return tool.Result{Text: taskNotFound, Structured: json.RawMessage(`{"task":null}`)}
	}
	if err != nil {
		return teamError(err)
	}
	return tool.Result{Text: taskText(found), Structured: jsonx.MustMarshal(map[string]any{"task": taskView{
		found.ID, found.Subject, found.Description, found.Status, listed(found.Blocks), listed(found.BlockedBy),
	}})}
}

type taskView struct {
	ID          string      `json:"id"`
	Subject     string      `json:"subject"`
	Description string      `json:"description"`
	Status      task.Status `json:"status"`
	Blocks      []string    `json:"blocks"`
	BlockedBy   []string    `json:"blockedBy"`
}

func taskText(t task.Task) string {
	text := fmt.Sprintf("Task #%s: %s\nStatus: %s\nDescription: %s", t.ID, t.Subject, t.Status, t.Description)
	if len(t.BlockedBy) > 0 {
		text += "\nBlocked by: " + numbers(t.BlockedBy)
	}
	if len(t.Blocks) > 0 {
		text += "\nBlocks: " + numbers(t.Blocks)
	}
	if check := t.Check(); check != "" {
		text += "\nCheck: " + check
	}
	if e, ok := t.Checked(); ok {
		text += "\n" + evidenceText(e)
	}
	if t.IsUnproved() {
		text += "\nNot proved: it was set completed without its check passing. Set it completed to have the check run."
	}
	return text
}

// taskID reads a task's number as models write it: 3 or #3.
func taskID(asked string) string { return strings.TrimPrefix(strings.TrimSpace(asked), "#") }

// numbers writes ids as "#1, #2".
func numbers(ids []string) string { return "#" + strings.Join(ids, ", #") }

// listed makes an absent list an empty one.
func listed(ids []string) []string {
	if ids == nil {
		return []string{}
	}
	return ids
}

package builtin

import (
	"context"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type taskCreate struct{ teams *team.Teams }

const taskCreateDescription = `Adds a task to the task list. A team shares one list; otherwise the list is your own and the person sees it.

Use it when the work has three or more distinct steps, when the person asks for several things, or when you lead a team and assign work. Do not use it for a single simple step: just do it.

How to divide work into tasks:
- A task is one piece of work with a clear end that one agent can finish alone. Two agents must never need to edit the same file at the same time: divide along files or modules, or make one task wait for the other.
- subject: short and imperative ("Add retry to the upload client").
- description: everything that an agent needs that has not seen this conversation: the goal, the files, what counts as done, how to check it, what not to touch.
- metadata.check: a command that proves the work, like "go test ./parser/...", if there is one. It runs in the owner's working folder when the task is set completed, and the task is completed only if it passes. Choose one that fails now, takes minutes at most, and whose output nobody has to judge.
- activeForm: what is shown while the task is in progress ("Adding retry to the upload client").

A new task is pending and has no owner. The result has its number. Set dependencies with TaskUpdate (addBlockedBy) before you start teammates: an idle teammate claims any open task that is not blocked. Call TaskList first, so that you do not add a task twice.`

const taskCreateSchema = `{"type":"object","properties":{` +
	`"subject":{"type":"string","description":"What is to be done, in a few words, imperative"},` +
	`"description":{"type":"string","description":"Everything that its owner has to know, and what counts as done"},` +
	`"activeForm":{"type":"string","description":"Shown while it is in progress, like \"Writing the parser\""},` +
	`"metadata":{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{},"description":"Further values to keep with the task. check is a command that must pass before the task counts as completed"}` +
	`},"required":["subject","description"],"additionalProperties":false}`

var taskCreateSpec = tool.Spec{
	Name: "TaskCreate", Description: taskCreateDescription, Schema: tool.NewSchema(taskCreateSchema),
	Delegates: true,
}

func (taskCreate) Spec() tool.Spec { return taskCreateSpec }

func (taskCreate) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

type taskCreateInput struct {
	Subject     string       `json:"subject"`
	Description string       `json:"description"`
	ActiveForm  string       `json:"activeForm"`
	Metadata    jsonx.Object `json:"metadata"`
}

func (t taskCreate) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[taskCreateInput](call)
	if failed != nil {
		return *failed
	}
	if failed, ok := checkLength(map[string]string{"subject": in.Subject, "description": in.Description}); !ok {
		return failed
	}
	if refusal := checkMetadata(in.Metadata); refusal != "" {
		return tool.UseError(refusal)
	}
	created, err := t.teams.Tasks.Create(ctx, tool.CallerFrom(ctx), task.Task{
		Subject: in.Subject, Description: in.Description, ActiveForm: in.ActiveForm, Metadata: in.Metadata, Status: task.Pending,
	})
	if err != nil {
		return teamError(err)
	}
	type taskRef struct {
		ID      string `json:"id"`
		Subject string `json:"subject"`
	}
	result := tool.Text("Task #" + created.ID + " created successfully: " + created.Subject)
	result.Structured = jsonx.MustMarshal(map[string]any{"task": taskRef{created.ID, created.Subject}})
	return result
}

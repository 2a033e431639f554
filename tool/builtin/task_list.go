package builtin

import (
	"context"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type taskList struct{ teams *team.Teams }

const taskListDescription = `Shows the task list: for each task its number, status, subject, owner, and which unfinished tasks it still waits for.

When to call it:
- before you plan or hand out work, to see what is there;
- after you completed a task, to see what that unblocked and what to do next;
- as the lead, when a teammate reports or goes idle, to see how far the team is. You need not call it over and over: you are told when something happens.

To take a task: choose one that is pending, has no owner and is blocked by nothing, the lowest number first since earlier tasks often prepare later ones; read it with TaskGet; set it in_progress with TaskUpdate. Tasks with an owner belong to that agent, leave them alone unless you are asked to take over.`

const taskListSchema = `{"type":"object","properties":{},"additionalProperties":false}`

var taskListSpec = tool.Spec{
	Name: "TaskList", Description: taskListDescription, Schema: tool.NewSchema(taskListSchema), ReadOnly: true, Parallel: true,
}

func (taskList) Spec() tool.Spec { return taskListSpec }

func (taskList) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

func (t taskList) Run(ctx context.Context, _ tool.Call) tool.Result {
	all, err := t.teams.ListTasks(ctx, tool.CallerFrom(ctx))
	if err != nil {
		return teamError(err)
	}
	lines, rows := []string{}, []taskRow{}
	open := openTasks(all)
	for _, item := range all {
		if item.Internal() {
			continue
		}
		row := taskRow{item.ID, item.Subject, item.Status, item.Owner, []string{}}
		for _, id := range item.BlockedBy {
			if open[id] {
				row.BlockedBy = append(row.BlockedBy, id)
			}
		}
		rows = append(rows, row)
		lines = append(lines, row.line())
	}
	result := tool.Text("No tasks found")
	if len(lines) > 0 {
		result.Text = strings.Join(lines, "\n")
	}
	result.Structured = jsonx.MustMarshal(map[string]any{"tasks": rows})
	return result
}

// taskRow is a line of the list; BlockedBy has only what still holds the task
// back.
type taskRow struct {
	ID        string      `json:"id"`
	Subject   string      `json:"subject"`
	Status    task.Status `json:"status"`
	Owner     string      `json:"owner,omitempty"`
	BlockedBy []string    `json:"blockedBy"`
}

func (r taskRow) line() string {
	line := "#" + r.ID + " [" + string(r.Status) + "] " + strings.Join(strings.Fields(r.Subject), " ")
	if r.Owner != "" {
		line += " (" + r.Owner + ")"
	}
	if len(r.BlockedBy) > 0 {
		line += " [blocked by " + numbers(r.BlockedBy) + "]"
	}
	return line
}

// openTasks has the ids of the tasks that are not completed.
func openTasks(all []task.Task) map[string]bool {
	open := make(map[string]bool, len(all))
	for _, t := range all {
		open[t.ID] = t.Status != task.Completed
	}
	return open
}

package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type taskList struct{ teams *team.Teams }

const taskListDescription = `Shows the task list: for each task its number, status, subject, owner, and which unfinished tasks it still waits for.

When to call it:
- before you plan or assign work, to see what exists;
- after you have completed a task, to see what that unblocked and what to do next;
- as the lead, when a teammate reports or goes idle, to see the progress of the team. You need not poll: you are notified when something happens.

To claim a task: choose one that is pending, has no owner and is not blocked, the lowest number first since earlier tasks often prepare later ones; read it with TaskGet; set it in_progress with TaskUpdate. A task with an owner belongs to that agent; leave it alone unless you are asked to take over.

"[check]" marks a task with a check that has not passed yet, "[not proved]" one that a program which runs no checks has set completed: set it completed yourself to run its check. Of a long list you see the most important tasks, and how many there are of each kind.`

const taskListSchema = `{"type":"object","properties":{},"additionalProperties":false}`

var taskListSpec = tool.Spec{
	Name: "TaskList", Description: taskListDescription, Schema: tool.NewSchema(taskListSchema),
	Parallel: true, ReadOnly: true, Delegates: true,
}

func (taskList) Spec() tool.Spec { return taskListSpec }

func (taskList) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

func (t taskList) Run(ctx context.Context, _ tool.Call) tool.Result {
	all, err := t.teams.Tasks.List(ctx, tool.CallerFrom(ctx))
	if err != nil {
		return teamError(err)
	}
	rows := rowsOf(all)
	if len(rows) == 0 {
		return tool.Result{Text: "No tasks found", Structured: jsonx.MustMarshal(taskTable{Tasks: rows})}
	}
	shown, rest := screenful(rows)
	var text strings.Builder
	for i, row := range shown {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(row.line())
	}
	twin := taskTable{Tasks: shown}
	if rest > 0 {
		text.WriteString("\n" + countLine(rows, rest))
		twin.Total = len(rows)
	}
	return tool.Result{Text: text.String(), Structured: jsonx.MustMarshal(twin)}
}

// taskTable is the structured twin.
type taskTable struct {
	Tasks []taskRow `json:"tasks"`
	Total int       `json:"total,omitempty"` // ours: of all tasks, when Tasks has not all
}

// taskRow is a line of the list; BlockedBy has only what still blocks the
// task.
type taskRow struct {
	ID        string      `json:"id"`
	Subject   string      `json:"subject"`
	Status    task.Status `json:"status"`
	Owner     string      `json:"owner,omitempty"`
	BlockedBy []string    `json:"blockedBy"`

	unproved bool // it has a check that has not passed
}

// rowsOf are the tasks that are shown.
func rowsOf(all []task.Task) []taskRow {
	open := openTasks(all)
	rows := []taskRow{}
	for _, item := range all {
		if item.Internal() {
			continue
		}
		row := taskRow{item.ID, item.Subject, item.Status, item.Owner, []string{}, item.Check() != "" && !item.IsProved()}
		for _, id := range item.BlockedBy {
			if open[id] {
				row.BlockedBy = append(row.BlockedBy, id)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// What one line shows at most.
const (
	maxSubject  = 200 // characters
	maxBlockers = 10
)

func (r taskRow) line() string {
	line := "#" + r.ID + " [" + string(r.Status) + "] " + cut(strings.Join(strings.Fields(r.Subject), " "), maxSubject)
	if r.Owner != "" {
		line += " (" + r.Owner + ")"
	}
	if len(r.BlockedBy) > 0 {
		line += " [blocked by " + someNumbers(r.BlockedBy) + "]"
	}
	switch {
	case r.unproved && r.Status == task.Completed:
		line += " [not proved]"
	case r.unproved:
		line += " [check]"
	}
	return line
}

// someNumbers writes the first of many ids, and how many more there are.
func someNumbers(ids []string) string {
	if n := len(ids); n > maxBlockers {
		return fmt.Sprintf("%s and %d more", numbers(ids[:maxBlockers]), n-maxBlockers)
	}
	return numbers(ids)
}

// openTasks has the ids of the tasks that are not completed.
func openTasks(all []task.Task) map[string]bool {
	open := make(map[string]bool, len(all))
	for _, t := range all {
		open[t.ID] = t.Status != task.Completed
	}
	return open
}

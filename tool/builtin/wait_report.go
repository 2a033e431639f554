package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

// waitReport is the outcome of a wait.
type waitReport struct {
	in       waitInput
	progress team.Progress
	jobs     []*job.Job
	cause    error // why it ended, if not because everything was done
}

// waited is the structured twin.
type waited struct {
	Done  bool       `json:"done"`
	Ended string     `json:"ended"` // done, timeout, input or interrupted
	Items []waitItem `json:"items"`
}

// waitItem is one thing that was waited for.
type waitItem struct {
	Kind   string `json:"kind"` // task, agent or job
	ID     string `json:"id"`
	Done   bool   `json:"done"`
	Status string `json:"status"`
	Owner  string `json:"owner,omitempty"`

	line string
}

func (r waitReport) result() tool.Result {
	items := r.items()
	done := 0
	for _, item := range items {
		if item.Done {
			done++
		}
	}
	twin := waited{Done: done == len(items) || r.in.Mode == "any" && done > 0, Items: items}
	var head string
	twin.Ended, head = r.ending(twin.Done, done, len(items))
	text := []string{head}
	for _, item := range items {
		mark := "- [ ] "
		if item.Done {
			mark = "- [x] "
		}
		text = append(text, mark+item.line)
	}
	return tool.Result{Text: strings.Join(text, "\n"), Structured: jsonx.MustMarshal(twin)}
}

// ending says why the wait ended, for the twin and for the model.
func (r waitReport) ending(isDone bool, done, all int) (ended, text string) {
	far := fmt.Sprintf("%d of %d done:", done, all)
	switch {
	case all == 0:
		return "done", "There is nobody to wait for: you have no teammates."
	case isDone:
		return "done", far
	case errors.Is(r.cause, errTimeUp):
		return "timeout", fmt.Sprintf("The time is up (%s). %s", r.in.timeout(), far)
	case errors.Is(r.cause, errInputWaits):
		return "input", "Something for you came in; it follows. The wait has ended early. " + far
	}
	return "interrupted", "The wait was interrupted. " + far
}

func (r waitReport) items() []waitItem {
	items := []waitItem{}
	for _, t := range r.progress.Tasks {
		items = append(items, waitItem{"task", t.ID, t.Done, string(t.Status), t.Owner, taskWaited(t)})
	}
	for _, a := range r.progress.Agents {
		items = append(items, waitItem{Kind: "agent", ID: a.Name, Done: a.Done, Status: string(a.State), line: agentWaited(a)})
	}
	for _, j := range r.jobs {
		info := j.Info()
		items = append(items, waitItem{
			Kind: "job", ID: info.ID, Done: info.Status != job.Running, Status: string(info.Status), line: jobWaited(j, info),
		})
	}
	return items
}

func taskWaited(t team.AwaitedTask) string {
	line := "task #" + t.ID
	if t.Status == task.Deleted {
		return line + ": it is not on the list any more"
	}
	line += " " + cut(strings.Join(strings.Fields(t.Subject), " "), maxSubject) + ": " + string(t.Status)
	switch {
	case t.Owner != "":
		line += ", owned by " + t.Owner
	case t.Status == task.Pending:
		line += ", unassigned"
	}
	if t.Status == task.Pending && len(t.WaitsFor) > 0 {
		line += ", waits for " + someNumbers(t.WaitsFor)
	}
	if t.Unproved {
		line += "; not proved: its check has not passed"
	}
	return line
}

func agentWaited(a team.AwaitedAgent) string {
	line := a.Name + ": "
	switch a.State {
	case team.AgentGone:
		line += "gone; it has left the team"
	case team.AgentWorking:
		line += "at work"
	default:
		line += string(a.State)
	}
	switch {
	case a.Reason == protocol.IdleFailed && a.Failure != "":
		line += "; its last turn failed: " + cut(strings.Join(strings.Fields(a.Failure), " "), maxSubject)
	case a.Reason == protocol.IdleFailed:
		line += "; its last turn failed"
	case a.Reason == protocol.IdleInterrupted:
		line += "; its last turn was interrupted"
	}
	if a.CompletedTask != "" {
		line += "; it last completed task #" + a.CompletedTask
	}
	return line
}

func jobWaited(j *job.Job, info job.Info) string {
	line := info.ID + " (" + cut(strings.Join(strings.Fields(info.Title), " "), maxSubject) + "): " + string(info.Status)
	if result, ended := j.Result(); ended && info.Kind == job.Shell {
		line += fmt.Sprintf(", exit code %d", result.ExitCode)
	}
	if info.Status != job.Running && info.Background {
		line += "; its notice follows"
	}
	return line
}

// waitRefused says why the call did not wait.
func waitRefused(err error) tool.Result {
	switch {
	case errors.Is(err, task.ErrNotFound):
		return tool.Error(capitalized(err.Error()) + " Nothing was waited for. TaskList shows the tasks that there are.")
	case errors.Is(err, team.ErrEndlessWait):
		return tool.Error(capitalized(err.Error()) + " Do your own part first; when only others can continue, end your turn, and their messages wake you.")
	case errors.Is(err, team.ErrNoTeam):
		return tool.Error("You run nothing of that name in the background, and you are in no team. Leave agents out to wait for everything that you run.")
	case errors.Is(err, context.Canceled):
		return tool.Error("The wait was interrupted.")
	}
	return teamError(err)
}

package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// Run is everything that a report is made from.
type Run struct {
	Project Project
	Model   string
	Before  Checks // as the project was delivered
	After   Checks // when the team was done
	Diff    Diff
	Record  *Record
	Err     error  // why the run was cut short; nil when it was not
	State   string // folder of the runtime's state; "" when it was removed
	Kept    bool   // the project's folder is not removed
}

// Report is the outcome of a demo. Its JSON form is the output of --json.
type Report struct {
	Result   string       `json:"result"`           // "passed" or "failed", as the project's checks say
	Reason   string       `json:"reason,omitempty"` // why it failed
	Model    string       `json:"model"`
	Answer   string       `json:"answer"` // the lead's last words
	Seconds  float64      `json:"seconds"`
	Before   Checks       `json:"before"`
	Checks   Checks       `json:"checks"`
	Team     string       `json:"team"`
	Agents   []AgentFacts `json:"agents"`
	Tasks    []TaskFacts  `json:"tasks"`
	Messages MailFacts    `json:"messages"`
	Diff     Diff         `json:"diff"`
	Folder   string       `json:"folder"`
	Kept     bool         `json:"kept"` // the folder is still there
	State    string       `json:"state,omitempty"`
}

// AgentFacts is what one agent did.
type AgentFacts struct {
	Name      string           `json:"name"`
	Role      string           `json:"role"` // "lead", "teammate" or "sub-agent"
	Color     string           `json:"color,omitempty"`
	Tasks     []string         `json:"tasks"` // ids of those that it owned at the end
	Rounds    int              `json:"rounds"`
	ToolCalls int              `json:"toolCalls"`
	Denied    int              `json:"denied"`
	Usage     transcript.Usage `json:"usage"`
	Seconds   float64          `json:"seconds"` // in turns
}

// TaskFacts is an item of the task list as it was last.
type TaskFacts struct {
	ID        string      `json:"id"`
	Subject   string      `json:"subject"`
	Status    task.Status `json:"status"`
	Owner     string      `json:"owner,omitempty"`
	BlockedBy []string    `json:"blockedBy"`
	Proof     Proof       `json:"proof"`
}

// MailFacts is what the agents wrote to each other.
type MailFacts struct {
	Count    int    `json:"count"`
	Protocol int    `json:"protocol"` // messages that the runtime posted by itself
	List     []Mail `json:"list"`
}

// NewReport sums up a run.
func NewReport(run Run) Report {
	r := Report{
		Result: "passed", Reason: run.reason(), Model: run.Model, Answer: run.Record.Answer,
		Seconds: seconds(run.Record.ended.Sub(run.Record.started)),
		Before:  run.Before, Checks: run.After, Team: run.Record.Team,
		Messages: MailFacts{len(run.Record.Mail), run.Record.Protocol, append([]Mail{}, run.Record.Mail...)},
		Diff:     run.Diff, Folder: run.Project.Dir, Kept: run.Kept, State: run.State,
		Agents: []AgentFacts{}, Tasks: []TaskFacts{},
	}
	if r.Reason != "" {
		r.Result = "failed"
	}
	for _, t := range run.Record.Tasks {
		r.Tasks = append(r.Tasks, TaskFacts{t.ID, t.Subject, t.Status, t.Owner, append([]string{}, t.BlockedBy...), run.Record.proof(t)})
	}
	r.addAgents(run.Record)
	return r
}

// Passed reports whether the project's checks pass and nothing else went wrong.
func (r Report) Passed() bool { return r.Result == "passed" }

// reason is why the run failed; "" when it did not.
func (run Run) reason() string {
	var reasons []string
	if failed := run.After.Failed(); len(failed) > 0 {
		first := failed[0]
		reasons = append(reasons, fmt.Sprintf("%d of %d checks fail, the first: %s %s", len(failed), len(run.After.Results), first.Part, first.What))
	}
	if changed := run.After.Changed; len(changed) > 0 {
		reasons = append(reasons, "these were changed, and are not the team's to change: "+strings.Join(changed, ", "))
	}
	if len(reasons) == 0 && !run.After.Passed {
		reasons = append(reasons, "the checks did not run to their end")
	}
	if run.Err != nil {
		reasons = append(reasons, run.Err.Error())
	}
	if len(reasons) > 0 {
		reasons = append(reasons, run.Record.Failures...)
	}
	return strings.Join(reasons, "; ")
}

func (r *Report) addAgents(record *Record) {
	sums := make(map[string]event.AgentTally)
	for _, sum := range record.tally.Agents() {
		sums[sum.Agent.ID] = sum
	}
	for _, m := range record.agents {
		sum := sums[m.id]
		facts := AgentFacts{
			Name: m.name, Role: m.role(), Color: m.color, Tasks: []string{},
			Rounds: sum.Rounds, ToolCalls: sum.ToolCalls, Denied: len(sum.Denied), Usage: sum.Spent().Usage, Seconds: seconds(sum.Took),
		}
		for _, t := range record.Tasks {
			if t.Owner != "" && record.nameOf(t.Owner) == m.name {
				facts.Tasks = append(facts.Tasks, t.ID)
			}
		}
		r.Agents = append(r.Agents, facts)
	}
}

func (m *member) role() string {
	switch {
	case m.lead:
		return "lead"
	case m.teammate:
		return "teammate"
	}
	return "sub-agent"
}

// seconds are rounded to milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

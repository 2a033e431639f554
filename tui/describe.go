package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// callFields are the input fields that say what a call is about, the most useful
// ones first.
var callFields = []string{
	"command", "file_path", "notebook_path", "pattern", "path", "url", "query",
	"to", "recipient", "subject", "name", "team_name", "description",
}

// Call describes a call in one clean line: the tool and its most useful input.
func Call(tool string, input json.RawMessage) string {
	about := about(input)
	if about == "" {
		return flat(tool)
	}
	return flat(tool) + "(" + about + ")" + changedLines(tool, input)
}

// changedLines counts the lines that an edit adds and removes; "" for other calls.
func changedLines(tool string, input json.RawMessage) string {
	var in struct {
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
		Content   string `json:"content"`
	}
	if tool != "Edit" && tool != "Write" || json.Unmarshal(input, &in) != nil {
		return ""
	}
	if tool == "Write" {
		return fmt.Sprintf("  +%d", len(textLines(in.Content)))
	}
	before, after := textLines(in.OldString), textLines(in.NewString)
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		before, after = before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	return fmt.Sprintf("  +%d −%d", len(after), len(before))
}

func textLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func about(input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return ""
	}
	text := func(name string) string {
		var value string
		if json.Unmarshal(fields[name], &value) != nil {
			return ""
		}
		return oneLine(value)
	}
	if id := text("taskId"); id != "" {
		return strings.TrimSpace("#" + id + " " + strings.ReplaceAll(text("status"), "_", " "))
	}
	var waited []string // what a Wait waits for
	for _, id := range list(fields["tasks"]) {
		waited = append(waited, "#"+strings.TrimPrefix(id, "#"))
	}
	if waited = append(waited, list(fields["agents"])...); len(waited) > 0 {
		return flat(strings.Join(waited, ", "))
	}
	for _, name := range callFields {
		if value := text(name); value != "" {
			return value
		}
	}
	return ""
}

// list are the texts of a field; none when it holds something else.
func list(field json.RawMessage) []string {
	var texts []string
	if json.Unmarshal(field, &texts) != nil {
		return nil
	}
	return texts
}

// Mail describes a message on its way, in one clean line.
func Mail(to mailbox.Address, m mailbox.Message) string {
	control, _ := protocol.Parse(m.Text)
	return protocol.Describe(to.Agent, m, control)
}

// taskStates are the marks of a task's states.
var taskStates = map[task.Status]string{
	task.Pending: "☐", task.InProgress: "◐", task.Completed: "☑", task.Deleted: "✗",
}

// TaskLine describes a task in one clean line: its state, its subject, its owner,
// and whether it is proved.
func TaskLine(t task.Task) string {
	line := taskStates[t.Status] + " #" + flat(t.ID) + " " + oneLine(t.Subject)
	if t.Owner != "" {
		line += " (" + flat(t.Owner) + ")"
	}
	if t.Status == task.Deleted {
		return line + " deleted"
	}
	return line + proof(t)
}

// proof says whether a task that carries a check is proved; "" for others.
func proof(t task.Task) string {
	if t.Check() == "" {
		return ""
	}
	command := cells.Fit(flat(t.Check()), 60)
	e, ok := t.Checked()
	at := e.At.Local().Format(time.TimeOnly)
	switch {
	case ok && e.Passed:
		return "  ✓ proved " + at + ": " + command
	case ok:
		note := fmt.Sprintf("  ✗ not proved, exit code %d at %s: %s", e.ExitCode, at, command)
		if last := lastLine(e.Output); last != "" {
			note += ": " + last
		}
		return note
	case t.IsUnproved():
		return "  ✗ not proved, never checked: " + command
	}
	return "  to prove: " + command
}

// lastLine is the last line that a command printed.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	return cells.Fit(flat(output[strings.LastIndexByte(output, '\n')+1:]), 80)
}

// flat makes one clean line of a name or a word that a model or a program wrote.
func flat(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

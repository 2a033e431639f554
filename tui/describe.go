package tui

import (
	"encoding/json"
	"strings"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// callFields are the input fields that tell people what a call is about, the
// most telling first.
var callFields = []string{
	"command", "file_path", "notebook_path", "pattern", "path", "url", "query",
	"to", "recipient", "subject", "name", "team_name", "description",
}

// Call is a call in a few words: the tool and what it is about, in one clean
// line.
func Call(tool string, input json.RawMessage) string {
	about := about(input)
	if about == "" {
		return flat(tool)
	}
	return flat(tool) + "(" + about + ")"
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
	for _, name := range callFields {
		if value := text(name); value != "" {
			return value
		}
	}
	return ""
}

// Mail describes a message on its way, in one clean line.
func Mail(to mailbox.Address, m mailbox.Message) string {
	from, recipient := flat(m.From), flat(to.Agent)
	control, ok := protocol.Parse(m.Text)
	if !ok {
		text := m.Summary
		if text == "" {
			text = m.Text
		}
		return from + " → " + recipient + ": " + oneLine(text)
	}
	switch c := control.(type) {
	case protocol.IdleNotification:
		return from + " is idle" + because(string(c.IdleReason), string(protocol.Available)) + because(c.FailureReason, "")
	case protocol.ShutdownRequest:
		return from + " asks " + recipient + " to end" + because(c.Reason, "")
	case protocol.ShutdownApproved:
		return from + " ends"
	case protocol.ShutdownRejected:
		return from + " goes on" + because(c.Reason, "")
	case protocol.Assignment:
		return from + " gives #" + flat(c.TaskID) + " to " + recipient + ": " + oneLine(c.Subject)
	case protocol.PlanRequest:
		return from + " asks for approval of its plan"
	case protocol.PlanResponse:
		if c.Approved {
			return from + " approves the plan of " + recipient
		}
		return from + " wants another plan of " + recipient + because(c.Feedback, "")
	case protocol.PermissionRequest:
		return from + " asks: may " + Call(c.ToolName, c.Input) + " run?"
	case protocol.PermissionResponse:
		if c.Error == "" {
			return recipient + " may"
		}
		return recipient + " may not" + because(c.Error, "")
	case protocol.PermissionSettled:
		return from + " has its answer"
	case protocol.StopRequest:
		return from + " stops " + recipient + because(c.Reason, "")
	case protocol.MailReturned:
		return from + " → " + recipient + ": what " + flat(c.From) + " wrote to " + flat(c.To) + " was never read"
	case protocol.LoopDamped:
		return from + " → " + recipient + ": " + flat(c.From) + " and " + flat(c.Peer) + " only answered each other"
	case protocol.OtherControl:
		return from + " → " + recipient + ": " + strings.ReplaceAll(flat(c.Type), "_", " ")
	}
	return from + " → " + recipient
}

// because adds a reason, unless it is the usual one.
func because(reason, usual string) string {
	if reason == "" || reason == usual {
		return ""
	}
	return " (" + oneLine(reason) + ")"
}

// taskStates are the marks of a task's states.
var taskStates = map[task.Status]string{
	task.Pending: "☐", task.InProgress: "◐", task.Completed: "☑", task.Deleted: "✗",
}

// TaskLine describes a task in one clean line.
func TaskLine(t task.Task) string {
	line := taskStates[t.Status] + " #" + flat(t.ID) + " " + oneLine(t.Subject)
	if t.Owner != "" {
		line += " (" + flat(t.Owner) + ")"
	}
	if t.Status == task.Deleted {
		line += " deleted"
	}
	return line
}

// flat makes one clean line of a name or a word that a model or a program wrote.
func flat(text string) string { return strings.Join(strings.Fields(Clean(text)), " ") }

package protocol

import (
	"cmp"
	"strings"

	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
)

// Describe is a message in one line for people, with its sender and recipient:
// what it does when c, its control part, is set, else its summary or its first
// words. Nothing in it can harm a terminal.
func Describe(to string, m mailbox.Message, c Control) string {
	from, to := line(m.From), line(to)
	if c == nil {
		return from + " → " + to + ": " + Preview(m)
	}
	if text := note(c); text != "" {
		return text
	}
	if what := deed(to, c); what != "" {
		return from + " " + what
	}
	if other, ok := c.(OtherControl); ok {
		return from + " → " + to + ": " + strings.ReplaceAll(line(other.Type), "_", " ")
	}
	return from + " → " + to
}

// Preview is what a message of an agent says, in one line: its summary, or its
// first words.
func Preview(m mailbox.Message) string { return line(cmp.Or(m.Summary, m.Text)) }

// line is text of any origin in one line, of a length that lists can bear.
func line(text string) string { return oneline.Within(400, text) }

// note is what the runtime itself reports with a message; "" for one of an agent.
func note(c Control) string {
	switch c := c.(type) {
	case Terminated:
		return line(c.Message)
	case MailReturned:
		return line(c.To) + " left before it was shown a message from " + line(c.From) + because(c.Summary, "")
	case LoopDamped:
		return line(c.From) + " and " + line(c.Peer) + " only kept answering each other, and were stopped"
	}
	return ""
}

// deed is what a message of the protocol does, said of its sender; "" for one
// that is not known.
func deed(to string, c Control) string {
	switch c := c.(type) {
	case IdleNotification:
		return "is idle" + because(string(c.IdleReason), string(Available)) + because(c.FailureReason, "")
	case ShutdownRequest:
		return "asks " + to + " to shut down" + because(c.Reason, "")
	case ShutdownApproved:
		return "shuts down"
	case ShutdownRejected:
		return "declines to shut down" + because(c.Reason, "")
	case StopRequest:
		return "stops " + to + because(c.Reason, "")
	case Assignment:
		return "assigns #" + line(c.TaskID) + " to " + to + ": " + line(c.Subject)
	case PlanRequest:
		return "asks for approval of its plan"
	case PlanResponse:
		if c.Approved {
			return "approves the plan of " + to
		}
		return "asks " + to + " to change its plan" + because(c.Feedback, "")
	case PermissionRequest:
		return "asks for permission to use " + line(c.ToolName) + because(c.Description, "May "+c.ToolName+" run?")
	case PermissionResponse:
		if c.Error == "" {
			return "gives " + to + " permission"
		}
		return "refuses " + to + " permission" + because(c.Error, "")
	case PermissionSettled:
		return "has an answer to its permission request"
	}
	return ""
}

// because adds a reason, unless it is the usual one.
func because(reason, usual string) string {
	if reason == "" || reason == usual {
		return ""
	}
	return " (" + line(reason) + ")"
}

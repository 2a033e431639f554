package protocol

import (
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
)

// Describe is a message in one line: what it does if it is protocol, else its
// summary or its first words.
func Describe(m mailbox.Message, c Control) string {
	switch c := c.(type) {
	case IdleNotification:
		return oneline.Of(m.From + " is idle (" + string(c.IdleReason) + ") " + c.Summary + c.FailureReason)
	case ShutdownRequest:
		return oneline.Of("asked to shut down: " + c.Reason)
	case StopRequest:
		return oneline.Of("is to be stopped: " + c.Reason)
	case MailReturned:
		return oneline.Of("mail of " + c.From + " to " + c.To + " came back: " + c.To + " has left before it was shown. " + c.Summary)
	case LoopDamped:
		return oneline.Of(c.From + " and " + c.Peer + " only answered each other, and were stopped from it")
	case Terminated:
		return oneline.Of(c.Message)
	case ShutdownRejected:
		return oneline.Of("goes on working: " + c.Reason)
	case Assignment:
		return oneline.Of("task #" + c.TaskID + " assigned: " + c.Subject)
	case PlanRequest:
		return oneline.Of("asks for approval of its plan " + c.PlanFilePath)
	case PlanResponse:
		if c.Approved {
			return "approved the plan"
		}
		return oneline.Of("wants the plan changed: " + c.Feedback)
	}
	if m.Summary != "" {
		return oneline.Of(m.Summary)
	}
	return oneline.Of(m.Text)
}

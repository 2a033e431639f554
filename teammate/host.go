package teammate

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Opener opens the sessions of a process. The caller closes them.
type Opener interface {
	Open(ctx context.Context, s session.Spec) (*session.Session, error)
}

// Host is the process in which teammates run, or which is a teammate itself. Its fields
// are set before the first session is opened and do not change then.
type Host struct {
	Sessions Opener
	Tree     *session.Tree
	Teams    *team.Teams
	Jobs     *job.Pool
	Records  roster.Records
	Tally    *event.Tally // of the tree's events; nil: what is used is not stored
	Project  string       // the working folder that names the transcripts' project
	// Main names the main session in events.
	Main event.Agent
	// PlanFile is where an agent writes its plan.
	PlanFile func(tool.Caller) string

	own *Process // what makes this process a teammate; nil in a lead's
}

// warn shows the person what went wrong where nobody waits for an error.
func (h *Host) warn(err error) { h.notify("warning", err.Error()) }

func (h *Host) notify(level, text string) {
	h.Tree.Stream.Publish(h.Main, event.Noticed{Level: level, Text: text})
}

// startingMode is the permission mode that a teammate begins in: "" is its lead's. One
// that must plan first is in plan mode until a plan of its own was approved.
func startingMode(ctx context.Context, seat *team.Seat, mustPlan bool) (permission.Mode, error) {
	if !mustPlan {
		return "", nil
	}
	name, approved, err := seat.Plans.ApprovedMode(ctx)
	if err != nil || !approved {
		return permission.Plan, err
	}
	return permission.ParseMode(name)
}

// Follow does for teammates what events of the tree ask for: it withdraws questions
// that were answered here from the lead, notes who makes progress with its work, and stores
// what a teammate's own process has used. It returns when the stream of events has ended.
func (h *Host) Follow(ctx context.Context, events func(yield func(event.Event) bool)) {
	for ev := range events {
		switch body := ev.Body.(type) {
		case event.Answered:
			h.withdraw(ctx, ev.Agent, body.ID)
		case event.Stored:
			if body.Entry.Kind == transcript.KindAssistant {
				h.own.keepUsage(ctx)
			}
		case event.ToolEnded:
			if body.Writes {
				h.progress(ev.Agent)
			}
		}
	}
}

// progress notes that a teammate does something besides writing mail.
func (h *Host) progress(agent event.Agent) {
	s, ok := h.Tree.Sessions.Find(agent.ID)
	if !ok {
		return
	}
	if seat, ok := h.Teams.Seat(s.Caller()); ok {
		seat.Progress()
	}
}

// withdraw notifies the lead that a question of a teammate needs no answer any more. A
// teammate that runs in the lead's process may have sent its question from a process
// of its own, which was killed.
func (h *Host) withdraw(ctx context.Context, agent event.Agent, id string) {
	var seat *team.Seat
	if h.own != nil {
		seat = h.own.seat
	} else if s, ok := h.Tree.Sessions.Find(agent.ID); ok {
		seat, _ = h.Teams.Seat(s.Caller())
	}
	if seat == nil || seat.Lead {
		return
	}
	if err := seat.Questions.Withdraw(ctx, id); err != nil {
		h.warn(fmt.Errorf("withdraw question %s: %w", id, err))
	}
}

// withdrawStale withdraws what a killed process of a teammate asked its lead, and what
// nobody waits for any more.
func (h *Host) withdrawStale(ctx context.Context, seat *team.Seat) {
	open, err := seat.Questions.Open(ctx)
	for _, a := range open {
		if !h.Tree.Questions.IsPending(a.ID) {
			err = errors.Join(err, seat.Questions.Withdraw(ctx, a.ID))
		}
	}
	if err != nil && ctx.Err() == nil {
		h.warn(fmt.Errorf("withdraw old questions: %w", err))
	}
}

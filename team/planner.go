package team

import (
	"context"
	"errors"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// planRecord is a teammate's newest plan request, as [RecordPlan] keeps it.
type planRecord struct {
	RequestID string `json:"requestId"`
	// Approval is the message that approved it, and Mode what came with it. When
	// that message is read again, because the agent was killed before it was shown,
	// it counts again.
	Approval mailbox.ID `json:"approval,omitempty"`
	Mode     string     `json:"mode,omitempty"`
}

// RequestPlan asks the lead to approve a plan and returns the request's id. The
// answer comes as [Mail] of the seat's inbox: with a Mode when the plan is
// approved. A new request takes the place of an older one.
func (s *Seat) RequestPlan(ctx context.Context, path, content string) (string, error) {
	if s.hasLeft() {
		return "", ErrLeft
	}
	if err := s.consent.turn.enter(ctx); err != nil {
		return "", err
	}
	defer s.consent.turn.leave()
	var older planRecord
	if err := s.teams.getRecord(ctx, s.Team, RecordPlan, s.Name, &older); err != nil && !errors.Is(err, roster.ErrNoRecord) {
		return "", err
	}
	at := time.Now()
	id := protocol.RequestID("plan_approval", at, roster.AgentID(s.Name, s.Team))
	// The answer may come before the post returns.
	if err := s.keepPlan(ctx, planRecord{RequestID: id}); err != nil {
		return "", err
	}
	err := s.postControl(ctx, mailbox.LeadName, at, protocol.PlanRequest{
		Type: protocol.TypePlanRequest, From: s.Name, Timestamp: protocol.Stamp(at), PlanFilePath: path, PlanContent: content, RequestID: id,
	})
	if err != nil {
		return "", errors.Join(err, s.keepPlan(context.WithoutCancel(ctx), older))
	}
	return id, nil
}

func (s *Seat) keepPlan(ctx context.Context, plan planRecord) error {
	if plan.RequestID == "" {
		return s.teams.records.Drop(ctx, s.Team, RecordPlan, s.Name)
	}
	return s.teams.putRecord(ctx, s.Team, RecordPlan, s.Name, plan)
}

// ApprovedMode is the permission mode that the approval of the agent's newest
// plan gave: what an agent that had to plan goes on with after a restart. ok is
// false when its newest plan is not approved, or there is none.
func (s *Seat) ApprovedMode(ctx context.Context) (mode string, ok bool, err error) {
	var plan planRecord
	err = s.teams.getRecord(ctx, s.Team, RecordPlan, s.Name, &plan)
	if errors.Is(err, roster.ErrNoRecord) {
		return "", false, nil
	}
	return plan.Mode, plan.Approval != "", err
}

// planAnswered deals with a plan response in a teammate's inbox. Only the lead's
// answer to the newest request counts, and an approval wins over a rejection.
func (t *Teams) planAnswered(ctx context.Context, seat *Seat, m mailbox.Message, c protocol.PlanResponse, mail *Mail) (show bool, err error) {
	if seat.Lead {
		return true, nil
	}
	if err := seat.consent.turn.enter(ctx); err != nil {
		return false, err
	}
	defer seat.consent.turn.leave()
	mail.Urgent = true
	var plan planRecord
	err = t.getRecord(ctx, seat.Team, RecordPlan, seat.Name, &plan)
	if err != nil && !errors.Is(err, roster.ErrNoRecord) {
		return false, err
	}
	switch {
	case m.From != mailbox.LeadName || plan.RequestID != c.RequestID || c.RequestID == "":
		mail.Text += systemNote("This answers no plan of yours that waits for an answer. It changes nothing.")
		return true, nil
	case plan.Approval != "" && plan.Approval != m.ID:
		return false, nil
	case !c.Approved:
		mail.Text += systemNote("Your plan was rejected. You are still in plan mode. Revise the plan as the feedback says, then call " + protocol.ExitPlanMode + " again.")
		return true, nil
	}
	if plan.Mode, err = t.grantedMode(ctx, seat, m, c.PermissionMode); err != nil {
		return false, err
	}
	plan.Approval = m.ID
	if err := seat.keepPlan(ctx, plan); err != nil {
		return false, err
	}
	mail.Mode = plan.Mode
	mail.Text += systemNote("Your plan was approved. You are out of plan mode and work in permission mode " + plan.Mode + " from now on: carry the plan out.")
	return true, nil
}

// grantedMode is the mode that an approval puts the agent in. Whoever can write
// to the inbox can forge an approval without a seal, so that lifts no permission
// checks unless the person says so.
func (t *Teams) grantedMode(ctx context.Context, seat *Seat, m mailbox.Message, asked string) (string, error) {
	mode := protocol.WorkingMode(asked)
	if mode != protocol.ModeBypass || t.policy.TrustUnsigned {
		return mode, nil
	}
	sealed, err := t.seals.Sealed(ctx, seat.Address(), m, sealedProtocol)
	if err != nil || sealed {
		return mode, err
	}
	return protocol.ModeDefault, nil
}

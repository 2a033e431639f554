package team

import (
	"context"
	"errors"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// RecordPlan is the kind of record that holds a teammate's newest plan request,
// under its name.
const RecordPlan = "plan"

// planRecord is a teammate's newest plan request.
type planRecord struct {
	RequestID string `json:"requestId"`
	// Approval is the message that approved the plan, and Mode the permission mode
	// that came with it. That message has its effect again when it is read again: the
	// agent may have been killed before its model was shown it.
	Approval mailbox.ID `json:"approval,omitempty"`
	Mode     string     `json:"mode,omitempty"`
}

// Request asks the lead to approve a plan and returns the request's id. The answer
// comes as [Mail] in the agent's inbox, with a Mode when the plan is approved. It
// takes the place of an older request. Errors: [ErrLeft].
func (p *Plans) Request(ctx context.Context, path, content string) (string, error) {
	if p.seat.hasLeft() {
		return "", ErrLeft
	}
	if err := p.changing.Lock(ctx); err != nil {
		return "", err
	}
	defer p.changing.Unlock()
	older, err := p.newest(ctx)
	if err != nil {
		return "", err
	}
	at := time.Now()
	id := protocol.RequestID("plan_approval", at, roster.AgentID(p.seat.Name, p.seat.Team))
	// Before the post, since the answer may come before that returns.
	if err := p.keep(ctx, planRecord{RequestID: id}); err != nil {
		return "", err
	}
	err = p.seat.postControl(ctx, mailbox.LeadName, at, protocol.PlanRequest{
		Type: protocol.TypePlanRequest, From: p.seat.Name, Timestamp: protocol.Stamp(at), PlanFilePath: path, PlanContent: content, RequestID: id,
	})
	if err != nil {
		return "", errors.Join(err, p.keep(context.WithoutCancel(ctx), older))
	}
	return id, nil
}

// newest is the newest plan request; the zero record when there is none.
func (p *Plans) newest(ctx context.Context) (planRecord, error) {
	var plan planRecord
	err := roster.GetRecord(ctx, p.records, p.seat.Team, RecordPlan, p.seat.Name, &plan)
	if errors.Is(err, roster.ErrNoRecord) {
		return planRecord{}, nil
	}
	return plan, err
}

func (p *Plans) keep(ctx context.Context, plan planRecord) error {
	if plan.RequestID == "" {
		return p.records.Drop(ctx, p.seat.Team, RecordPlan, p.seat.Name)
	}
	return roster.PutRecord(ctx, p.records, p.seat.Team, RecordPlan, p.seat.Name, plan)
}

// ApprovedMode is the permission mode that the approval of the agent's newest plan
// gave: an agent that had to plan goes on with it after a restart. ok is false when
// its newest plan is not approved, or there is none.
func (p *Plans) ApprovedMode(ctx context.Context) (mode string, ok bool, err error) {
	plan, err := p.newest(ctx)
	return plan.Mode, plan.Approval != "", err
}

// answered deals with a plan response in a teammate's inbox. Only the lead's answer
// to the newest request counts, and an approval wins over a rejection.
func (p *Plans) answered(ctx context.Context, m mailbox.Message, c protocol.PlanResponse, mail *Mail) (show bool, err error) {
	if p.seat.Lead {
		return true, nil
	}
	if err := p.changing.Lock(ctx); err != nil {
		return false, err
	}
	defer p.changing.Unlock()
	mail.Urgent = true
	plan, err := p.newest(ctx)
	if err != nil {
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
	if plan.Mode, err = p.acceptedMode(ctx, m, c.PermissionMode); err != nil {
		return false, err
	}
	plan.Approval = m.ID
	if err := p.keep(ctx, plan); err != nil {
		return false, err
	}
	mail.Mode = plan.Mode
	mail.Text += systemNote("Your plan was approved. You are out of plan mode and work in permission mode " + plan.Mode + " from now on: carry the plan out.")
	return true, nil
}

// acceptedMode is the permission mode that an approval puts the agent in when the
// lead gives it this one. Whoever can write to the inbox can forge an approval
// without a seal, so such an approval lifts no permission checks, unless the person
// trusts leads that are other programs.
func (p *Plans) acceptedMode(ctx context.Context, m mailbox.Message, given string) (string, error) {
	mode := protocol.WorkingMode(given)
	if mode != protocol.ModeBypass || p.trustUnsigned {
		return mode, nil
	}
	sealed, err := p.seals.Sealed(ctx, p.seat.Address(), m, sealedProtocol)
	if err != nil || sealed {
		return mode, err
	}
	return protocol.ModeDefault, nil
}

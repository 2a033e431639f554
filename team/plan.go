package team

import (
	"context"
	"fmt"
	"time"
)

// RequestPlan asks the lead to approve a plan and returns the request's id.
func (s *Seat) RequestPlan(ctx context.Context, path, content string) (string, error) {
	if s.hasLeft() {
		return "", ErrLeft
	}
	at := time.Now()
	id := requestID("plan_approval", at, AgentID(s.Name, s.Team))
	return id, s.postControl(ctx, LeadName, at, PlanRequest{
		Type: typePlanRequest, From: s.Name, Timestamp: stamp(at), PlanFilePath: path, PlanContent: content, RequestID: id,
	})
}

// RespondPlan answers a plan request that the lead's inbox took in: an approval
// says in which permission mode the agent goes on, a rejection what to change.
// An answer that approves is the last one to a request. Errors: [ErrNotLead],
// [ErrNoRequest], [*UnknownMemberError].
func (s *Seat) RespondPlan(ctx context.Context, to, id string, approve bool, feedback, mode string) (Delivery, error) {
	if !s.Lead {
		return Delivery{}, ErrNotLead
	}
	member, err := s.recipient(ctx, to)
	if err != nil {
		return Delivery{}, err
	}
	s.mu.Lock()
	asker, waits := s.plans[id]
	s.mu.Unlock()
	if !waits || asker != member.Name {
		return Delivery{}, fmt.Errorf("plan request %q of %s: %w", id, member.Name, ErrNoRequest)
	}
	at := time.Now()
	response := PlanResponse{Type: typePlanResponse, RequestID: id, Approved: approve, Timestamp: stamp(at)}
	if approve {
		response.PermissionMode = mode
	} else {
		response.Feedback = feedback
	}
	if err := s.postControl(ctx, member.Name, at, response); err != nil {
		return Delivery{}, err
	}
	if approve {
		s.mu.Lock()
		delete(s.plans, id)
		s.mu.Unlock()
	}
	return Delivery{member.Name, member.Color}, nil
}

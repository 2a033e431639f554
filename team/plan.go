package team

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Who approves plans ([Policy].PlanApproval); "" is planByRuntime.
const (
	planByRuntime = "auto"
	planByLead    = "lead"
	planByPerson  = "person"
)

// ErrPersonDecides says that plans are approved by a person, not by the lead.
var ErrPersonDecides = errors.New("a person decides on plans")

// planAsked is a plan request as its lead knows it.
type planAsked struct {
	from     string
	rejected bool
	approved bool
}

// planRequested deals with a plan request in the lead's inbox, by the policy. It
// answers at once or leaves the answer to the model or a person; the model is told
// which.
func (t *Teams) planRequested(ctx context.Context, seat *Seat, m mailbox.Message, c protocol.PlanRequest, mail *Mail) (show bool, err error) {
	if !seat.Lead {
		return true, nil
	}
	member, err := seat.recipient(ctx, m.From)
	if isUnknown(err) {
		mail.Text += systemNote("This request came from an agent that is no longer in the team. Nothing waits for an answer to it.")
		return true, nil
	}
	if err != nil {
		return false, err
	}
	plan := seat.planOf(c.RequestID, member.Name)
	switch t.policy.PlanApproval {
	case planByLead:
		mail.Text += systemNote(fmt.Sprintf(
			"%s works in plan mode until you answer: SendMessage with type plan_approval_response, recipient %q, request_id %q, and approve true, or false with what to change.",
			member.Name, member.Name, c.RequestID))
		return true, nil
	case planByPerson:
		return t.relayPlan(ctx, seat, member, m, c, mail)
	}
	if approved, _ := seat.planState(plan); !approved {
		if err := seat.answerPlan(ctx, member.Name, c.RequestID, true, "", t.planMode("")); err != nil {
			return false, err
		}
	}
	mail.Text += systemNote("The plan of " + member.Name + " was approved automatically. This is for your information; do not answer the request.")
	return true, nil
}

// relayPlan puts a plan before a person. The request stays unread until the
// person has answered, so the model gets a note instead.
func (t *Teams) relayPlan(ctx context.Context, seat *Seat, from roster.Member, m mailbox.Message, c protocol.PlanRequest, mail *Mail) (show bool, err error) {
	input := jsonx.MustMarshal(struct {
		Plan         string `json:"plan"`
		PlanFilePath string `json:"planFilePath"`
	}{c.PlanContent, c.PlanFilePath})
	a := ask.Ask{
		ID: planAskID(c.RequestID), Kind: ask.Plan, SessionID: seat.session, AgentName: from.Name, Team: seat.Team,
		Tool: protocol.ExitPlanMode, Input: input, Digest: ask.DigestOf(protocol.ExitPlanMode, input),
		Question: "Is the plan of " + from.Name + " good?", Reason: c.PlanFilePath, Asked: sentAt(m),
	}
	if done, err := t.answeredBefore(ctx, seat, from.Name, m, c.RequestID, sealedProtocol); err != nil {
		return false, err
	} else if done {
		t.consent.settled(ctx, a.ID)
		return false, nil
	}
	for id, r := range seat.relaysOf(from.Name) { // a new plan takes the place of an older one
		if r.kind == ask.Plan && id != a.ID {
			t.withdraw(ctx, seat, id, r)
		}
	}
	held, fresh, err := t.relayAsk(ctx, seat, from, m, a, func(ctx context.Context, answer ask.Answer) error {
		return t.personDecided(ctx, seat, from.Name, c.RequestID, answer)
	})
	if held {
		mail.IDs = nil
	}
	if fresh {
		t.note(seat.session, Mail{
			Kind: KindSystem, From: from.Name, Preview: from.Name + " waits for a person to approve its plan",
			Text: protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: from.Name + " has submitted its plan (" + c.PlanFilePath +
				") and waits for a person to approve it. There is nothing for you to answer; you will be told of the decision."}),
		})
	}
	return false, err
}

// planAskID is the id of the question about a plan: one that people can type.
func planAskID(requestID string) string {
	sum := sha256.Sum256([]byte(requestID))
	return "plan-" + hex.EncodeToString(sum[:8])
}

// personDecided posts a person's answer to a plan, and tells the lead's model.
func (t *Teams) personDecided(ctx context.Context, seat *Seat, to, id string, answer ask.Answer) error {
	mode := ""
	for _, u := range protocol.Acceptable(answer.Updates) {
		if u.Type == ask.SetMode {
			mode = u.Mode
		}
	}
	if err := seat.answerPlan(ctx, to, id, answer.Allow, answer.Message, t.planMode(mode)); err != nil {
		return err
	}
	what := "A person approved the plan of " + to + ", which goes on to carry it out."
	switch {
	case answer.Allow:
	case answer.By == "deadline", answer.By == "rule":
		what = "The plan of " + to + " was not approved: " + answer.Message
	default:
		what = "A person rejected the plan of " + to + ", which will revise it: " + feedbackOr(answer.Message)
	}
	t.note(seat.session, Mail{
		Kind: KindSystem, From: to, Preview: oneline.Of(what), Text: protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: what}),
	})
	return nil
}

// RespondPlan answers a plan request for the lead's model: an approval says in
// which permission mode the agent goes on ("": the lead's own), a rejection what
// to change. A rejected request can still be approved; after that it is settled.
// Errors: [ErrNotLead], [ErrNoRequest], [ErrPersonDecides],
// [*roster.UnknownMemberError].
func (s *Seat) RespondPlan(ctx context.Context, to, id string, approve bool, feedback, mode string) (Delivery, error) {
	if !s.Lead {
		return Delivery{}, ErrNotLead
	}
	member, err := s.recipient(ctx, to)
	if err != nil {
		return Delivery{}, err
	}
	if s.teams.policy.PlanApproval == planByPerson {
		return Delivery{}, fmt.Errorf("plan request %q of %s: %w", id, member.Name, ErrPersonDecides)
	}
	plan, err := s.askedPlan(ctx, id, member.Name)
	if err != nil {
		return Delivery{}, err
	}
	approved, rejected := s.planState(plan)
	switch {
	case approved:
		return Delivery{}, fmt.Errorf("plan request %q of %s is approved already: %w", id, member.Name, ErrNoRequest)
	case rejected && !approve:
		return Delivery{}, fmt.Errorf("plan request %q of %s is rejected already, its revision has another id: %w", id, member.Name, ErrNoRequest)
	}
	if err := s.answerPlan(ctx, member.Name, id, approve, feedback, s.teams.planMode(mode)); err != nil {
		return Delivery{}, err
	}
	return Delivery{To: member.Name, Color: member.Color}, nil
}

// askedPlan finds a plan request that the lead's inbox took in, also before a
// restart of the lead.
func (s *Seat) askedPlan(ctx context.Context, id, from string) (*planAsked, error) {
	s.mu.Lock()
	plan, ok := s.consent.plans[id]
	s.mu.Unlock()
	if ok && plan.from == from {
		return plan, nil
	}
	all, err := s.teams.mail.All(ctx, s.Address())
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		// No seal is needed here: an answer to what nobody asked has no effect.
		if !m.Read || m.From != from || !strings.Contains(m.Text, id) {
			continue
		}
		c, _ := protocol.Parse(m.Text)
		if request, ok := c.(protocol.PlanRequest); ok && request.RequestID == id {
			return s.planOf(id, from), nil
		}
	}
	return nil, fmt.Errorf("plan request %q of %s: %w", id, from, ErrNoRequest)
}

// planOf is the lead's account of a plan request, made if it is a new one.
func (s *Seat) planOf(id, from string) *planAsked {
	s.mu.Lock()
	defer s.mu.Unlock()
	plan, ok := s.consent.plans[id]
	if !ok || plan.from != from {
		plan = &planAsked{from: from}
		s.consent.plans[id] = plan
	}
	return plan
}

func (s *Seat) planState(plan *planAsked) (approved, rejected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return plan.approved, plan.rejected
}

// answerPlan posts the answer to a plan request.
func (s *Seat) answerPlan(ctx context.Context, to, id string, approve bool, feedback, mode string) error {
	at := time.Now()
	response := protocol.PlanResponse{Type: protocol.TypePlanResponse, RequestID: id, Approved: approve, Timestamp: protocol.Stamp(at)}
	if approve {
		response.PermissionMode = mode
	} else {
		response.Feedback = feedbackOr(feedback)
	}
	if err := s.postControl(ctx, to, at, response); err != nil {
		return err
	}
	plan := s.planOf(id, to)
	s.mu.Lock()
	defer s.mu.Unlock()
	plan.approved, plan.rejected = plan.approved || approve, plan.rejected || !approve
	return nil
}

// feedbackOr is what a rejection says when nobody gave a reason (facts:
// claude-code §5.3).
func feedbackOr(feedback string) string {
	if feedback == "" {
		return "Plan needs revision"
	}
	return feedback
}

// systemNote is a word of the runtime that follows a message.
func systemNote(text string) string {
	return "\n\n" + protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: text})
}

// sentAt is when a message was written, as far as it says.
func sentAt(m mailbox.Message) time.Time {
	at, err := time.Parse(time.RFC3339, m.Timestamp)
	if err != nil {
		return time.Now()
	}
	return at
}

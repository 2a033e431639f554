package team

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/ctxlock"
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

var (
	// ErrPersonDecides says that plans are approved by a person, not by the lead.
	ErrPersonDecides = errors.New("a person decides on plans")
	// ErrLeadPlans says that the lead is in plan mode itself, and so lets nobody else
	// out of it.
	ErrLeadPlans = errors.New("the lead is in plan mode")
)

// Plans are what a teammate must have approved before it may change anything, and
// what a lead approves. The lead's side stands first, the teammate's below. The methods
// may be called from any goroutine.
type Plans struct {
	seat          *Seat // of the teammate that plans, or of the lead
	records       roster.Records
	mail          mailbox.Store
	seals         mailbox.Seals
	approval      string
	trustUnsigned bool
	leadMode      func() string
	note          func(session string, mails ...Mail)
	relays        *relays // where a person is asked

	changing ctxlock.Mutex // held while the teammate's record is changed

	mu       sync.Mutex
	requests map[string]planRequest // that the lead's inbox has received, by id
}

// planRequest is a plan request as its lead knows it.
type planRequest struct {
	from     string
	rejected bool
	approved bool
}

func newPlans(t *Teams, seat *Seat) *Plans {
	return &Plans{
		seat: seat, records: t.options.Records, mail: t.options.Mail, seals: t.options.Seals,
		approval: t.options.Policy.PlanApproval, trustUnsigned: t.options.Policy.TrustUnsigned,
		leadMode: t.options.Mode, note: t.crews.note, relays: seat.relays,
		changing: ctxlock.New(), requests: make(map[string]planRequest),
	}
}

// requested deals with a plan request in the lead's inbox, as the policy says: it
// answers at once, or leaves the answer to the lead's model or a person. The mail says
// which. Without IDs in mail the message stays unread.
func (p *Plans) requested(ctx context.Context, m mailbox.Message, c protocol.PlanRequest, mail *Mail) (show bool, err error) {
	if !p.seat.Lead {
		return true, nil
	}
	member, err := p.seat.recipient(ctx, m.From)
	if isUnknown(err) {
		mail.Text += systemNote("This request came from an agent that is no longer in the team. Nothing waits for an answer to it.")
		return true, nil
	}
	if err != nil {
		return false, err
	}
	request := p.receive(c.RequestID, member.Name)
	switch p.approver() {
	case planByLead:
		mail.Text += systemNote(fmt.Sprintf(
			"%s works in plan mode until you answer: SendMessage with type plan_approval_response, recipient %q, request_id %q, and approve true, or false with what to change.",
			member.Name, member.Name, c.RequestID))
		return true, nil
	case planByPerson:
		return p.askPerson(ctx, member, m, c, mail)
	}
	if !request.approved {
		if err := p.answer(ctx, member.Name, c.RequestID, true, "", p.givenMode("")); err != nil {
			return false, err
		}
	}
	mail.Text += systemNote("The plan of " + member.Name + " was approved automatically. This is for your information; do not answer the request.")
	return true, nil
}

// approver is who approves a plan that is requested now. A lead that is to change
// nothing itself does not have others change things.
func (p *Plans) approver() string {
	if p.leadMode() == protocol.ModePlan {
		return planByPerson
	}
	return p.approval
}

// askPerson puts a plan before a person. The request stays unread until the person
// has answered, so the lead's model gets a note instead.
func (p *Plans) askPerson(ctx context.Context, from roster.Member, m mailbox.Message, c protocol.PlanRequest, mail *Mail) (show bool, err error) {
	input := jsonx.MustMarshal(struct {
		Plan         string `json:"plan"`
		PlanFilePath string `json:"planFilePath"`
	}{c.PlanContent, c.PlanFilePath})
	a := ask.Ask{
		ID: planAskID(c.RequestID), Kind: ask.Plan, SessionID: p.seat.session, AgentName: from.Name, Team: p.seat.Team,
		Tool: protocol.ExitPlanMode, Input: input, Digest: ask.DigestOf(protocol.ExitPlanMode, input),
		Question: "Is the plan of " + from.Name + " good?", Reason: c.PlanFilePath, Asked: sentAt(m),
	}
	if answered, err := p.relays.answeredBefore(ctx, from.Name, m, c.RequestID, sealedProtocol); err != nil {
		return false, err
	} else if answered {
		p.relays.withdrawn(ctx, a.ID)
		return false, nil
	}
	// The person is asked about the newest plan only.
	p.relays.withdrawAll(ctx, from.Name, func(id string, kind ask.Kind) bool { return kind == ask.Plan && id != a.ID })
	instead := p.approval != planByPerson // of the lead
	open, first, err := p.relays.put(ctx, from, m, a, func(ctx context.Context, answer ask.Answer) error {
		if instead && !answer.Allow && answer.By == "rule" {
			answer.Message = "The lead is in plan mode itself, so only a person could approve this plan. " + answer.Message
		}
		return p.answerOfPerson(ctx, from.Name, c.RequestID, answer)
	})
	if open {
		mail.IDs = nil
	}
	if first {
		p.notifyModel(from.Name, from.Name+" waits for a person to approve its plan", from.Name+" has submitted its plan ("+c.PlanFilePath+
			") and waits for a person to approve it. There is nothing for you to answer; you will be notified of the decision.")
	}
	return false, err
}

// planAskID is the id of the question about a plan: one that people can type.
func planAskID(requestID string) string {
	sum := sha256.Sum256([]byte(requestID))
	return "plan-" + hex.EncodeToString(sum[:8])
}

// answerOfPerson posts a person's answer to a plan, and notifies the lead's model.
func (p *Plans) answerOfPerson(ctx context.Context, to, id string, answer ask.Answer) error {
	mode := ""
	for _, u := range protocol.Acceptable(answer.Updates) {
		if u.Type == ask.SetMode {
			mode = u.Mode
		}
	}
	if err := p.answer(ctx, to, id, answer.Allow, answer.Message, p.givenMode(mode)); err != nil {
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
	p.notifyModel(to, what, what)
	return nil
}

// notifyModel gives the lead's model a note of the runtime about a teammate.
func (p *Plans) notifyModel(about, preview, text string) {
	p.note(p.seat.session, Mail{
		Kind: KindSystem, From: about, Preview: oneline.Of(preview), Text: protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: text}),
	})
}

// Respond answers a plan request for the lead's model: an approval says in which
// permission mode the agent goes on ("": the lead's own), a rejection what to
// change. A rejected request can still be approved, an approved one has its final
// answer. Errors: [ErrNotLead], [ErrNoRequest], [ErrPersonDecides], [ErrLeadPlans],
// [*roster.UnknownMemberError].
func (p *Plans) Respond(ctx context.Context, to, id string, approve bool, feedback, mode string) (Delivery, error) {
	if !p.seat.Lead {
		return Delivery{}, ErrNotLead
	}
	member, err := p.seat.recipient(ctx, to)
	if err != nil {
		return Delivery{}, err
	}
	if p.approval == planByPerson {
		return Delivery{}, fmt.Errorf("plan request %q of %s: %w", id, member.Name, ErrPersonDecides)
	}
	request, err := p.find(ctx, id, member.Name)
	if err != nil {
		return Delivery{}, err
	}
	switch {
	case approve && p.leadMode() == protocol.ModePlan:
		return Delivery{}, fmt.Errorf("approve plan request %q of %s: %w", id, member.Name, ErrLeadPlans)
	case request.approved:
		return Delivery{}, fmt.Errorf("plan request %q of %s is approved already: %w", id, member.Name, ErrNoRequest)
	case request.rejected && !approve:
		return Delivery{}, fmt.Errorf("plan request %q of %s is rejected already, its revision has another id: %w", id, member.Name, ErrNoRequest)
	}
	if err := p.answer(ctx, member.Name, id, approve, feedback, p.givenMode(mode)); err != nil {
		return Delivery{}, err
	}
	// A person may have been asked while the lead was in plan mode.
	p.relays.withdrawAll(ctx, member.Name, func(asked string, _ ask.Kind) bool { return asked == planAskID(id) })
	return Delivery{To: member.Name, Color: member.Color}, nil
}

// receive returns what the lead knows of a plan request, and remembers a new one.
func (p *Plans) receive(id, from string) planRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	request, ok := p.requests[id]
	if !ok || request.from != from {
		request = planRequest{from: from}
		p.requests[id] = request
	}
	return request
}

// find returns a plan request that the lead's inbox has received, also before a
// restart of the lead.
func (p *Plans) find(ctx context.Context, id, from string) (planRequest, error) {
	p.mu.Lock()
	request, ok := p.requests[id]
	p.mu.Unlock()
	if ok && request.from == from {
		return request, nil
	}
	all, err := p.mail.All(ctx, p.seat.Address())
	if err != nil {
		return planRequest{}, err
	}
	for _, m := range all {
		// No seal is needed here: an answer to what nobody asked has no effect.
		if !m.Read || m.From != from || !strings.Contains(m.Text, id) {
			continue
		}
		c, _ := protocol.Parse(m.Text)
		if request, ok := c.(protocol.PlanRequest); ok && request.RequestID == id {
			return p.receive(id, from), nil
		}
	}
	return planRequest{}, fmt.Errorf("plan request %q of %s: %w", id, from, ErrNoRequest)
}

// answer posts the answer to a plan request, and remembers it.
func (p *Plans) answer(ctx context.Context, to, id string, approve bool, feedback, mode string) error {
	at := time.Now()
	response := protocol.PlanResponse{Type: protocol.TypePlanResponse, RequestID: id, Approved: approve, Timestamp: protocol.Stamp(at)}
	if approve {
		response.PermissionMode = mode
	} else {
		response.Feedback = feedbackOr(feedback)
	}
	if err := p.seat.postControl(ctx, to, at, response); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	request := p.requests[id]
	if request.from != to {
		request = planRequest{from: to}
	}
	request.approved, request.rejected = request.approved || approve, request.rejected || !approve
	p.requests[id] = request
	return nil
}

// givenMode is the permission mode that the lead gives with an approval when this
// one is asked for. Nobody is let out of all permission checks by a lead that is
// subject to them itself.
func (p *Plans) givenMode(asked string) string {
	mode, lead := protocol.WorkingMode(asked), protocol.WorkingMode(p.leadMode())
	if asked == "" || mode == protocol.ModeBypass && lead != protocol.ModeBypass {
		return lead
	}
	return mode
}

// feedbackOr is what a rejection says when nobody gave a reason (facts:
// claude-code §5.3).
func feedbackOr(feedback string) string {
	if feedback == "" {
		return "Plan needs revision"
	}
	return feedback
}

// systemNote is a note of the runtime that follows a message.
func systemNote(text string) string {
	return "\n\n" + protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: text})
}

// sentAt is when a message says that it was sent; now, if it does not say.
func sentAt(m mailbox.Message) time.Time {
	at, err := time.Parse(time.RFC3339, m.Timestamp)
	if err != nil {
		return time.Now()
	}
	return at
}

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

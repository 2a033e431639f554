package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ctxlock"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// RecordAsk is the kind of record that holds a question which a teammate has sent
// to its lead, under the request's id, for as long as the question is open.
const RecordAsk = "ask"

// askRecord is a question that a teammate has sent to its lead.
type askRecord struct {
	RequestID string  `json:"requestId"`
	Agent     string  `json:"agent"`
	Digest    string  `json:"digest"` // of the input as the request carries it
	Ask       ask.Ask `json:"ask"`
}

// Questions are what a teammate's session asks its lead. An open question is kept
// as a record in the store, and nowhere else here: the session that asked waits for
// the answer. The methods may be called from any goroutine.
type Questions struct {
	seat          *Seat // whose questions they are
	records       roster.Records
	seals         mailbox.Seals
	isOurs        func(ctx context.Context, who mailbox.Address) (bool, error)
	publish       func(by event.Agent, body event.Body)
	deliver       func(ctx context.Context, who mailbox.Address, askID string, answer ask.Answer) error // nil: nobody can
	trustUnsigned bool

	changing ctxlock.Mutex // held while the records are changed

	mu         sync.Mutex
	delivering map[string]bool // requests whose answer is being delivered
	reported   map[string]bool // requests of which a refused answer was reported
}

func newQuestions(t *Teams, seat *Seat) *Questions {
	return &Questions{
		seat: seat, records: t.options.Records, seals: t.options.Seals, isOurs: t.members.isOurs, publish: t.options.Publish,
		deliver: t.options.Answered, trustUnsigned: t.options.Policy.TrustUnsigned,
		changing: ctxlock.New(), delivering: make(map[string]bool), reported: make(map[string]bool),
	}
}

// Ask sends a question of the agent's session to its lead and returns the
// request's id. The answer comes by [Options].Answered. A question that was sent
// before, also before a restart, keeps its request. Errors: [ErrLeft], and
// ErrUnsupported of package errors for a lead, which has nobody to ask, and where
// answers cannot be delivered.
func (q *Questions) Ask(ctx context.Context, a ask.Ask) (requestID string, err error) {
	switch {
	case q.seat.hasLeft():
		return "", ErrLeft
	case q.seat.Lead || q.deliver == nil:
		return "", fmt.Errorf("ask the lead about %s: %w", a.ID, errors.ErrUnsupported)
	case !json.Valid(a.Input):
		return "", fmt.Errorf("ask the lead about %s: the input of %s is not valid JSON", a.ID, a.Tool)
	}
	if err := q.changing.Lock(ctx); err != nil {
		return "", err
	}
	defer q.changing.Unlock()
	older, ok, err := q.find(ctx, func(r askRecord) bool { return r.Ask.ID == a.ID })
	if err != nil || ok {
		return older.RequestID, err
	}
	at := time.Now()
	c := protocol.NewPermissionRequest(at, q.seat.Name, a)
	record := askRecord{c.RequestID, q.seat.Name, ask.DigestOf(c.ToolName, c.Input), a}
	// Before the post, since the answer may come before that returns.
	if err := roster.PutRecord(ctx, q.records, q.seat.Team, RecordAsk, c.RequestID, record); err != nil {
		return "", err
	}
	if err := q.seat.postControl(ctx, mailbox.LeadName, at, c); err != nil {
		return "", errors.Join(err, q.drop(context.WithoutCancel(ctx), c.RequestID))
	}
	return c.RequestID, nil
}

// Withdraw notifies the lead that a question needs no answer any more: a person has
// answered it in front of the agent, or its deadline has passed. It does nothing
// for a question that is not open, or whose answer from the lead is being
// delivered.
func (q *Questions) Withdraw(ctx context.Context, askID string) error {
	if err := q.changing.Lock(ctx); err != nil {
		return err
	}
	defer q.changing.Unlock()
	open, ok, err := q.find(ctx, func(r askRecord) bool { return r.Ask.ID == askID })
	if err != nil || !ok || q.isDelivering(open.RequestID) {
		return err
	}
	ours, err := q.isOurs(ctx, q.lead())
	if err == nil && ours && !q.seat.hasLeft() { // another program would show it to its model
		err = q.seat.postControl(ctx, mailbox.LeadName, time.Now(), protocol.PermissionSettled{Type: protocol.TypePermissionSettled, RequestID: open.RequestID})
	}
	if err != nil {
		return err
	}
	// Last: as long as the question is on record, it can be withdrawn after a crash.
	return q.drop(ctx, open.RequestID)
}

// Open lists the questions that wait for the lead's answer, with the ids that the
// agent's session gave them. After a restart, those that nobody waits for any more
// are to be withdrawn.
func (q *Questions) Open(ctx context.Context) ([]ask.Ask, error) {
	records, err := openAsks(ctx, q.records, q.seat.Address())
	open := make([]ask.Ask, len(records))
	for i, r := range records {
		open[i] = r.Ask
	}
	return open, err
}

// openAsks are the records of the questions of an agent that have no answer yet.
func openAsks(ctx context.Context, records roster.Records, who mailbox.Address) ([]askRecord, error) {
	docs, err := records.All(ctx, who.Team, RecordAsk)
	if err != nil {
		return nil, err
	}
	var open []askRecord
	for _, doc := range docs {
		var r askRecord
		if json.Unmarshal(doc, &r) == nil && r.Agent == who.Agent {
			open = append(open, r)
		}
	}
	return open, nil
}

// find returns the first open question that matches.
func (q *Questions) find(ctx context.Context, matches func(askRecord) bool) (askRecord, bool, error) {
	open, err := openAsks(ctx, q.records, q.seat.Address())
	at := slices.IndexFunc(open, matches)
	if err != nil || at < 0 {
		return askRecord{}, false, err
	}
	return open[at], true, nil
}

func (q *Questions) drop(ctx context.Context, requestID string) error {
	return q.records.Drop(ctx, q.seat.Team, RecordAsk, requestID)
}

func (q *Questions) lead() mailbox.Address {
	return mailbox.Address{Team: q.seat.Team, Agent: mailbox.LeadName}
}

// answered delivers a response in a teammate's inbox to the session that asked.
// Whatever is not the lead's answer to exactly this question is refused.
func (q *Questions) answered(ctx context.Context, m mailbox.Message, c protocol.PermissionResponse) error {
	open, refusal, err := q.check(ctx, m, c)
	if err != nil {
		return err
	}
	if refusal != "" {
		q.reportRefusal(m, c, refusal)
		return nil
	}
	answer, ok := protocol.AnswerOf(c, protocol.Compacted(open.Ask.Input))
	if !ok {
		q.reportRefusal(m, c, "it says neither yes nor no")
		return nil
	}
	// The session publishes the answer while it is delivered; that must not withdraw
	// the question.
	q.setDelivering(c.RequestID, true)
	defer q.setDelivering(c.RequestID, false)
	err = q.deliver(ctx, q.seat.Address(), open.Ask.ID, answer)
	if err != nil && !errors.Is(err, ask.ErrUnknown) && !errors.Is(err, ask.ErrAnswered) {
		return fmt.Errorf("deliver the answer to %s: %w", open.Ask.ID, err)
	}
	return q.drop(ctx, c.RequestID)
}

// check finds the question that a response answers, or says why the response is
// refused.
func (q *Questions) check(ctx context.Context, m mailbox.Message, c protocol.PermissionResponse) (open askRecord, refusal string, err error) {
	open, ok, err := q.find(ctx, func(r askRecord) bool { return r.RequestID == c.RequestID })
	switch {
	case err != nil:
		return askRecord{}, "", err
	case !ok || q.deliver == nil:
		return askRecord{}, "no such question waits for an answer", nil
	case m.From != mailbox.LeadName:
		return askRecord{}, "only the lead may answer", nil
	}
	if d := open.Ask.Deadline; !d.IsZero() && !time.Now().Before(d) {
		return askRecord{}, "the time to answer is over", q.drop(ctx, c.RequestID)
	}
	trusted, err := q.isTrusted(ctx, m, open.Digest)
	if err != nil || trusted {
		return open, "", err
	}
	return askRecord{}, "no seal vouches that the lead's runtime gave it to exactly this call; " +
		"the setting trustUnsignedTeamAnswers accepts answers without a seal from a lead that is another program", nil
}

// isTrusted reports whether a response may be acted on: our own runtime sealed it
// for the input with this digest, or the person trusts a lead that is another
// program.
func (q *Questions) isTrusted(ctx context.Context, m mailbox.Message, digest string) (bool, error) {
	sealed, err := q.seals.Sealed(ctx, q.seat.Address(), m, digest)
	if err != nil || sealed || !q.trustUnsigned {
		return sealed, err
	}
	ours, err := q.isOurs(ctx, q.lead())
	return !ours && err == nil, err
}

// reportRefusal warns the person of a response that was not acted on, once per
// request.
func (q *Questions) reportRefusal(m mailbox.Message, c protocol.PermissionResponse, why string) {
	const most = 100 // somebody may make up any number of them
	q.mu.Lock()
	known := q.reported[c.RequestID] || len(q.reported) >= most
	if !known {
		q.reported[c.RequestID] = true
	}
	q.mu.Unlock()
	if !known {
		q.publish(q.seat.agent(), event.Noticed{Level: "warning", Text: fmt.Sprintf(
			"refused the answer of %s to permission request %s of %s: %s", oneline.Of(m.From), oneline.Of(c.RequestID), q.seat.Name, why)})
	}
}

func (q *Questions) isDelivering(requestID string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delivering[requestID]
}

func (q *Questions) setDelivering(requestID string, delivering bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delivering {
		q.delivering[requestID] = true
	} else {
		delete(q.delivering, requestID)
	}
}

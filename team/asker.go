package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// askRecord is a question that a teammate has put to its lead, as [RecordAsk]
// keeps it.
type askRecord struct {
	RequestID string  `json:"requestId"`
	Agent     string  `json:"agent"`
	Digest    string  `json:"digest"` // of the input as the request carries it
	Ask       ask.Ask `json:"ask"`
}

// RequestPermission puts a question of the agent's session to its lead and
// returns the request's id. The answer comes by [Options].Answered. A question
// that was put before, also before a restart, keeps its request. Errors:
// [ErrLeft], and ErrUnsupported of package errors for a lead, which has nobody
// to ask, and where answers could not be delivered.
func (s *Seat) RequestPermission(ctx context.Context, a ask.Ask) (requestID string, err error) {
	switch {
	case s.hasLeft():
		return "", ErrLeft
	case s.Lead || s.teams.consent.answered == nil:
		return "", fmt.Errorf("ask the lead about %s: %w", a.ID, errors.ErrUnsupported)
	case !json.Valid(a.Input):
		return "", fmt.Errorf("ask the lead about %s: the input of %s is no JSON", a.ID, a.Tool)
	}
	if err := s.consent.turn.enter(ctx); err != nil {
		return "", err
	}
	defer s.consent.turn.leave()
	older, ok, err := s.openAsk(ctx, func(r askRecord) bool { return r.Ask.ID == a.ID })
	if err != nil || ok {
		return older.RequestID, err
	}
	at := time.Now()
	c := protocol.NewPermissionRequest(at, s.Name, a)
	record := askRecord{c.RequestID, s.Name, ask.DigestOf(c.ToolName, c.Input), a}
	// The answer may come before the post returns.
	if err := s.teams.putRecord(ctx, s.Team, RecordAsk, c.RequestID, record); err != nil {
		return "", err
	}
	if err := s.postControl(ctx, mailbox.LeadName, at, c); err != nil {
		return "", errors.Join(err, s.dropAsk(context.WithoutCancel(ctx), c.RequestID))
	}
	return c.RequestID, nil
}

// openAsks are the questions of an agent that have no answer yet.
func (t *Teams) openAsks(ctx context.Context, who mailbox.Address) ([]askRecord, error) {
	docs, err := t.records.All(ctx, who.Team, RecordAsk)
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

// openAsk finds one of them.
func (s *Seat) openAsk(ctx context.Context, is func(askRecord) bool) (askRecord, bool, error) {
	open, err := s.teams.openAsks(ctx, s.Address())
	at := slices.IndexFunc(open, is)
	if err != nil || at < 0 {
		return askRecord{}, false, err
	}
	return open[at], true, nil
}

func (s *Seat) dropAsk(ctx context.Context, requestID string) error {
	return s.teams.records.Drop(ctx, s.Team, RecordAsk, requestID)
}

// WithdrawPermission tells the lead that a question needs no answer any more: a
// person answered it in front of the agent, or its deadline has passed. For a
// question that is not open, or was settled by the lead's own answer, it does
// nothing.
func (s *Seat) WithdrawPermission(ctx context.Context, askID string) error {
	if err := s.consent.turn.enter(ctx); err != nil {
		return err
	}
	defer s.consent.turn.leave()
	open, ok, err := s.openAsk(ctx, func(r askRecord) bool { return r.Ask.ID == askID })
	if err != nil || !ok || s.isAnswering(open.RequestID) {
		return err
	}
	ours, err := s.teams.isFounded(ctx, s.Team)
	if err == nil && ours && !s.hasLeft() { // another program would show it to its model
		err = s.postControl(ctx, mailbox.LeadName, time.Now(), protocol.PermissionSettled{Type: protocol.TypePermissionSettled, RequestID: open.RequestID})
	}
	if err != nil {
		return err
	}
	// Last: as long as the question is on record, it can be withdrawn after a crash.
	return s.dropAsk(ctx, open.RequestID)
}

// OpenPermissions lists the questions that wait for the lead's answer, by the
// agent's own ids of them: after a restart, those that nobody waits for any more
// are to be withdrawn.
func (s *Seat) OpenPermissions(ctx context.Context) ([]ask.Ask, error) {
	records, err := s.teams.openAsks(ctx, s.Address())
	open := make([]ask.Ask, len(records))
	for i, r := range records {
		open[i] = r.Ask
	}
	return open, err
}

// permissionAnswered delivers a response in a teammate's inbox to the session
// that asked. Whatever is not the lead's answer to exactly this question is
// refused.
func (t *Teams) permissionAnswered(ctx context.Context, seat *Seat, m mailbox.Message, c protocol.PermissionResponse) error {
	open, refusal, err := t.checkResponse(ctx, seat, m, c)
	if err != nil {
		return err
	}
	if refusal != "" {
		t.refuse(seat, m, c, refusal)
		return nil
	}
	answer, ok := protocol.AnswerOf(c, protocol.Compacted(open.Ask.Input))
	if !ok {
		t.refuse(seat, m, c, "it says neither yes nor no")
		return nil
	}
	seat.setAnswering(c.RequestID, true)
	defer seat.setAnswering(c.RequestID, false)
	err = t.consent.answered(ctx, seat.Address(), open.Ask.ID, answer)
	if err != nil && !errors.Is(err, ask.ErrUnknown) && !errors.Is(err, ask.ErrAnswered) {
		return fmt.Errorf("deliver the answer to %s: %w", open.Ask.ID, err)
	}
	return seat.dropAsk(ctx, c.RequestID)
}

// checkResponse finds the question that a response answers, or says why it
// answers none.
func (t *Teams) checkResponse(ctx context.Context, seat *Seat, m mailbox.Message, c protocol.PermissionResponse) (open askRecord, refusal string, err error) {
	open, ok, err := seat.openAsk(ctx, func(r askRecord) bool { return r.RequestID == c.RequestID })
	switch {
	case err != nil:
		return askRecord{}, "", err
	case !ok || t.consent.answered == nil:
		return askRecord{}, "no such question waits for an answer", nil
	case m.From != mailbox.LeadName:
		return askRecord{}, "only the lead may answer", nil
	}
	if d := open.Ask.Deadline; !d.IsZero() && !time.Now().Before(d) {
		return askRecord{}, "the time to answer is over", seat.dropAsk(ctx, c.RequestID)
	}
	trusted, err := t.vouchedFor(ctx, seat, m, open.Digest)
	if err != nil || trusted {
		return open, "", err
	}
	return askRecord{}, "nothing vouches that the lead's runtime wrote it for this very call; " +
		"the setting trustUnsignedTeamAnswers takes such answers of another program's lead", nil
}

// vouchedFor reports whether a permission response can be acted on: our own
// runtime sealed it for this input, or the person trusts another program's lead.
func (t *Teams) vouchedFor(ctx context.Context, seat *Seat, m mailbox.Message, digest string) (bool, error) {
	sealed, err := t.seals.Sealed(ctx, seat.Address(), m, digest)
	if err != nil || sealed || !t.policy.TrustUnsigned {
		return sealed, err
	}
	ours, err := t.isFounded(ctx, seat.Team)
	return !ours && err == nil, err
}

// refuse tells of a response that was not acted on, once per request.
func (t *Teams) refuse(seat *Seat, m mailbox.Message, c protocol.PermissionResponse, why string) {
	const most = 100 // somebody may make up any number of them
	seat.mu.Lock()
	told := seat.consent.refused[c.RequestID] || len(seat.consent.refused) >= most
	if !told {
		seat.consent.refused[c.RequestID] = true
	}
	seat.mu.Unlock()
	if !told {
		t.warn(seat, "an answer of %s to %s's permission request %s was refused: %s",
			oneline.Of(m.From), seat.Name, oneline.Of(c.RequestID), why)
	}
}

func (s *Seat) isAnswering(requestID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.consent.answering[requestID]
}

func (s *Seat) setAnswering(requestID string, answering bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answering {
		s.consent.answering[requestID] = true
	} else {
		delete(s.consent.answering, requestID)
	}
}

package team

import (
	"context"
	"strings"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Relay puts a teammate's question before whoever may answer it: a person, or
// rules. It is called once per question and process, must not wait for the answer,
// and after an error it is called again a little later. answer may be called from
// any goroutine, also before Relay returns, and blocks until the answer stands in
// the teammate's inbox: [ask.ErrAnswered] for a second answer or a question that
// was settled elsewhere, [ask.ErrUnknown] when the asker has left the team.
type Relay func(ctx context.Context, from roster.Member, a ask.Ask, answer func(ctx context.Context, answer ask.Answer) error) error

// nobodyToAsk is the answer where nobody can be asked.
const nobodyToAsk = "Nobody can be asked by the team's lead in this run, so the answer is no."

// relayed is a question that a lead has put before somebody. Its message stays
// unread until it is settled, and so survives a restart of the lead.
type relayed struct {
	from    string
	kind    ask.Kind
	message mailbox.ID
	reply   func(context.Context, ask.Answer) error // posts the answer
	state   relayState                              // guarded by the seat's mu
}

type relayState int

const (
	relayOpen      relayState = iota
	relayAnswering            // somebody's answer is being posted
	relayClosed
)

// relayAsk relays a question that came with a message, or knows that it was
// relayed before. held says that the message must stay unread.
func (t *Teams) relayAsk(ctx context.Context, seat *Seat, from roster.Member, m mailbox.Message, a ask.Ask,
	reply func(context.Context, ask.Answer) error) (held, fresh bool, err error) {
	r := &relayed{from: from.Name, kind: a.Kind, message: m.ID, reply: reply}
	seat.mu.Lock()
	older := seat.consent.relays[a.ID]
	if older == nil {
		seat.consent.relays[a.ID] = r
	}
	held = older != nil && older.message == m.ID && older.state != relayClosed
	seat.mu.Unlock()
	if older != nil {
		return held, false, nil
	}
	answer := func(ctx context.Context, answer ask.Answer) error { return t.answerRelayed(ctx, seat, r, answer) }
	if t.consent.relay == nil {
		err = answer(ctx, ask.Answer{Message: nobodyToAsk, By: "rule"})
	} else {
		err = t.consent.relay(ctx, from, a, answer)
	}
	seat.mu.Lock()
	defer seat.mu.Unlock()
	if err != nil && r.state == relayOpen {
		delete(seat.consent.relays, a.ID)
		return false, false, err
	}
	return r.state != relayClosed, true, nil
}

// answeredBefore reports whether an answer to a request stands in its asker's inbox,
// sealed for this: an earlier process of the lead was killed before it marked the
// request read, and nobody is to be asked again.
func (t *Teams) answeredBefore(ctx context.Context, seat *Seat, asker string, m mailbox.Message, id, about string) (bool, error) {
	if sentAt(m).After(t.since) {
		return false, nil // this process alone can have answered it
	}
	inbox := mailbox.Address{Team: seat.Team, Agent: asker}
	all, err := t.mail.All(ctx, inbox)
	if err != nil {
		return false, err
	}
	for _, answer := range all {
		if answer.From != seat.Name || !answers(answer.Text, id) {
			continue
		}
		if sealed, err := t.seals.Sealed(ctx, inbox, answer, about); err != nil || sealed {
			return sealed, err
		}
	}
	return false, nil
}

// answers reports whether a text is a response to the request with this id.
func answers(text, id string) bool {
	if !strings.Contains(text, id) {
		return false
	}
	switch c, _ := protocol.Parse(text); c := c.(type) {
	case protocol.PermissionResponse:
		return c.RequestID == id
	case protocol.PlanResponse:
		return c.RequestID == id
	}
	return false
}

// answerRelayed posts the answer to a relayed question. The first counts.
func (t *Teams) answerRelayed(ctx context.Context, seat *Seat, r *relayed, answer ask.Answer) error {
	if !seat.moveRelay(r, relayOpen, relayAnswering) {
		return ask.ErrAnswered
	}
	_, err := seat.recipient(ctx, r.from)
	if err == nil {
		err = r.reply(ctx, answer)
	}
	if err != nil && !isUnknown(err) {
		seat.moveRelay(r, relayAnswering, relayOpen)
		return err
	}
	seat.moveRelay(r, relayAnswering, relayClosed)
	t.markRelayed(ctx, seat, r)
	if err != nil {
		return ask.ErrUnknown
	}
	return nil
}

// moveRelay reports whether the question was in the one state; it is in the other
// then.
func (s *Seat) moveRelay(r *relayed, from, to relayState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.state != from {
		return false
	}
	r.state = to
	return true
}

// markRelayed marks the message of a settled question read. If that fails, the
// answer is found again after a restart ([Teams.answeredBefore]).
func (t *Teams) markRelayed(ctx context.Context, seat *Seat, r *relayed) {
	ids := []mailbox.ID{r.message}
	t.mu.Lock()
	inbox := t.leadOf(seat.session).inbox
	t.mu.Unlock()
	var err error
	if inbox != nil {
		err = inbox.Shown(ctx, ids)
	} else {
		err = t.mail.MarkRead(ctx, seat.Address(), ids)
	}
	if err != nil {
		t.warn(seat, "mark the request of %s read: %v", r.from, err)
	}
}

// withdraw ends a relayed question that needs no answer any more.
func (t *Teams) withdraw(ctx context.Context, seat *Seat, id string, r *relayed) {
	if seat.moveRelay(r, relayOpen, relayClosed) {
		t.consent.settled(ctx, id)
		t.markRelayed(ctx, seat, r)
	}
}

// permissionSettled withdraws a question of which the asker says that it has its
// answer.
func (t *Teams) permissionSettled(ctx context.Context, seat *Seat, m mailbox.Message, c protocol.PermissionSettled) error {
	seat.mu.Lock()
	r, ok := seat.consent.relays[c.RequestID]
	if !ok && seat.Lead { // a request that is given back meanwhile is not relayed any more
		seat.consent.relays[c.RequestID] = &relayed{from: m.From, state: relayClosed}
	}
	seat.mu.Unlock()
	if ok && r.from == m.From {
		t.withdraw(ctx, seat, c.RequestID, r)
	}
	return nil
}

// forgetConsent withdraws the questions of a teammate that has left, and drops
// what was kept of its plan and its questions: the next agent of its name has
// asked nothing, and nothing was approved for it.
func (t *Teams) forgetConsent(ctx context.Context, who mailbox.Address) error {
	if seat := t.leadSeat(who.Team); seat != nil {
		for id, r := range seat.relaysOf(who.Agent) {
			t.withdraw(ctx, seat, id, r)
		}
	}
	asks, err := t.openAsks(ctx, who)
	if err != nil {
		return err
	}
	for _, open := range asks {
		if err := t.records.Drop(ctx, who.Team, RecordAsk, open.RequestID); err != nil {
			return err
		}
	}
	return t.records.Drop(ctx, who.Team, RecordPlan, who.Agent)
}

// leadSeat is the seat of a team's lead, or nil when another process has it.
func (t *Teams) leadSeat(team string) *Seat {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[team]; ok {
		if l, ok := t.leads[crew.leadSession]; ok && l.seat != nil && l.seat.Team == team {
			return l.seat
		}
	}
	return nil
}

func (s *Seat) relaysOf(name string) map[string]*relayed {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := make(map[string]*relayed)
	for id, r := range s.consent.relays {
		if r.from == name {
			of[id] = r
		}
	}
	return of
}

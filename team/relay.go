package team

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Relay puts a teammate's question before whoever may answer it: a person, or
// rules. It is called once per question and process, must not wait for the answer,
// and after an error it is called again a little later. answer may be called from
// any goroutine, also before Relay returns, and blocks until the answer stands in
// the teammate's inbox: [ask.ErrAnswered] for a second answer or a question that
// was withdrawn, [ask.ErrUnknown] when the asker has left the team.
type Relay func(ctx context.Context, from roster.Member, a ask.Ask, answer func(ctx context.Context, answer ask.Answer) error) error

// nobodyToAsk is the answer where nobody can be asked.
const nobodyToAsk = "Nobody can be asked by the team's lead in this run, so the answer is no."

// relays are the questions of teammates that a lead has put before somebody. The
// message that carried a question stays unread while the question is open, and so
// the question survives a restart of the lead.
type relays struct {
	seat      *Seat // the lead's
	mail      mailbox.Store
	seals     mailbox.Seals
	isOurs    func(ctx context.Context, who mailbox.Address) (bool, error)
	post      func(ctx context.Context, by event.Agent, to mailbox.Address, m mailbox.Message, about string) error
	markRead  func(ctx context.Context, lead *Seat, ids []mailbox.ID) error
	publish   func(by event.Agent, body event.Body)
	relay     Relay
	withdrawn func(ctx context.Context, askID string)
	since     time.Time // what was asked after this, only this process can have answered

	mu   sync.Mutex
	byID map[string]*relayed // by the question's id; one that is closed keeps its message from being relayed again
}

// relayed is a question that a lead has put before somebody.
type relayed struct {
	from    string
	kind    ask.Kind
	message mailbox.ID
	reply   func(context.Context, ask.Answer) error // posts the answer
	state   relayState                              // guarded by relays.mu
}

type relayState int

const (
	relayOpen      relayState = iota
	relayAnswering            // somebody's answer is being posted
	relayClosed
)

func newRelays(t *Teams, seat *Seat) *relays {
	return &relays{
		seat: seat, mail: t.options.Mail, seals: t.options.Seals, isOurs: t.members.isOurs, post: t.outbox.post, markRead: t.markLeadRead, publish: t.options.Publish,
		relay: t.options.Relay, withdrawn: t.options.Withdrawn, since: time.Now(), byID: make(map[string]*relayed),
	}
}

// requested relays a permission request in the lead's inbox. The lead's model is
// never shown one: it may not answer. Without IDs in mail the message stays unread.
func (r *relays) requested(ctx context.Context, m mailbox.Message, c protocol.PermissionRequest, mail *Mail) (show bool, err error) {
	if !r.seat.Lead {
		return true, nil
	}
	member, err := r.seat.recipient(ctx, m.From)
	if isUnknown(err) || c.RequestID == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a := r.question(m, c)
	if answered, err := r.answeredBefore(ctx, member.Name, m, c.RequestID, a.Digest); err != nil {
		return false, err
	} else if answered {
		r.withdrawn(ctx, a.ID)
		return false, nil
	}
	// A program that cannot seal its requests suggests nothing that lasts: whoever
	// can write to the inbox can pose as it.
	if ours, err := r.isOurs(ctx, mailbox.Address{Team: r.seat.Team, Agent: member.Name}); err != nil {
		return false, err
	} else if !ours {
		a.Suggestions = protocol.ForSession(a.Suggestions)
	}
	open, _, err := r.put(ctx, member, m, a, func(ctx context.Context, answer ask.Answer) error {
		return r.postAnswer(ctx, member.Name, a, answer)
	})
	if open {
		mail.IDs = nil
	}
	return false, err
}

// question is what a permission request asks, as the lead puts it before somebody.
func (r *relays) question(m mailbox.Message, c protocol.PermissionRequest) ask.Ask {
	a := ask.Ask{
		ID: c.RequestID, Kind: ask.Permission, SessionID: r.seat.session, AgentName: m.From, Team: r.seat.Team,
		Tool: c.ToolName, ToolUseID: c.ToolUseID, Input: c.Input, Digest: ask.DigestOf(c.ToolName, c.Input),
		Question: "May " + m.From + " run " + c.ToolName + "?", Reason: c.Description,
		Suggestions: protocol.Acceptable(c.Suggestions), Asked: sentAt(m),
	}
	switch c.ToolName {
	case protocol.AskUserQuestion:
		a.Kind, a.Question = ask.Choice, m.From+" has a question."
	case protocol.ExitPlanMode:
		a.Kind, a.Question = ask.Plan, "Is the plan of "+m.From+" good?"
	}
	return a
}

// put relays the question that a message carried, unless this process has done so
// before; first reports which. open reports that the question waits for an answer,
// so the message must stay unread.
func (r *relays) put(ctx context.Context, from roster.Member, m mailbox.Message, a ask.Ask,
	reply func(context.Context, ask.Answer) error) (open, first bool, err error) {
	one := &relayed{from: from.Name, kind: a.Kind, message: m.ID, reply: reply}
	r.mu.Lock()
	older := r.byID[a.ID]
	if older == nil {
		r.byID[a.ID] = one
	}
	open = older != nil && older.message == m.ID && older.state != relayClosed
	r.mu.Unlock()
	if older != nil {
		return open, false, nil
	}
	answer := func(ctx context.Context, answer ask.Answer) error { return r.answer(ctx, one, answer) }
	if r.relay == nil {
		err = answer(ctx, ask.Answer{Message: nobodyToAsk, By: "rule"})
	} else {
		err = r.relay(ctx, from, a, answer)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && one.state == relayOpen {
		delete(r.byID, a.ID)
		return false, false, err
	}
	return one.state != relayClosed, true, nil
}

// answer posts the answer to a relayed question. The first one counts.
func (r *relays) answer(ctx context.Context, one *relayed, answer ask.Answer) error {
	if !r.move(one, relayOpen, relayAnswering) {
		return ask.ErrAnswered
	}
	_, err := r.seat.recipient(ctx, one.from)
	if err == nil {
		err = one.reply(ctx, answer)
	}
	if err != nil && !isUnknown(err) {
		r.move(one, relayAnswering, relayOpen)
		return err
	}
	r.move(one, relayAnswering, relayClosed)
	r.markClosed(ctx, one)
	if err != nil {
		return ask.ErrUnknown
	}
	return nil
}

// move changes a question's state, if that is as expected; it reports whether it was.
func (r *relays) move(one *relayed, from, to relayState) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.state != from {
		return false
	}
	one.state = to
	return true
}

// markClosed marks the message of a closed question read. If that fails, the
// answer is found again after a restart ([relays.answeredBefore]).
func (r *relays) markClosed(ctx context.Context, one *relayed) {
	if err := r.markRead(ctx, r.seat, []mailbox.ID{one.message}); err != nil {
		r.publish(r.seat.agent(), event.Noticed{Level: "warning", Text: fmt.Sprintf("mark the request of %s read: %v", one.from, err)})
	}
}

// answeredBefore reports whether the answer to a request stands in its asker's
// inbox, sealed for what was asked: then an earlier process of the lead was killed
// before it marked the request read, and nobody is to be asked again.
func (r *relays) answeredBefore(ctx context.Context, asker string, m mailbox.Message, requestID, about string) (bool, error) {
	if sentAt(m).After(r.since) {
		return false, nil
	}
	inbox := mailbox.Address{Team: r.seat.Team, Agent: asker}
	all, err := r.mail.All(ctx, inbox)
	if err != nil {
		return false, err
	}
	for _, answer := range all {
		if answer.From != r.seat.Name || !answers(answer.Text, requestID) {
			continue
		}
		if sealed, err := r.seals.Sealed(ctx, inbox, answer, about); err != nil || sealed {
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

// withdraw closes a relayed question that needs no answer any more.
func (r *relays) withdraw(ctx context.Context, id string, one *relayed) {
	if r.move(one, relayOpen, relayClosed) {
		r.withdrawn(ctx, id)
		r.markClosed(ctx, one)
	}
}

// withdrawnByAsker closes a question of which its asker says that it needs no
// answer any more.
func (r *relays) withdrawnByAsker(ctx context.Context, asker, id string) {
	r.mu.Lock()
	one, ok := r.byID[id]
	if !ok && r.seat.Lead { // the request itself may be read only after this
		r.byID[id] = &relayed{from: asker, state: relayClosed}
	}
	r.mu.Unlock()
	if ok && one.from == asker {
		r.withdraw(ctx, id, one)
	}
}

// withdrawAll closes the questions of a teammate that match.
func (r *relays) withdrawAll(ctx context.Context, asker string, matches func(id string, kind ask.Kind) bool) {
	asked := make(map[string]*relayed)
	r.mu.Lock()
	for id, one := range r.byID {
		if one.from == asker && matches(id, one.kind) {
			asked[id] = one
		}
	}
	r.mu.Unlock()
	for id, one := range asked {
		r.withdraw(ctx, id, one)
	}
}

// postAnswer posts the answer to a permission request, sealed for the digest of
// what was asked.
func (r *relays) postAnswer(ctx context.Context, to string, a ask.Ask, answer ask.Answer) error {
	inbox := mailbox.Address{Team: r.seat.Team, Agent: to}
	m := r.seat.stamps.distinct(inbox, mailbox.Message{
		From: r.seat.Name, Text: protocol.Encode(protocol.NewPermissionResponse(a, answer)), Timestamp: protocol.Stamp(time.Now()),
	})
	if err := r.seals.Seal(ctx, inbox, m, a.Digest); err != nil {
		return err
	}
	return r.post(ctx, r.seat.agent(), inbox, m, sealedProtocol)
}

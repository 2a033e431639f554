package team

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// leadColor is the colour in which results show the lead, who has none in
// rosters and mail (facts: claude-code §5.3).
const leadColor = "red"

// Delivery says where a message went.
type Delivery struct {
	To    string     // the recipient's name on the roster
	Color string     // the recipient's
	ID    mailbox.ID // of the message in the recipient's inbox; "" where nobody can ask for it
}

// SendOption says how a message is sent.
type SendOption func(*sendOptions)

type sendOptions struct{ receipt bool }

// WithReceipt has the sender notified when the recipient's model has been shown the
// message: by one note of the runtime in its inbox, also after a restart.
func WithReceipt() SendOption { return func(o *sendOptions) { o.receipt = true } }

// Send posts a message that a model wrote to a member of the team; to may be a
// name or name@team. It returns nil only when the message stands in the inbox of
// a recipient who can read it. It costs an append beside the inbox, for the seal,
// and one to it. Errors: [*roster.UnknownMemberError], [*LoopError], [ErrProtocol],
// [ErrTooLong], [ErrLeft].
func (s *Seat) Send(ctx context.Context, to, text, summary string, options ...SendOption) (Delivery, error) {
	var o sendOptions
	for _, option := range options {
		option(&o)
	}
	if err := s.mayWrite(text); err != nil {
		return Delivery{}, err
	}
	member, err := s.recipient(ctx, to)
	if err != nil {
		return Delivery{}, err
	}
	m := s.message(text, summary)
	id, err := s.sendTo(ctx, member.Name, m, o.receipt)
	if err != nil {
		return Delivery{}, err
	}
	if member.Name != mailbox.LeadName {
		s.turn.noteDM("[to " + member.Name + "] " + summary)
	}
	return Delivery{member.Name, shownColor(member), id}, nil
}

// sendTo posts a message that a model wrote, unless that only keeps a loop
// going, and makes sure that its recipient has not gone meanwhile.
func (s *Seat) sendTo(ctx context.Context, to string, m mailbox.Message, receipt bool) (mailbox.ID, error) {
	if err := s.mayAnswer(ctx, to); err != nil {
		return "", err
	}
	at := mailbox.Address{Team: s.Team, Agent: to}
	m = s.stamps.distinct(at, m)
	id := mailbox.FirstID(m)
	if receipt { // before the message: a crash in between leaves a receipt that is never given
		if err := s.receipts.add(ctx, readReceipt{To: to, ID: id, Summary: m.Summary, Timestamp: m.Timestamp}); err != nil {
			return "", err
		}
	}
	err := s.post(ctx, to, m)
	if err == nil {
		err = s.teams.outbox.confirm(ctx, at, m)
	}
	if err != nil && receipt {
		err = errors.Join(err, s.receipts.remove(ctx, id))
	}
	return id, err
}

// Reach says whom a broadcast reached.
type Reach struct {
	Reached []string // in the order of the roster
	Missed  []Missed
}

// Missed is a member that a broadcast did not reach.
type Missed struct {
	Name string
	Err  error
}

// Broadcast posts a message that a model wrote to every other member, one write
// each. A member that it could not be posted to does not stop it.
func (s *Seat) Broadcast(ctx context.Context, text, summary string) (Reach, error) {
	if err := s.mayWrite(text); err != nil {
		return Reach{}, err
	}
	config, err := s.config(ctx)
	if err != nil {
		return Reach{}, err
	}
	m := s.message(text, summary)
	var reach Reach
	for _, member := range config.Members {
		if member.Name == s.Name || s.teams.crews.isDeparting(mailbox.Address{Team: s.Team, Agent: member.Name}) {
			continue
		}
		if _, err := s.sendTo(ctx, member.Name, m, false); err != nil {
			reach.Missed = append(reach.Missed, Missed{member.Name, err})
			continue
		}
		reach.Reached = append(reach.Reached, member.Name)
	}
	return reach, nil
}

func (s *Seat) mayWrite(text string) error {
	if s.hasLeft() {
		return ErrLeft
	}
	return mayPost(text)
}

// mayPost reports why nobody may send a text.
func mayPost(text string) error {
	if len(text) > protocol.MaxShown {
		return ErrTooLong
	}
	if _, isProtocol := protocol.Parse(text); isProtocol {
		return ErrProtocol
	}
	return nil
}

func (s *Seat) message(text, summary string) mailbox.Message {
	summary = strings.Join(strings.Fields(summary), " ")
	return mailbox.Message{From: s.Name, Text: text, Summary: summary, Timestamp: protocol.Stamp(time.Now()), Color: s.Color}
}

func shownColor(m roster.Member) string {
	if m.Name == mailbox.LeadName {
		return leadColor
	}
	return m.Color
}

// Say posts what a person writes to a member of a team; to may be a name or
// name@team. It needs no place in the team, and works from any process. To its
// recipient it is as urgent as the lead's mail. Errors: [roster.ErrNotFound] for the
// team, [*roster.UnknownMemberError], [ErrProtocol], [ErrTooLong].
func (t *Teams) Say(ctx context.Context, team, to, text string) (Delivery, error) {
	if err := mayPost(text); err != nil {
		return Delivery{}, err
	}
	config, err := t.members.rosters.Load(ctx, team)
	if err != nil {
		return Delivery{}, err
	}
	member, err := t.members.find(ctx, &config, to)
	if err != nil {
		return Delivery{}, err
	}
	m := mailbox.Message{From: mailbox.UserName, Text: text, Timestamp: protocol.Stamp(time.Now())}
	at := mailbox.Address{Team: config.Name, Agent: member.Name}
	if err := t.outbox.post(ctx, event.Agent{Name: mailbox.UserName}, at, m, sealedText); err != nil {
		return Delivery{}, err
	}
	if err := t.outbox.confirm(ctx, at, m); err != nil {
		return Delivery{}, err
	}
	return Delivery{To: member.Name, Color: shownColor(member), ID: mailbox.FirstID(m)}, nil
}

// post posts plain mail to a member of the team.
func (s *Seat) post(ctx context.Context, to string, m mailbox.Message) error {
	return s.teams.outbox.post(ctx, s.agent(), mailbox.Address{Team: s.Team, Agent: to}, m, sealedText)
}

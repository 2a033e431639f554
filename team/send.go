package team

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/near"
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

// WithReceipt has the sender told when the recipient's model has been shown the
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
		s.mu.Lock()
		s.lastDM = "[to " + member.Name + "] " + summary
		s.mu.Unlock()
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
	m = s.unique(at, m)
	id := mailbox.FirstID(m)
	if receipt { // before the message: a crash in between leaves a receipt that is never given
		if err := s.receipts.add(ctx, readReceipt{To: to, ID: id, Summary: m.Summary, Timestamp: m.Timestamp}); err != nil {
			return "", err
		}
	}
	err := s.post(ctx, to, m)
	if err == nil {
		err = s.teams.confirm(ctx, at, m)
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
		if member.Name == s.Name || s.teams.departing(s.Team, member.Name) {
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

// recipient finds a member on the roster as it is now.
func (s *Seat) recipient(ctx context.Context, to string) (roster.Member, error) {
	config, err := s.config(ctx)
	if err != nil {
		return roster.Member{}, err
	}
	return s.teams.member(ctx, &config, to)
}

// member finds a member by name or name@team. One that is leaving counts as
// departed: it reads no more mail.
func (t *Teams) member(ctx context.Context, c *roster.Roster, asked string) (roster.Member, error) {
	name := strings.TrimSpace(asked)
	if m := c.Find(strings.TrimSuffix(name, "@"+c.Name)); m != nil && !t.departing(c.Name, m.Name) {
		return *m, nil
	}
	unknown := &roster.UnknownMemberError{Name: name, Team: c.Name}
	unknown.Departed = t.departing(c.Name, name) || t.wasMember(ctx, c, name)
	for _, m := range c.Members {
		if !t.departing(c.Name, m.Name) {
			unknown.Members = append(unknown.Members, m.Name)
		}
	}
	local, _, _ := strings.Cut(name, "@")
	unknown.Near = near.Names(local, unknown.Members)
	return roster.Member{}, unknown
}

// departing reports whether a teammate has left, or is about to, as far as this
// process knows.
func (t *Teams) departing(team, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[team]
	if !ok {
		return false
	}
	if crew.departures[name] != nil {
		return true
	}
	seat, ok := crew.mates[name]
	return ok && seat.hasLeft()
}

// wasMember reports whether an agent that is not on the roster has been: it has
// had mail.
func (t *Teams) wasMember(ctx context.Context, c *roster.Roster, name string) bool {
	clean, err := roster.CleanName(name)
	if err != nil || clean != name || c.Find(name) != nil {
		return false
	}
	all, err := t.mail.All(ctx, mailbox.Address{Team: c.Name, Agent: name})
	return err == nil && len(all) > 0
}

func shownColor(m roster.Member) string {
	if m.Name == mailbox.LeadName {
		return leadColor
	}
	return m.Color
}

// isUnknown reports whether err says that a recipient does not exist.
func isUnknown(err error) bool {
	_, ok := errors.AsType[*roster.UnknownMemberError](err)
	return ok
}

// Say posts what a person writes to a member of a team; to may be a name or
// name@team. It needs no place in the team, and works from any process. To its
// recipient it is as urgent as the lead's mail. Errors: [roster.ErrNotFound] for the
// team, [*roster.UnknownMemberError], [ErrProtocol], [ErrTooLong].
func (t *Teams) Say(ctx context.Context, team, to, text string) (Delivery, error) {
	if err := mayPost(text); err != nil {
		return Delivery{}, err
	}
	config, err := t.store.Load(ctx, team)
	if err != nil {
		return Delivery{}, err
	}
	member, err := t.member(ctx, &config, to)
	if err != nil {
		return Delivery{}, err
	}
	m := mailbox.Message{From: mailbox.UserName, Text: text, Timestamp: protocol.Stamp(time.Now())}
	at := mailbox.Address{Team: config.Name, Agent: member.Name}
	if err := t.post(ctx, event.Agent{Name: mailbox.UserName}, at, m, sealedText); err != nil {
		return Delivery{}, err
	}
	if err := t.confirm(ctx, at, m); err != nil {
		return Delivery{}, err
	}
	return Delivery{To: member.Name, Color: shownColor(member), ID: mailbox.FirstID(m)}, nil
}

// What a seal is bound to. Text that looks like protocol to its reader must not
// count as such because a runtime that knows fewer types has sealed it as text.
// Who seals a message of the protocol for more (the digest of an input) does that
// in addition.
const (
	sealedProtocol = ""
	sealedText     = "text"
)

// post puts plain mail into an inbox, sealed, and tells of it.
func (s *Seat) post(ctx context.Context, to string, m mailbox.Message) error {
	return s.teams.post(ctx, s.agent(), mailbox.Address{Team: s.Team, Agent: to}, m, sealedText)
}

// postControl posts a message of the protocol. Its outer timestamp is the inner
// one; whether it has a colour depends on its type (facts: claude-code §5.2).
func (s *Seat) postControl(ctx context.Context, to string, at time.Time, c protocol.Control) error {
	m := mailbox.Message{From: s.Name, Text: protocol.Encode(c), Timestamp: protocol.Stamp(at), Color: s.Color}
	if protocol.KindOf(c) == protocol.TypePlanRequest {
		m.Color = ""
	}
	inbox := mailbox.Address{Team: s.Team, Agent: to}
	m = s.uniquely(inbox, m, func(m *mailbox.Message, timestamp string) {
		m.Text = strings.Replace(m.Text, inner(m.Timestamp), inner(timestamp), 1)
		m.Timestamp = timestamp
	})
	return s.teams.post(ctx, s.agent(), inbox, m, sealedProtocol)
}

// inner is a timestamp as the text of a message of the protocol has it.
func inner(timestamp string) string { return `"timestamp":"` + timestamp + `"` }

// post seals a message and puts it into an inbox: one append beside the inbox,
// and one to it. The seal comes first, since a reader may be faster.
func (t *Teams) post(ctx context.Context, by event.Agent, to mailbox.Address, m mailbox.Message, about string) error {
	if err := t.seals.Seal(ctx, to, m, about); err != nil {
		return err
	}
	t.posted.add(to, m)
	if err := t.mail.Post(ctx, to, m); err != nil {
		return err
	}
	t.publish(by, event.MailSent{To: to, Message: m})
	return nil
}

// sentMemory bounds what a seat remembers of what it sent. Only what was sent
// within the same millisecond matters.
const sentMemory = 256

// unique makes a message differ from all that the seat has posted to an inbox,
// by its timestamp: only the first of equal messages has a valid seal, so that
// nobody gains by copying one, and its identity is known before it is posted.
func (s *Seat) unique(to mailbox.Address, m mailbox.Message) mailbox.Message {
	return s.uniquely(to, m, func(m *mailbox.Message, timestamp string) { m.Timestamp = timestamp })
}

// uniquely is unique with a way to give a message another timestamp.
func (s *Seat) uniquely(to mailbox.Address, m mailbox.Message, restamp func(*mailbox.Message, string)) mailbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		key := mailbox.ID(to.Agent+"/") + mailbox.FirstID(m)
		if !s.sent[key] {
			if len(s.sent) >= sentMemory {
				clear(s.sent)
			}
			s.sent[key] = true
			return m
		}
		at, err := time.Parse(time.RFC3339Nano, m.Timestamp)
		if err != nil {
			return m
		}
		restamp(&m, protocol.Stamp(at.Add(time.Millisecond)))
	}
}

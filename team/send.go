package team

import (
	"context"
	"errors"
	"strings"
	"time"

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

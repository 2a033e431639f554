package team

import (
	"context"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

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
	t.told.add(to, m)
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

package team

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
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

// outbox posts messages for the agents of this process, for its runtime and for people.
// Its methods may be called from any goroutine.
type outbox struct {
	mail    mailbox.Store
	seals   mailbox.Seals
	members *members
	publish func(by event.Agent, body event.Body)
	posted  posted
}

// post seals a message, puts it into an inbox and publishes it: one append beside the
// inbox, and one to it. The seal comes first, since a reader may be faster.
func (o *outbox) post(ctx context.Context, by event.Agent, to mailbox.Address, m mailbox.Message, about string) error {
	if err := o.seals.Seal(ctx, to, m, about); err != nil {
		return err
	}
	o.posted.add(to, m)
	if err := o.mail.Post(ctx, to, m); err != nil {
		return err
	}
	o.publish(by, event.MailSent{To: to, Message: m})
	return nil
}

// confirm reports, after a message was posted, whether its recipient is still there to
// read it. A departure returns the unread mail of its agent after it has removed the
// agent from the roster. So either the departure finds this message, or the message is
// withdrawn here, and the error says that it was not sent.
func (o *outbox) confirm(ctx context.Context, to mailbox.Address, m mailbox.Message) error {
	config, err := o.members.rosters.Load(ctx, to.Team)
	if errors.Is(err, roster.ErrNotFound) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // it was posted; that nobody can say more now is no failure of that
	}
	_, gone := o.members.find(ctx, &config, to.Agent)
	if gone == nil {
		return nil
	}
	unread, err := o.mail.Unread(ctx, to)
	if err != nil {
		return err
	}
	id := mailbox.FirstID(m)
	if !slices.ContainsFunc(unread, func(u mailbox.Message) bool { return u.ID == id }) {
		return nil // shown in time, or returned
	}
	return errors.Join(gone, o.mail.MarkRead(ctx, to, []mailbox.ID{id}))
}

// publishArrival publishes a message that another process has posted to an inbox of this
// one; people here would see only its effects otherwise. A message of this process was
// published when it was posted. from is the sender as it was verified.
func (o *outbox) publishArrival(seat *Seat, m mailbox.Message, from string) {
	if o.posted.remove(seat.Address(), m) {
		return
	}
	m.From = from
	by := event.Agent{Session: seat.session, Name: m.From, Color: m.Color}
	o.publish(by, event.MailSent{To: seat.Address(), Message: m})
}

// posted remembers the newest messages that this process has posted, so that they are
// not published again when they arrive. One that was forgotten is published twice. The
// zero value is ready.
type posted struct {
	mu     sync.Mutex
	known  map[postedKey]bool
	oldest []postedKey
}

type postedKey struct {
	to mailbox.Address
	id mailbox.ID
}

// maxPosted bounds what is remembered of messages to inboxes that other processes read.
const maxPosted = 1024

// add remembers a message. It is called before the post, since the reader may be faster.
func (p *posted) add(to mailbox.Address, m mailbox.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = make(map[postedKey]bool)
	}
	key := postedKey{to, mailbox.FirstID(m)}
	p.known[key] = true
	if p.oldest = append(p.oldest, key); len(p.oldest) > maxPosted {
		delete(p.known, p.oldest[0])
		p.oldest = p.oldest[1:]
	}
}

// remove forgets a message, and reports whether it was posted here.
func (p *posted) remove(to mailbox.Address, m mailbox.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := postedKey{to, mailbox.FirstID(m)}
	known := p.known[key]
	delete(p.known, key)
	return known
}

// onceOutbox posts notes of the runtime to members of a team, each only once: one that
// stands in an inbox already, from before a crash, is not posted again. It reads each
// inbox once.
type onceOutbox struct {
	outbox *outbox
	team   string
	found  map[string]map[mailbox.ID]bool // the messages of an inbox, by member
}

func (o *onceOutbox) post(ctx context.Context, name string, note mailbox.Message) error {
	to := mailbox.Address{Team: o.team, Agent: name}
	if o.found[name] == nil {
		all, err := o.outbox.mail.All(ctx, to)
		if err != nil {
			return err
		}
		if o.found == nil {
			o.found = make(map[string]map[mailbox.ID]bool)
		}
		o.found[name] = idsOf(all)
	}
	id := mailbox.FirstID(note)
	if o.found[name][id] {
		return nil
	}
	o.found[name][id] = true
	return o.outbox.post(ctx, event.Agent{Name: mailbox.SystemName}, to, note, sealedProtocol)
}

// stamps keep the messages that an agent posts distinct, by their timestamps: only the
// first of equal messages has a valid seal, so that nobody gains by copying one, and a
// message's identity is known before it is posted. The zero value is ready.
type stamps struct {
	mu   sync.Mutex
	used map[mailbox.ID]bool // by inbox and message
}

// maxStamps bounds what is remembered. Only what was sent within the same millisecond
// matters.
const maxStamps = 256

// distinct gives a message a timestamp, its own or a later one, with which it differs
// from all that was posted to an inbox before.
func (s *stamps) distinct(to mailbox.Address, m mailbox.Message) mailbox.Message {
	return s.restamp(to, m, func(m *mailbox.Message, timestamp string) { m.Timestamp = timestamp })
}

// restamp is distinct with a way to give a message another timestamp.
func (s *stamps) restamp(to mailbox.Address, m mailbox.Message, set func(*mailbox.Message, string)) mailbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		key := mailbox.ID(to.Agent+"/") + mailbox.FirstID(m)
		if !s.used[key] {
			if s.used == nil || len(s.used) >= maxStamps {
				s.used = make(map[mailbox.ID]bool)
			}
			s.used[key] = true
			return m
		}
		at, err := time.Parse(time.RFC3339Nano, m.Timestamp)
		if err != nil {
			return m
		}
		set(&m, protocol.Stamp(at.Add(time.Millisecond)))
	}
}

package team

import (
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
)

// tellArrival tells of a message that another process has put into an inbox of
// this one: people here would see its effects only. What this process posts is
// told when it is posted. The sender is told as it was found to be.
func (t *Teams) tellArrival(seat *Seat, m mailbox.Message, from string) {
	if t.told.take(seat.Address(), m) {
		return
	}
	m.From = from
	by := event.Agent{Session: seat.session, Name: m.From, Color: m.Color}
	t.publish(by, event.MailSent{To: seat.Address(), Message: m})
}

// told remembers the newest messages that this process has posted. What is
// forgotten is told twice, no more.
type told struct {
	mu     sync.Mutex
	known  map[toldKey]bool
	oldest []toldKey
}

type toldKey struct {
	to mailbox.Address
	id mailbox.ID
}

// maxTold bounds the memory of what is posted to inboxes that others read.
const maxTold = 1024

// add notes a message before it is posted: its reader may be faster.
func (t *told) add(to mailbox.Address, m mailbox.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = make(map[toldKey]bool)
	}
	key := toldKey{to, mailbox.FirstID(m)}
	t.known[key] = true
	if t.oldest = append(t.oldest, key); len(t.oldest) > maxTold {
		delete(t.known, t.oldest[0])
		t.oldest = t.oldest[1:]
	}
}

// take reports whether a message was posted here, once.
func (t *told) take(to mailbox.Address, m mailbox.Message) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := toldKey{to, mailbox.FirstID(m)}
	known := t.known[key]
	delete(t.known, key)
	return known
}

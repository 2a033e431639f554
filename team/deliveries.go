package team

import (
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
)

// deliveries is an inbox's record of what became of each message, so that none is shown
// twice and each is marked read in the end.
type deliveries struct {
	mu        sync.Mutex
	handedOut map[mailbox.ID]*handedOut        // given to the session, and perhaps still unread in the store
	past      []mailbox.ID                     // what stood in the transcript when the inbox was opened
	shown     map[mailbox.ID]bool              // the same; after the first reading only its end
	toMark    map[mailbox.Address][]mailbox.ID // to be marked read in the store

	readings int // under way
}

// handedOut is a message that the session was given.
type handedOut struct {
	at   mailbox.Address
	read bool // as the store confirmed, or gone with its inbox
}

func newDeliveries(shown []mailbox.ID) *deliveries {
	r := &deliveries{
		handedOut: make(map[mailbox.ID]*handedOut), past: shown, shown: idSet(shown),
		toMark: make(map[mailbox.Address][]mailbox.ID),
	}
	return r
}

func idSet(ids []mailbox.ID) map[mailbox.ID]bool {
	set := make(map[mailbox.ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// maxPast is how much of what a transcript shows is remembered after the first reading.
// That may have found the inbox empty, while another program was writing it; what it
// missed is unread only if it was shown just before the kill.
const maxPast = 1024

// forgetPast forgets what was marked read long ago.
func (r *deliveries) forgetPast() {
	if len(r.past) > maxPast {
		r.shown = idSet(r.past[len(r.past)-maxPast:])
	}
	r.past = nil
}

// beginReading says that a reading of the store starts; handOut or abortReading ends it.
func (r *deliveries) beginReading() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings++
}

// abortReading ends a reading that failed.
func (r *deliveries) abortReading() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endReading()
}

// endReading ends a reading. What is read can be forgotten only when no reading is
// under way: one that started earlier may still have it as unread.
func (r *deliveries) endReading() {
	if r.readings--; r.readings > 0 {
		return
	}
	for id, g := range r.handedOut {
		if g.read {
			delete(r.handedOut, id)
		}
	}
}

// handOut returns the messages of a reading that are new: neither handed out nor shown
// before. It records that they are handed out, and ends the reading.
func (r *deliveries) handOut(at mailbox.Address, unread []mailbox.Message) []mailbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []mailbox.Message
	for _, m := range unread {
		if r.handedOut[m.ID] != nil {
			continue
		}
		r.handedOut[m.ID] = &handedOut{at: at}
		if r.shown[m.ID] {
			r.toMark[at] = append(r.toMark[at], m.ID)
			continue
		}
		fresh = append(fresh, m)
	}
	r.endReading()
	r.forgetPast()
	return fresh
}

// offerAgain makes a message that could not be shown new again.
func (r *deliveries) offerAgain(id mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.handedOut, id)
}

// queueMark records messages that are to be marked read. It ignores ids of anything but
// mail.
func (r *deliveries) queueMark(ids ...mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if g := r.handedOut[id]; g != nil && !g.read {
			r.toMark[g.at] = append(r.toMark[g.at], id)
		}
	}
}

// drainMarks returns the messages to mark, for the caller to mark them.
func (r *deliveries) drainMarks() map[mailbox.Address][]mailbox.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks := r.toMark
	r.toMark = make(map[mailbox.Address][]mailbox.ID)
	return marks
}

// requeueMarks records again what could not be marked.
func (r *deliveries) requeueMarks(at mailbox.Address, ids []mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.toMark[at] = append(r.toMark[at], ids...)
}

// noteRead records that the store has messages as read.
func (r *deliveries) noteRead(ids []mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if g := r.handedOut[id]; g != nil {
			g.read = true
		}
	}
}

// dropInbox says that an inbox was deleted: nothing in it needs to be marked.
func (r *deliveries) dropInbox(at mailbox.Address) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.toMark, at)
	for _, g := range r.handedOut {
		if g.at == at {
			g.read = true
		}
	}
}

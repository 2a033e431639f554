package team

import (
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
)

// receipts is an inbox's account of what became of each message, so that none is
// shown twice and each is marked read in the end.
type receipts struct {
	mu    sync.Mutex
	given map[mailbox.ID]*given            // handed out, and maybe still unread in the store
	shown map[mailbox.ID]bool              // stood in the transcript when the inbox was opened
	owed  map[mailbox.Address][]mailbox.ID // to be marked read

	readings int // under way
}

// given is a message that was handed out.
type given struct {
	at   mailbox.Address
	read bool // as the store confirmed, or gone with its inbox
}

func newReceipts(shown []mailbox.ID) *receipts {
	r := &receipts{
		given: make(map[mailbox.ID]*given), shown: make(map[mailbox.ID]bool, len(shown)),
		owed: make(map[mailbox.Address][]mailbox.ID),
	}
	for _, id := range shown {
		r.shown[id] = true
	}
	return r
}

// begin says that a reading of the store starts; fresh or abort ends it.
func (r *receipts) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readings++
}

// abort ends a reading that failed.
func (r *receipts) abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end()
}

// end ends a reading. What is read can be forgotten only when no reading is
// under way: one that started earlier may still have it as unread.
func (r *receipts) end() {
	if r.readings--; r.readings > 0 {
		return
	}
	for id, g := range r.given {
		if g.read {
			delete(r.given, id)
		}
	}
}

// fresh picks the messages of a reading that were neither handed out nor shown
// before, notes them as handed out, and ends the reading.
func (r *receipts) fresh(at mailbox.Address, unread []mailbox.Message) []mailbox.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []mailbox.Message
	for _, m := range unread {
		if r.given[m.ID] != nil {
			continue
		}
		r.given[m.ID] = &given{at: at}
		if r.shown[m.ID] {
			r.owed[at] = append(r.owed[at], m.ID)
			continue
		}
		fresh = append(fresh, m)
	}
	r.end()
	r.shown = nil // the first reading has all of it that is still unread
	return fresh
}

// giveBack makes a message new again.
func (r *receipts) giveBack(id mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.given, id)
}

// owe notes messages to be marked read. Ids that are no mail's are left alone.
func (r *receipts) owe(ids ...mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if g := r.given[id]; g != nil && !g.read {
			r.owed[g.at] = append(r.owed[g.at], id)
		}
	}
}

// takeOwed returns what is owed, and owes nothing any more.
func (r *receipts) takeOwed() map[mailbox.Address][]mailbox.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	owed := r.owed
	r.owed = make(map[mailbox.Address][]mailbox.ID)
	return owed
}

// oweAgain takes back what could not be marked.
func (r *receipts) oweAgain(at mailbox.Address, ids []mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed[at] = append(r.owed[at], ids...)
}

// marked notes messages as read.
func (r *receipts) marked(ids []mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if g := r.given[id]; g != nil {
			g.read = true
		}
	}
}

// forget says that an inbox is no more: nothing of it is to be marked.
func (r *receipts) forget(at mailbox.Address) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owed, at)
	for _, g := range r.given {
		if g.at == at {
			g.read = true
		}
	}
}

package team

import (
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
)

// ledger remembers which waiting messages our own runtime posted as protocol.
// It holds what is true by construction inside one process: a message that is
// not in it was written by a model or by another program.
type ledger struct {
	mu     sync.Mutex
	posted map[mailbox.Address]map[mailbox.ID]int
}

// ledgerKey is a message's identity without its occurrence.
func ledgerKey(m mailbox.Message) mailbox.ID {
	var first mailbox.Identities
	return first.Next(m)
}

// add notes a message before it is posted: its reader may be faster than the
// poster.
func (l *ledger) add(to mailbox.Address, m mailbox.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.posted == nil {
		l.posted = make(map[mailbox.Address]map[mailbox.ID]int)
	}
	if l.posted[to] == nil {
		l.posted[to] = make(map[mailbox.ID]int)
	}
	l.posted[to][ledgerKey(m)]++
}

// remove forgets a message that was not posted after all, or is marked read.
func (l *ledger) remove(to mailbox.Address, id mailbox.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inbox, ok := l.posted[to]
	if !ok {
		return
	}
	if inbox[id]--; inbox[id] <= 0 {
		delete(inbox, id)
	}
	if len(inbox) == 0 {
		delete(l.posted, to)
	}
}

// removeAll forgets everything posted to an address.
func (l *ledger) removeAll(to mailbox.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.posted, to)
}

// has reports whether the runtime posted this message as protocol.
func (l *ledger) has(to mailbox.Address, m mailbox.Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.posted[to][ledgerKey(m)] > 0
}

package team

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
)

// agentWait is whom an agent waits for.
type agentWait struct {
	who    mailbox.Address // the zero Address: nobody can wait for the waiting one
	agents []string        // of its team
	all    bool
	tasks  bool // it waits for tasks too
}

// waits are the waits of this process's agents. The zero value has none.
type waits struct {
	mu  sync.Mutex
	all map[*agentWait]struct{}
}

// begin adds a wait, unless it could never end: [ErrEndlessWait].
func (w *waits) begin(a *agentWait) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[*agentWait]struct{})
	}
	w.all[a] = struct{}{}
	if w.endless()[a] {
		delete(w.all, a)
		return fmt.Errorf("wait for %s, who waits for you: %w", strings.Join(a.agents, ", "), ErrEndlessWait)
	}
	return nil
}

func (w *waits) end(a *agentWait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, a)
}

// endless are the waits that none but each other could end: what remains when
// those that may end are taken away, again and again.
func (w *waits) endless() map[*agentWait]bool {
	stuck := make(map[*agentWait]bool, len(w.all))
	for a := range w.all {
		stuck[a] = true
	}
	for again := true; again; {
		again = false
		for a := range maps.Clone(stuck) {
			if a.mayEnd(stuck) {
				delete(stuck, a)
				again = true
			}
		}
	}
	return stuck
}

// mayEnd reports whether the wait can end while the stuck ones do not.
func (a *agentWait) mayEnd(stuck map[*agentWait]bool) bool {
	waits := func(name string) bool {
		for other := range stuck {
			if other.who == (mailbox.Address{Team: a.who.Team, Agent: name}) {
				return true
			}
		}
		return false
	}
	if a.all {
		return !slices.ContainsFunc(a.agents, waits)
	}
	return a.tasks || len(a.agents) == 0 || slices.ContainsFunc(a.agents, func(name string) bool { return !waits(name) })
}

package team

import (
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/mailbox"
)

// watches is a watch over several inboxes at once. Its methods belong to one
// goroutine.
type watches struct {
	mail mailbox.Store
	any  signal.Signal // one of the inboxes may have changed

	stops   map[mailbox.Address]func()
	running sync.WaitGroup // what passes the signals on
}

func newWatches(mail mailbox.Store) *watches {
	return &watches{mail: mail, any: signal.New(), stops: make(map[mailbox.Address]func())}
}

// set says which inboxes to watch from now on. It reports whether one of them was not
// watched before: what came there until now gives no signal.
func (w *watches) set(at []mailbox.Address) (added bool) {
	for watched, stop := range w.stops {
		if !slices.Contains(at, watched) {
			stop()
			delete(w.stops, watched)
		}
	}
	for _, one := range at {
		if w.stops[one] == nil {
			w.stops[one], added = w.watch(one), true
		}
	}
	return added
}

func (w *watches) watch(at mailbox.Address) (stop func()) {
	changed, unwatch := w.mail.Watch(at)
	over := make(chan struct{})
	w.running.Go(func() {
		for {
			select {
			case <-changed:
				w.any.Raise()
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		unwatch()
	}
}

// close ends all watches and waits until nothing of them runs.
func (w *watches) close() {
	w.set(nil)
	w.running.Wait()
}

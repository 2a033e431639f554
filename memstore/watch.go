package memstore

import (
	"sync"

	"github.com/cadre-dev/cadre/internal/signal"
)

// watchers are the signals of those who watch the things of one store, by
// name.
type watchers struct {
	mu  sync.Mutex
	all map[string]map[signal.Signal]struct{}
}

func (w *watchers) watch(name string) (<-chan struct{}, func()) {
	changed := signal.New()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[string]map[signal.Signal]struct{})
	}
	if w.all[name] == nil {
		w.all[name] = make(map[signal.Signal]struct{})
	}
	w.all[name][changed] = struct{}{}
	return changed, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.all[name], changed); len(w.all[name]) == 0 {
			delete(w.all, name)
		}
	}
}

func (w *watchers) wake(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for changed := range w.all[name] {
		changed.Raise()
	}
}

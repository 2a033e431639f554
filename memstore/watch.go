package memstore

import "sync"

// watchers are the channels of those who watch the things of one store, by
// name.
type watchers struct {
	mu  sync.Mutex
	all map[string]map[chan struct{}]struct{}
}

func (w *watchers) watch(name string) (<-chan struct{}, func()) {
	signal := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[string]map[chan struct{}]struct{})
	}
	if w.all[name] == nil {
		w.all[name] = make(map[chan struct{}]struct{})
	}
	w.all[name][signal] = struct{}{}
	return signal, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.all[name], signal); len(w.all[name]) == 0 {
			delete(w.all, name)
		}
	}
}

func (w *watchers) wake(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for signal := range w.all[name] {
		select {
		case signal <- struct{}{}:
		default: // it has a signal that it did not take yet
		}
	}
}

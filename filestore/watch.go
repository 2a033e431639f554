package filestore

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// hub tells watchers that files changed. What this process writes it tells at
// once; what others write it learns from the system, and from looking every
// poll interval where the system does not tell.
type hub struct {
	fsys fsx.FS
	poll time.Duration

	mu      sync.Mutex
	folders map[string]*watchedFolder
	lookout *lookout // nil while nobody watches
	closed  bool
}

// watchedFolder is a folder that somebody watches a file of, or all of them.
type watchedFolder struct {
	watchers map[*watcher]struct{}
	told     map[string]fsx.Key // the version of each file that watchers know of
}

// watcher waits for one file of a folder, or with the name "" for any.
type watcher struct {
	name   string
	signal chan struct{}
}

func (w *watcher) wake() {
	select {
	case w.signal <- struct{}{}:
	default: // it has a signal that it did not take yet
	}
}

func newHub(fsys fsx.FS, poll time.Duration) *hub {
	return &hub{fsys: fsys, poll: poll, folders: make(map[string]*watchedFolder)}
}

// watchFile watches one file, which need not exist, nor its folder.
func (h *hub) watchFile(path string) (<-chan struct{}, func()) {
	return h.watch(filepath.Dir(path), filepath.Base(path))
}

// watchFolder watches all JSON files of a folder.
func (h *hub) watchFolder(folder string) (<-chan struct{}, func()) { return h.watch(folder, "") }

func (h *hub) watch(folder, name string) (<-chan struct{}, func()) {
	w := &watcher{name, make(chan struct{}, 1)}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return w.signal, func() {}
	}
	f := h.folders[folder]
	if f == nil {
		f = &watchedFolder{make(map[*watcher]struct{}), make(map[string]fsx.Key)}
		h.folders[folder] = f
	}
	f.watchers[w] = struct{}{}
	if h.lookout == nil {
		h.lookout = h.startLookout()
	}
	lookout := h.lookout
	h.mu.Unlock()
	lookout.look(folder)
	return w.signal, sync.OnceFunc(func() { h.unwatch(folder, w) })
}

func (h *hub) unwatch(folder string, w *watcher) {
	h.mu.Lock()
	if f := h.folders[folder]; f != nil {
		if delete(f.watchers, w); len(f.watchers) == 0 {
			delete(h.folders, folder)
		}
	}
	var idle *lookout
	if len(h.folders) == 0 {
		idle, h.lookout = h.lookout, nil
	}
	h.mu.Unlock()
	idle.stop()
}

func (h *hub) close() {
	h.mu.Lock()
	clear(h.folders)
	idle := h.lookout
	h.lookout, h.closed = nil, true
	h.mu.Unlock()
	idle.stop()
}

// wrote tells that this process wrote a file; the zero key: deleted it.
func (h *hub) wrote(path string, key fsx.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.folders[filepath.Dir(path)]
	if f == nil {
		return
	}
	name := filepath.Base(path)
	f.told[name] = key
	f.wake(name)
}

// found tells what a look at a file found.
func (h *hub) found(folder, name string, key fsx.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.folders[folder]; f != nil && f.told[name] != key {
		f.told[name] = key
		f.wake(name)
	}
}

func (f *watchedFolder) wake(name string) {
	for w := range f.watchers {
		if w.name == "" || w.name == name {
			w.wake()
		}
	}
}

// names lists the files of a folder that are worth a look; all means that any
// other may be too. They are not those of the whole folder when few are watched.
func (h *hub) names(folder string) (names []string, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.folders[folder]
	if f == nil {
		return nil, false
	}
	seen := make(map[string]bool)
	for w := range f.watchers {
		all = all || w.name == ""
		if w.name != "" && !seen[w.name] {
			seen[w.name] = true
			names = append(names, w.name)
		}
	}
	if all {
		for name := range f.told { // those that are gone count too
			if !seen[name] {
				names = append(names, name)
			}
		}
	}
	return names, all
}

func (h *hub) watched() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	folders := make([]string, 0, len(h.folders))
	for folder := range h.folders {
		folders = append(folders, folder)
	}
	return folders
}

// isShared tells the files that watchers wait for from locks and temporary
// files in the same folder.
func isShared(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".")
}

package filestore

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/signal"
)

// hub tells watchers that files changed. What this process writes it tells at
// once; what others write it learns from the system, and from looking every
// poll interval where the system does not tell.
type hub struct {
	fsys fsx.FS
	poll time.Duration
	// changed is called with what others wrote before any watcher is woken; it
	// must not call the hub.
	changed func(folder, name string)

	mu      sync.Mutex
	folders map[string]*watchedFolder
	lookout *lookout // nil while nobody watches
	closed  bool
}

// anyFile is what a watcher of a whole folder waits for.
const anyFile = ""

// watchedFolder is a folder that somebody watches a file of, or all of them.
type watchedFolder struct {
	watchers map[string][]signal.Signal // by the name of the file, or anyFile
	told     map[string]fsx.Key         // the version of each file that watchers know of
}

func newHub(fsys fsx.FS, poll time.Duration, changed func(folder, name string)) *hub {
	return &hub{fsys: fsys, poll: poll, changed: changed, folders: make(map[string]*watchedFolder)}
}

// watchFile watches one file, which need not exist, nor its folder.
func (h *hub) watchFile(path string) (<-chan struct{}, func()) {
	return h.watch(filepath.Dir(path), filepath.Base(path))
}

// watchFolder watches all JSON files of a folder.
func (h *hub) watchFolder(folder string) (<-chan struct{}, func()) { return h.watch(folder, anyFile) }

func (h *hub) watch(folder, name string) (<-chan struct{}, func()) {
	w := signal.New()
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return w, func() {}
	}
	f := h.folders[folder]
	if f == nil {
		f = &watchedFolder{make(map[string][]signal.Signal), make(map[string]fsx.Key)}
		h.folders[folder] = f
	}
	first := len(f.watchers[name]) == 0
	f.watchers[name] = append(f.watchers[name], w)
	if h.lookout == nil {
		h.lookout = h.startLookout()
	}
	lookout := h.lookout
	h.mu.Unlock()
	if first { // else somebody looks there already
		lookout.look(folder, name)
	}
	return w, sync.OnceFunc(func() { h.unwatch(folder, name, w) })
}

func (h *hub) unwatch(folder, name string, w signal.Signal) {
	h.mu.Lock()
	if f := h.folders[folder]; f != nil {
		f.watchers[name] = slices.DeleteFunc(f.watchers[name], func(other signal.Signal) bool { return other == w })
		if len(f.watchers[name]) == 0 {
			delete(f.watchers, name)
		}
		if len(f.watchers) == 0 {
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
	if f := h.folders[filepath.Dir(path)]; f != nil {
		f.tell(filepath.Base(path), key)
	}
}

// found tells what a look at a file found.
func (h *hub) found(folder, name string, key fsx.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.folders[folder]; f != nil && f.told[name] != key {
		h.changed(folder, name)
		f.tell(name, key)
	}
}

// gone tells that a file is there no more, also when no watcher was told that it
// was: one who looked by itself may have seen it.
func (h *hub) gone(folder, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.folders[folder]; f != nil {
		h.changed(folder, name)
		f.tell(name, fsx.Key{})
	}
}

// knows is wrote for one who will tell later: what the system says of this
// version is no news.
func (h *hub) knows(path string, key fsx.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.folders[filepath.Dir(path)]; f != nil {
		f.remember(filepath.Base(path), key)
	}
}

// watchesFolder reports whether everything in a folder is watched.
func (h *hub) watchesFolder(folder string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.folders[folder]
	return f != nil && len(f.watchers[anyFile]) > 0
}

func (f *watchedFolder) remember(name string, key fsx.Key) {
	if key == (fsx.Key{}) {
		delete(f.told, name)
	} else {
		f.told[name] = key
	}
}

func (f *watchedFolder) tell(name string, key fsx.Key) {
	f.remember(name, key)
	for _, w := range f.watchers[name] {
		w.Raise()
	}
	for _, w := range f.watchers[anyFile] {
		w.Raise()
	}
}

// waited lists the files of a folder that somebody waits for; all means that
// any other in it is waited for too.
func (h *hub) waited(folder string) (names []string, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.folders[folder]
	if f == nil {
		return nil, false
	}
	for name := range f.watchers {
		if name != anyFile {
			names = append(names, name)
		}
	}
	if all = len(f.watchers[anyFile]) > 0; all {
		for name := range f.told { // also those that are gone
			names = append(names, name)
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

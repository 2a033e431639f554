// Package filewatch wakes those who wait for files to change, whichever process changes
// them. Changes by this process are reported by whoever made them, and wake at once.
// Changes by others are learned from the system (inotify and its like) and, where that
// does not report everything, by looking at the files once every poll interval.
package filewatch

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/signal"
)

// Watcher watches files and folders. All methods may be called from any goroutine.
type Watcher struct {
	options Options

	mu      sync.Mutex
	folders map[string]*folder // by path: those that are watched
	loop    *loop              // nil while nothing is watched
	closed  bool
}

// Options say what is watched, and how.
type Options struct {
	FS fsx.FS
	// Poll is after which time at the latest a change is noticed that the system does
	// not report.
	Poll time.Duration
	// Relevant says by its name whether a file of a watched folder counts.
	Relevant func(name string) bool
	// Changed is called with a file that another process has changed, before anybody is
	// woken; it must not call the watcher.
	Changed func(folder, name string)
}

// anyFile stands for every relevant file of a folder.
const anyFile = ""

// folder is a folder of which one file is watched, or all are.
type folder struct {
	waiting map[string][]signal.Signal // by the name of the file, or anyFile
	known   map[string]fsx.Key         // the version of each file that has been reported
}

// New makes a watcher. Nothing runs until something is watched.
func New(o Options) *Watcher { return &Watcher{options: o, folders: make(map[string]*folder)} }

// File watches one file, which need not exist, nor its folder. The caller calls stop
// when it does not wait any more.
func (w *Watcher) File(path string) (changed <-chan struct{}, stop func()) {
	return w.watch(filepath.Dir(path), filepath.Base(path))
}

// Folder watches all relevant files of a folder, as File does one.
func (w *Watcher) Folder(path string) (changed <-chan struct{}, stop func()) {
	return w.watch(path, anyFile)
}

func (w *Watcher) watch(path, name string) (<-chan struct{}, func()) {
	s := signal.New()
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return s, func() {}
	}
	f := w.folders[path]
	if f == nil {
		f = &folder{make(map[string][]signal.Signal), make(map[string]fsx.Key)}
		w.folders[path] = f
	}
	first := len(f.waiting[name]) == 0
	f.waiting[name] = append(f.waiting[name], s)
	if w.loop == nil {
		w.loop = startLoop(w)
	}
	running := w.loop
	w.mu.Unlock()
	if first {
		running.add(path, name)
	}
	return s, sync.OnceFunc(func() { w.stop(path, name, s) })
}

func (w *Watcher) stop(path, name string, s signal.Signal) {
	w.mu.Lock()
	if f := w.folders[path]; f != nil {
		f.waiting[name] = slices.DeleteFunc(f.waiting[name], func(other signal.Signal) bool { return other == s })
		if len(f.waiting[name]) == 0 {
			delete(f.waiting, name)
		}
		if len(f.waiting) == 0 {
			delete(w.folders, path)
		}
	}
	var idle *loop
	if len(w.folders) == 0 {
		idle, w.loop = w.loop, nil
	}
	w.mu.Unlock()
	idle.stop()
}

// Close ends all watches, and returns when nothing of the watcher runs any more.
func (w *Watcher) Close() {
	w.mu.Lock()
	clear(w.folders)
	idle := w.loop
	w.loop, w.closed = nil, true
	w.mu.Unlock()
	idle.stop()
}

// Wrote reports a version of a file that this process has written; the zero key reports
// that it has deleted the file.
func (w *Watcher) Wrote(path string, key fsx.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.folders[filepath.Dir(path)]; f != nil {
		f.report(filepath.Base(path), key)
	}
}

// Expect announces a version that the caller will report with Wrote when the rest of its
// change is done: what the system says of it until then wakes nobody.
func (w *Watcher) Expect(path string, key fsx.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.folders[filepath.Dir(path)]; f != nil {
		f.remember(filepath.Base(path), key)
	}
}

// IsWatched reports whether all relevant files of a folder are watched.
func (w *Watcher) IsWatched(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.folders[path]
	return f != nil && len(f.waiting[anyFile]) > 0
}

// found reports the version of a file that the loop has found, if it is another one than
// the one reported last.
func (w *Watcher) found(path, name string, key fsx.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.folders[path]; f != nil && f.known[name] != key {
		w.options.Changed(path, name)
		f.report(name, key)
	}
}

// removed reports that a file is missing, even if it was never reported to exist: who
// watches the folder may have seen it there.
func (w *Watcher) removed(path, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := w.folders[path]; f != nil {
		w.options.Changed(path, name)
		f.report(name, fsx.Key{})
	}
}

// watched lists the folders that are watched.
func (w *Watcher) watched() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := make([]string, 0, len(w.folders))
	for path := range w.folders {
		paths = append(paths, path)
	}
	return paths
}

// files lists the files of a folder to be looked at: those that are watched and, when
// all of them are, those that were reported, which may be missing now. all says that any
// other file counts too.
func (w *Watcher) files(path string) (names []string, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.folders[path]
	if f == nil {
		return nil, false
	}
	for name := range f.waiting {
		if name != anyFile {
			names = append(names, name)
		}
	}
	if all = len(f.waiting[anyFile]) > 0; all {
		for name := range f.known {
			names = append(names, name)
		}
	}
	return names, all
}

func (f *folder) remember(name string, key fsx.Key) {
	if key == (fsx.Key{}) {
		delete(f.known, name)
	} else {
		f.known[name] = key
	}
}

// report wakes whoever waits for a file.
func (f *folder) report(name string, key fsx.Key) {
	f.remember(name, key)
	for _, waiting := range [][]signal.Signal{f.waiting[name], f.waiting[anyFile]} {
		for _, s := range waiting {
			s.Raise()
		}
	}
}

package filestore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// lookout is the goroutine that watches for what other processes write. There
// is one per store, while anybody watches.
type lookout struct {
	hub    *hub
	places chan place // look here, now and from now on
	quit   chan struct{}
	done   chan struct{}
}

// place is a file of a folder, or anyFile.
type place struct{ folder, name string }

func (h *hub) startLookout() *lookout {
	l := &lookout{h, make(chan place), make(chan struct{}), make(chan struct{})}
	go l.run()
	return l
}

// look returns when the lookout knows of the place.
func (l *lookout) look(folder, name string) {
	select {
	case l.places <- place{folder, name}:
	case <-l.done:
	}
}

func (l *lookout) stop() {
	if l != nil {
		close(l.quit)
		<-l.done
	}
}

func (l *lookout) run() {
	defer close(l.done)
	n := newNotifier()
	defer n.close()
	ticker := time.NewTicker(l.hub.poll)
	defer ticker.Stop()
	for {
		select {
		case <-l.quit:
			return
		case p := <-l.places:
			n.follow(l.hub.fsys, p.folder)
			if p.name == anyFile {
				l.sweep(p.folder)
			} else {
				l.check(p.folder, p.name)
			}
		case event := <-n.events:
			if name := filepath.Base(event.Name); isShared(name) {
				l.check(filepath.Dir(event.Name), name)
			}
		case <-n.errors: // events were dropped
			l.sweepAll(n)
		case <-ticker.C:
			l.sweepAll(n)
		}
	}
}

func (l *lookout) sweepAll(n *notifier) {
	folders := l.hub.watched()
	n.keep(folders)
	for _, folder := range folders {
		n.follow(l.hub.fsys, folder)
		l.sweep(folder)
	}
}

// sweep looks at the files of a folder that somebody waits for.
func (l *lookout) sweep(folder string) {
	names, all := l.hub.waited(folder)
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
		l.check(folder, name)
	}
	if !all {
		return
	}
	entries, err := l.hub.fsys.ReadDir(folder)
	if err != nil {
		return // not there yet, or gone
	}
	for _, e := range entries {
		if isShared(e.Name()) && !known[e.Name()] {
			l.check(folder, e.Name())
		}
	}
}

func (l *lookout) check(folder, name string) {
	key, err := fsx.KeyAt(l.hub.fsys, filepath.Join(folder, name))
	if err == nil {
		l.hub.found(folder, name, key)
	}
}

// notifier is the system's way to tell of changes; where there is none, its
// channels stay silent.
type notifier struct {
	system   *fsnotify.Watcher
	events   chan fsnotify.Event
	errors   chan error
	followed map[string]fs.FileInfo
}

func newNotifier() *notifier {
	n := &notifier{followed: make(map[string]fs.FileInfo)}
	if w, err := fsnotify.NewWatcher(); err == nil {
		n.system, n.events, n.errors = w, w.Events, w.Errors
	}
	return n
}

// follow asks for the events of a folder, again when it was made anew.
func (n *notifier) follow(fsys fsx.FS, folder string) {
	if n.system == nil {
		return
	}
	info, err := fsys.Lstat(folder)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			n.forget(folder)
		}
		return
	}
	if old, ok := n.followed[folder]; ok {
		if os.SameFile(old, info) {
			return
		}
		n.forget(folder)
	}
	if n.system.Add(folder) == nil {
		n.followed[folder] = info
	}
}

// keep forgets the folders that nobody watches any more.
func (n *notifier) keep(folders []string) {
	wanted := make(map[string]bool, len(folders))
	for _, folder := range folders {
		wanted[folder] = true
	}
	for folder := range n.followed {
		if !wanted[folder] {
			n.forget(folder)
		}
	}
}

func (n *notifier) forget(folder string) {
	if _, ok := n.followed[folder]; ok {
		delete(n.followed, folder)
		_ = n.system.Remove(folder) // a deleted folder is forgotten already
	}
}

func (n *notifier) close() {
	if n.system != nil {
		_ = n.system.Close() // nothing to lose
	}
}

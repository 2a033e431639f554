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
			begun := n.follow(l.hub.fsys, p.folder) == begun
			if begun || p.name == anyFile {
				l.sweep(p.folder)
			} else {
				l.check(p.folder, p.name)
			}
		case event := <-n.events:
			n.lost(event)
			if name := filepath.Base(event.Name); isShared(name) {
				l.heard(filepath.Dir(event.Name), name)
			}
		case <-n.errors: // events were dropped
			l.poll(n, false)
		case <-ticker.C:
			l.poll(n, true)
		}
	}
}

// poll looks at every folder once, and at the files of those of which the system
// does not tell everything; unless trusted, at the files of all.
func (l *lookout) poll(n *notifier, trusted bool) {
	folders := l.hub.watched()
	n.keep(folders)
	for _, folder := range folders {
		switch n.follow(l.hub.fsys, folder) {
		case missing:
			names, _ := l.hub.waited(folder)
			for _, name := range names {
				l.hub.found(folder, name, fsx.Key{})
			}
		case told:
			if !trusted {
				l.sweep(folder)
			}
		default:
			l.sweep(folder)
		}
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

// heard looks at a file of which the system told something.
func (l *lookout) heard(folder, name string) {
	key, err := fsx.KeyAt(l.hub.fsys, filepath.Join(folder, name))
	switch {
	case err != nil:
	case key == fsx.Key{}:
		l.hub.gone(folder, name)
	default:
		l.hub.found(folder, name, key)
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
	followed map[string]followed
}

// followed is a folder whose events we get.
type followed struct {
	info  fs.FileInfo
	local bool // only processes of this machine write there
}

// coverage says what the system told of a folder since it was followed last.
type coverage int

const (
	unsure  coverage = iota // perhaps not everything
	begun                   // nothing: it is followed from now on, and who waits already must look
	told                    // everything
	missing                 // there is no such folder
)

func newNotifier() *notifier {
	n := &notifier{followed: make(map[string]followed)}
	if w, err := fsnotify.NewWatcher(); err == nil {
		n.system, n.events, n.errors = w, w.Events, w.Errors
	}
	return n
}

// follow asks for the events of a folder, again when it was made anew.
func (n *notifier) follow(fsys fsx.FS, folder string) coverage {
	info, err := fsys.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		n.forget(folder)
		return missing
	}
	if err != nil || n.system == nil {
		return unsure
	}
	if old, ok := n.followed[folder]; ok {
		if os.SameFile(old.info, info) {
			if old.local {
				return told
			}
			return unsure
		}
		n.forget(folder)
	}
	if n.system.Add(folder) != nil {
		return unsure
	}
	n.followed[folder] = followed{info, tellsAll(folder)}
	return begun
}

// lost forgets a folder that was deleted or moved away: one that is made in its
// place may look the same, and the system tells nothing of it.
func (n *notifier) lost(event fsnotify.Event) {
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		n.forget(event.Name)
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

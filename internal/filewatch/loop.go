package filewatch

import (
	"path/filepath"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// loop is the one goroutine of a watcher. It finds what other processes change, for as
// long as anything is watched.
type loop struct {
	watcher *Watcher
	added   chan place
	quit    chan struct{}
	done    chan struct{}
}

// place is a file of a folder, or anyFile.
type place struct{ folder, name string }

func startLoop(w *Watcher) *loop {
	l := &loop{w, make(chan place), make(chan struct{}), make(chan struct{})}
	go l.run()
	return l
}

// add has a place watched that was not. When it returns, no change will be missed.
func (l *loop) add(folder, name string) {
	select {
	case l.added <- place{folder, name}:
	case <-l.done:
	}
}

// stop ends the loop and waits for it; nil is a loop that never started.
func (l *loop) stop() {
	if l != nil {
		close(l.quit)
		<-l.done
	}
}

func (l *loop) run() {
	defer close(l.done)
	events := subscribe(l.watcher.options.FS)
	defer events.close()
	ticker := time.NewTicker(l.watcher.options.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-l.quit:
			return
		case p := <-l.added:
			if started := events.follow(p.folder) == started; started || p.name == anyFile {
				l.checkFolder(p.folder)
			} else {
				l.check(p.folder, p.name)
			}
		case event := <-events.changes:
			events.forgetRemoved(event)
			if name := filepath.Base(event.Name); l.watcher.options.Relevant(name) {
				l.checkChanged(filepath.Dir(event.Name), name)
			}
		case <-events.errors: // the system dropped some
			l.poll(events, true)
		case <-ticker.C:
			l.poll(events, false)
		}
	}
}

// poll looks once at every folder, and at the files of those whose changes are not all
// reported; when the system has dropped reports, at the files of all.
func (l *loop) poll(events *subscription, dropped bool) {
	folders := l.watcher.watched()
	events.keep(folders)
	for _, folder := range folders {
		switch events.follow(folder) {
		case missing:
			names, _ := l.watcher.files(folder)
			for _, name := range names {
				l.watcher.found(folder, name, fsx.Key{})
			}
		case complete:
			if dropped {
				l.checkFolder(folder)
			}
		default:
			l.checkFolder(folder)
		}
	}
}

// checkFolder looks at the files of a folder that are watched.
func (l *loop) checkFolder(folder string) {
	names, all := l.watcher.files(folder)
	checked := make(map[string]bool, len(names))
	for _, name := range names {
		checked[name] = true
		l.check(folder, name)
	}
	if !all {
		return
	}
	entries, err := l.watcher.options.FS.ReadDir(folder)
	if err != nil {
		return // it does not exist yet, or not any more
	}
	for _, e := range entries {
		if l.watcher.options.Relevant(e.Name()) && !checked[e.Name()] {
			l.check(folder, e.Name())
		}
	}
}

// check looks at one file.
func (l *loop) check(folder, name string) {
	if key, err := fsx.KeyAt(l.watcher.options.FS, filepath.Join(folder, name)); err == nil {
		l.watcher.found(folder, name, key)
	}
}

// checkChanged looks at a file of which the system has reported a change.
func (l *loop) checkChanged(folder, name string) {
	key, err := fsx.KeyAt(l.watcher.options.FS, filepath.Join(folder, name))
	switch {
	case err != nil:
	case key == fsx.Key{}:
		l.watcher.removed(folder, name)
	default:
		l.watcher.found(folder, name, key)
	}
}

package filewatch

import (
	"errors"
	"io/fs"
	"os"

	"github.com/fsnotify/fsnotify"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// subscription is what the system reports of some folders. Where it reports nothing at
// all, the channels stay silent.
type subscription struct {
	fsys    fsx.FS
	system  *fsnotify.Watcher // nil where there is none
	changes chan fsnotify.Event
	errors  chan error
	folders map[string]followed
}

// followed is a folder whose changes the system reports.
type followed struct {
	info fs.FileInfo
	all  bool // all changes: only processes of this machine write there
}

// coverage is how much of a folder's changes was reported since it was followed last.
type coverage int

const (
	incomplete coverage = iota // perhaps not all
	started                    // none so far: it is followed from now on
	complete                   // all
	missing                    // there is no such folder
)

func subscribe(fsys fsx.FS) *subscription {
	s := &subscription{fsys: fsys, folders: make(map[string]followed)}
	if system, err := fsnotify.NewWatcher(); err == nil {
		s.system, s.changes, s.errors = system, system.Events, system.Errors
	}
	return s
}

// follow subscribes to the changes of a folder, again when another folder has taken its
// place.
func (s *subscription) follow(folder string) coverage {
	info, err := s.fsys.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		s.forget(folder)
		return missing
	}
	if err != nil || s.system == nil {
		return incomplete
	}
	if old, ok := s.folders[folder]; ok {
		if os.SameFile(old.info, info) {
			if old.all {
				return complete
			}
			return incomplete
		}
		s.forget(folder)
	}
	if s.system.Add(folder) != nil {
		return incomplete
	}
	s.folders[folder] = followed{info, reportsAll(folder)}
	return started
}

// forgetRemoved drops a folder that was deleted or moved away: another one in its place
// may look the same, and the system reports nothing of that one.
func (s *subscription) forgetRemoved(event fsnotify.Event) {
	if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
		s.forget(event.Name)
	}
}

// keep drops all folders but these.
func (s *subscription) keep(folders []string) {
	kept := make(map[string]bool, len(folders))
	for _, folder := range folders {
		kept[folder] = true
	}
	for folder := range s.folders {
		if !kept[folder] {
			s.forget(folder)
		}
	}
}

func (s *subscription) forget(folder string) {
	if _, ok := s.folders[folder]; ok {
		delete(s.folders, folder)
		_ = s.system.Remove(folder) // fails when the folder was deleted
	}
}

func (s *subscription) close() {
	if s.system != nil {
		_ = s.system.Close() // nothing was written
	}
}

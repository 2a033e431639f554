package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/journal"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/pause"
)

// files is how all stores read and write the files under a root.
type files struct {
	root layout.Root
	fsys fsx.FS
	sync bool
	warn func(error)

	mu     sync.Mutex
	warned map[string]string // by path: the last warning of damage there
}

// journal is a file of lines.
func (s *files) journal(path string) *journal.File { return journal.New(s.fsys, path, s.sync) }

// locked calls change while it holds the lock of target, whose folder must exist.
func (s *files) locked(ctx context.Context, target string, change func(*dirlock.Lock) error) error {
	queue, err := s.queue(target)
	if err != nil {
		return err
	}
	lock, err := dirlock.Acquire(ctx, s.fsys, target, queue)
	if err != nil {
		return err
	}
	if lock.Recovered() {
		if err := fsx.SweepTemps(s.fsys, filepath.Dir(target), filepath.Base(target)); err != nil {
			s.warn(fmt.Errorf("clean up after a killed writer: %w", err))
		}
	}
	err = change(lock)
	if unlockErr := lock.Unlock(); unlockErr != nil {
		// The change is made; the next process takes the lock over.
		s.warn(unlockErr)
	}
	return err
}

// queue is the file on which our processes queue for the lock of a shared file.
func (s *files) queue(target string) (dirlock.Queue, error) {
	below, file := s.root.LockQueue(target)
	if filepath.Dir(filepath.Dir(target)) == s.root.TasksDir() {
		// A list's queue does not lie beside it. Where the folder of all lists is a
		// link, another root may lead there too, and would have another queue.
		lists, err := s.fsys.Lstat(s.root.TasksDir())
		if err == nil && !lists.IsDir() {
			return dirlock.Queue{}, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dirlock.Queue{}, err
		}
	}
	return dirlock.Queue{Below: below, File: file}, nil
}

// errChanged says that a program that takes no locks wrote to a file between our
// reading and our writing.
var errChanged = errors.New("file was changed by a program that took no lock")

// replace writes a shared file under its lock, if it still is the version was; else the
// error is errChanged.
func (s *files) replace(path string, data []byte, was fsx.Key, lock *dirlock.Lock) (fsx.Key, error) {
	ready := func() error {
		if err := lock.Held(); err != nil {
			return err
		}
		now, err := fsx.KeyAt(s.fsys, path)
		if err == nil && now != was {
			err = fmt.Errorf("write %s: %w", path, errChanged)
		}
		return err
	}
	info, err := fsx.WriteAtomic(s.fsys, path, data, fsx.WriteOptions{Mode: layout.FileMode, Sync: s.sync, Ready: ready})
	return fsx.KeyOf(info), err
}

// rereadPauses are how long to wait before a torn file is read again: other programs write
// shared files in place, so any read may find one empty or half written (facts: claude-code
// §15). A moment later it is whole.
var rereadPauses = []time.Duration{
	2 * time.Millisecond, 8 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond,
}

// maxRetries is how often a change starts over because a program that takes no
// lock was faster.
const maxRetries = 10

// The largest files that we read whole.
const (
	maxInbox  = 256 << 20
	maxTask   = 64 << 20
	maxRoster = 64 << 20
)

// TornError says that a shared file stayed empty or half-written after it was
// read several times.
type TornError struct {
	Path string
	Err  error // what is wrong with the content
}

func (e *TornError) Error() string {
	return fmt.Sprintf("%s is unfinished or damaged (%v): wait for the program that writes it, else repair or remove it", e.Path, e.Err)
}

func (e *TornError) Unwrap() error { return e.Err }

// readShared reads a shared file until decode accepts it, at most a few times,
// then fails with a [*TornError]. The key is that of the version decoded, or of
// the torn one. A missing file is [fs.ErrNotExist] at once. decode may keep the
// data.
func (s *files) readShared(ctx context.Context, path string, limit int64, decode func([]byte) error) (fsx.Key, error) {
	var key fsx.Key
	var broken error
	for try := 0; try <= len(rereadPauses); try++ {
		if try > 0 {
			if err := pause.For(ctx, rereadPauses[try-1]); err != nil {
				return key, fmt.Errorf("read %s: %w", path, err)
			}
		}
		data, info, err := fsx.ReadFile(s.fsys, path, limit)
		switch {
		case errors.Is(err, fsx.ErrChanging):
			broken = err
			continue
		case err != nil:
			return key, err
		}
		key = fsx.KeyOf(info)
		if broken = decode(trimBOM(data)); broken == nil {
			return key, nil
		}
	}
	return key, &TornError{path, broken}
}

// writeNew writes a file that nobody else writes, and makes its folder if it is missing.
func (s *files) writeNew(path string, data []byte) error {
	if err := fsx.MkdirAll(s.fsys, filepath.Dir(path), layout.DirMode); err != nil {
		return err
	}
	_, err := fsx.WriteAtomic(s.fsys, path, data, fsx.WriteOptions{Mode: layout.FileMode, Sync: s.sync})
	return err
}

// readDir lists a folder; a missing one is empty.
func (s *files) readDir(folder string) ([]fs.DirEntry, error) {
	entries, err := s.fsys.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// exists reports whether something stands at path, whatever it is.
func (s *files) exists(path string) (bool, error) {
	_, err := s.fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func trimBOM(data []byte) []byte {
	const bom = "\xef\xbb\xbf"
	if len(data) >= len(bom) && string(data[:len(bom)]) == bom {
		return data[len(bom):]
	}
	return data
}

// removedPrefix begins the names of folders that are being deleted. They are hidden, and no
// team or list has such a name.
const removedPrefix = ".gone-"

// removeFolder deletes a folder under the lock of a file in it, and then calls also under
// the same lock. The folder disappears at once; what a kill leaves of it is deleted by the
// next removal. A missing folder is no error.
func (s *files) removeFolder(ctx context.Context, folder, lockTarget string, also func() error) error {
	parent := filepath.Dir(folder)
	info, err := s.fsys.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.sweepRemoved(parent)
	case err != nil:
		return err
	case !info.IsDir():
		return &fs.PathError{Op: "remove", Path: folder, Err: fsx.ErrNotFolder}
	}
	if err := s.sweepRemoved(parent); err != nil {
		return err
	}
	err = s.locked(ctx, filepath.Join(folder, lockTarget), func(*dirlock.Lock) error {
		name := removedPrefix + strconv.FormatUint(rand.Uint64(), 36)
		if err := s.fsys.Rename(folder, filepath.Join(parent, name)); err != nil {
			return err
		}
		return also()
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.sweepRemoved(parent)
}

func (s *files) sweepRemoved(parent string) error {
	entries, err := s.readDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), removedPrefix) {
			if err := fsx.RemoveAll(s.fsys, filepath.Join(parent, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// isShared reports whether a file of this name holds state: locks and temporary files in
// the same folder do not.
func isShared(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".")
}

// wrap adds to an error of a function what the function was to do.
func wrap(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(format+": %w", append(args, *err)...)
	}
}

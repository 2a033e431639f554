package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/journal"
	"github.com/cadre-dev/cadre/internal/layout"
)

// A file that another program, a person or a broken disk has damaged stops only what it was
// about: one task, one agent's mail. It is never deleted. A task's file stays where it is,
// so that the tasks that it blocks stay blocked; a file that has to be written anew is set
// aside first. In both cases a warning names the file.

// isDamage reports whether an error is about what is at a path, and will be the same at the
// next try: it is no file, it may not be read, it is larger than any of its kind, or it
// stayed unfinished.
func isDamage(err error) bool {
	var torn *TornError
	return (errors.As(err, &torn) || errors.Is(err, fsx.ErrNotRegular) || errors.Is(err, fsx.ErrTooLarge) ||
		errors.Is(err, fs.ErrPermission)) && !errors.Is(err, fsx.ErrChanging)
}

// warnOnce warns of a damaged file, unless the last warning about it was the same.
func (s *files) warnOnce(path string, err error) {
	s.mu.Lock()
	again := s.warned[path] == err.Error()
	if s.warned == nil {
		s.warned = make(map[string]string)
	}
	s.warned[path] = err.Error()
	s.mu.Unlock()
	if !again {
		s.warn(err)
	}
}

// setAside moves what is at path out of the way and warns of it; why is what is wrong with
// it. It is kept in a private folder, or beside its place if it cannot be moved that far.
// A missing file is no error.
func (s *files) setAside(path string, why error) error {
	aside, err := s.asidePath(path)
	if err == nil {
		err = s.renameNew(path, aside)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		aside = filepath.Join(filepath.Dir(path), "."+filepath.Base(aside))
		err = s.renameNew(path, aside)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errors.Join(why, fmt.Errorf("set it aside: %w", err))
	}
	s.warn(fmt.Errorf("a damaged file was moved to %s: %w", aside, why))
	return nil
}

// writeOverDamage does a write to path. If something there is not a file, it is set aside
// and the write done again; the caller holds the lock of that file.
func (s *files) writeOverDamage(path string, write func() error) error {
	err := write()
	if !errors.Is(err, fsx.ErrNotRegular) {
		return err
	}
	if err := s.setAside(path, err); err != nil {
		return err
	}
	return write()
}

// asidePath is a free path for a damaged file that is set aside, in a folder that it makes.
func (s *files) asidePath(path string) (string, error) {
	below, aside := s.root.Damaged(path)
	if err := s.makeBelow(below, filepath.Dir(aside)); err != nil {
		return "", err
	}
	return aside + "-" + strconv.FormatInt(time.Now().UnixNano(), 36), nil
}

// renameNew moves a file or folder to a path that is free.
func (s *files) renameNew(from, to string) error {
	err := s.fsys.RenameNew(from, to)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if exists, err := s.exists(to); err != nil || exists {
		return errors.Join(err, &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist})
	}
	return s.fsys.Rename(from, to)
}

// maxPrivate is more than a session's questions and jobs ever need.
const maxPrivate = 256 << 20

// scanPrivate calls each with every line of a file that only we write. each reports whether
// it could read the line. It warns of those that could not be read, but for the last one,
// which a kill may have torn. A missing file has no lines; what is not a file is set aside.
func (s *files) scanPrivate(path string, each func(line []byte) bool) error {
	bad, last := 0, true
	key, err := fsx.KeyAt(s.fsys, path)
	if err != nil {
		return err
	}
	if key.Size() > maxPrivate {
		return s.setAside(path, &fs.PathError{Op: "read", Path: path, Err: fsx.ErrTooLarge})
	}
	err = journal.Scan(s.fsys, path, math.MaxInt64, func(line []byte) error {
		if last = each(line); !last {
			bad++
		}
		return nil
	})
	if !last {
		bad--
	}
	if bad > 0 {
		s.warnOnce(path, fmt.Errorf("%s: %d torn or damaged lines were skipped", path, bad))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case isDamage(err) && s.staysUnreadable(path, err):
		return s.setAside(path, err)
	}
	return err
}

// staysUnreadable reports whether a damaged file is damaged at a second try too: not every
// refusal to open a file lasts.
func (s *files) staysUnreadable(path string, found error) bool {
	if !errors.Is(found, fs.ErrPermission) {
		return true
	}
	f, err := s.fsys.OpenFile(path, os.O_RDONLY, 0)
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return isDamage(err)
}

// keepCopy keeps a copy of a damaged file's content, and warns of it.
func (s *files) keepCopy(path string, content []byte, why error) error {
	aside, err := s.asidePath(path)
	if err == nil {
		_, err = fsx.WriteAtomic(s.fsys, aside, content, fsx.WriteOptions{Mode: layout.FileMode, Sync: s.sync})
	}
	if err != nil {
		return errors.Join(why, fmt.Errorf("keep a copy of it: %w", err))
	}
	s.warn(fmt.Errorf("a damaged file was kept as %s: %w", aside, why))
	return nil
}

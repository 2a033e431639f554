package filestore

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
)

// gonePrefix names folders that are being deleted: hidden, and never the name
// of a team or list.
const gonePrefix = ".gone-"

// removeFolder deletes a folder under the lock of a file in it, and then, under the
// same lock, does what else belongs to that. The folder disappears at once; what a
// kill leaves behind is swept by the next removal. A missing folder is no error.
func (s *Store) removeFolder(ctx context.Context, folder, lockTarget string, also func() error) error {
	parent := filepath.Dir(folder)
	info, err := s.fsys.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.sweepGone(parent)
	case err != nil:
		return err
	case !info.IsDir():
		return &fs.PathError{Op: "remove", Path: folder, Err: fsx.ErrNotFolder}
	}
	if err := s.sweepGone(parent); err != nil {
		return err
	}
	err = s.locked(ctx, filepath.Join(folder, lockTarget), func(*dirlock.Lock) error {
		name := gonePrefix + strconv.FormatUint(rand.Uint64(), 36)
		if err := s.fsys.Rename(folder, filepath.Join(parent, name)); err != nil {
			return err
		}
		return also()
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.sweepGone(parent)
}

func (s *Store) sweepGone(parent string) error {
	entries, err := s.fsys.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), gonePrefix) {
			if err := fsx.RemoveAll(s.fsys, filepath.Join(parent, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

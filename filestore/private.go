package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

// State that only our processes read and write lies in folders named "cadre" (paths:
// internal/layout): seals, records, presence, the desk and the key. The comments of this
// package call these folders and files private.

// privateLock names the lock of a private folder. Who replaces a file there holds it, so that the
// temporary files of a killed writer can be deleted.
const privateLock = ".own"

// makeBelow makes a private folder below base, which must exist, so that a team that was
// removed does not come back.
func (s *files) makeBelow(base, folder string) error {
	return fsx.MkdirBelow(s.fsys, base, folder, layout.DirMode, s.sync)
}

// makeTeamFolder makes a private folder of a team: [roster.ErrNotFound] when there is no
// such team.
func (s *files) makeTeamFolder(name, what string) error {
	err := fsx.IsFolder(s.fsys, s.root.TeamDir(name))
	if err == nil {
		err = s.makeBelow(s.root.TeamDir(name), s.root.TeamSide(name, what))
	}
	return asNoTeam(err)
}

// asNoTeam makes [roster.ErrNotFound] of the error for a missing folder of a team.
func asNoTeam(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return roster.ErrNotFound
	}
	return err
}

// lockedFolder calls change while it holds the lock of a private folder, which must exist.
// When the last holder was killed, sweep is called first.
func (s *files) lockedFolder(ctx context.Context, folder string, sweep func() error, change func(*dirlock.Lock) error) error {
	return s.locked(ctx, filepath.Join(folder, privateLock), func(lock *dirlock.Lock) error {
		if lock.Recovered() {
			if err := sweep(); err != nil {
				s.warn(fmt.Errorf("clean up after a killed writer: %w", err))
			}
		}
		return change(lock)
	})
}

// sweepTemps deletes the temporary files in a private folder whose lock is held.
func (s *files) sweepTemps(folder string) func() error {
	return func() error { return fsx.SweepTemps(s.fsys, folder, "") }
}

// writePrivate writes a file in a private folder whose lock is held.
func (s *files) writePrivate(path string, data []byte, lock *dirlock.Lock) (fsx.Key, error) {
	var info fs.FileInfo
	err := s.writeOverDamage(path, func() (err error) {
		info, err = fsx.WriteAtomic(s.fsys, path, data, fsx.WriteOptions{Mode: layout.FileMode, Sync: s.sync, Ready: lock.Held})
		return err
	})
	return fsx.KeyOf(info), err
}

// removePrivate deletes a file; a missing one is no error. What is not a file is set aside.
func (s *files) removePrivate(path string) error {
	info, err := s.fsys.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return s.setAside(path, &fs.PathError{Op: "remove", Path: path, Err: fsx.ErrNotRegular})
	}
	if err == nil {
		err = s.fsys.Remove(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && s.sync {
		err = s.fsys.SyncDir(filepath.Dir(path))
	}
	return err
}

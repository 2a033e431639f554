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

// What is ours alone lies in folders named "cadre" that no other program
// touches (internal/layout): seals, records, presence, the desk and the key.

// ownLock names the lock of a folder of ours: who writes a file there that takes
// its place by a rename holds it, so that what a killed writer left can be swept.
const ownLock = ".own"

// makeBelow makes a folder of ours below base, which must exist: a team that was
// removed is not brought back.
func (s *files) makeBelow(base, folder string) error {
	return fsx.MkdirBelow(s.fsys, base, folder, layout.DirMode, s.sync)
}

// makeTeamSide makes a folder of ours in a team's: [roster.ErrNotFound] when there
// is no such team.
func (s *files) makeTeamSide(name, what string) error {
	err := fsx.IsFolder(s.fsys, s.root.TeamDir(name))
	if err == nil {
		err = s.makeBelow(s.root.TeamDir(name), s.root.TeamSide(name, what))
	}
	return teamGone(err)
}

// teamGone says of a folder that is missing that its team is.
func teamGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return roster.ErrNotFound
	}
	return err
}

// lockedOwn calls change while it holds the lock of a folder of ours, which
// exists. When the last holder was killed, sweep is called first.
func (s *files) lockedOwn(ctx context.Context, folder string, sweep func() error, change func(*dirlock.Lock) error) error {
	return s.locked(ctx, filepath.Join(folder, ownLock), func(lock *dirlock.Lock) error {
		if lock.Recovered() {
			if err := sweep(); err != nil {
				s.warn(fmt.Errorf("clean up after a killed writer: %w", err))
			}
		}
		return change(lock)
	})
}

// sweepOwn deletes the temporary files in a folder of ours whose lock is held.
func (s *files) sweepOwn(folder string) func() error {
	return func() error { return fsx.SweepTemps(s.fsys, folder, "") }
}

// writeOwn replaces a file, or makes it, in a folder of ours whose lock is held.
func (s *files) writeOwn(path string, data []byte, lock *dirlock.Lock) (fsx.Key, error) {
	var info fs.FileInfo
	err := s.overDamage(path, func() (err error) {
		info, err = fsx.WriteAtomic(s.fsys, path, data, fsx.WriteOptions{Mode: layout.FileMode, Sync: s.sync, Ready: lock.Held})
		return err
	})
	return fsx.KeyOf(info), err
}

// removeOwn deletes a file; a missing one is no error. What is no file there is kept
// aside.
func (s *files) removeOwn(path string) error {
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

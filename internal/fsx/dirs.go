package fsx

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// MkdirAll makes a folder and those above it that are missing.
func MkdirAll(fsys FS, path string, mode fs.FileMode) error {
	err := fsys.Mkdir(path, mode)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path {
		if err := MkdirAll(fsys, filepath.Dir(path), mode); err != nil {
			return err
		}
		err = fsys.Mkdir(path, mode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// ErrNotFolder says that a path names something else where a folder of ours
// belongs.
var ErrNotFolder = errors.New("not a folder; move it away")

// MkdirOwn is [MkdirAll] for a folder that is ours alone: a symbolic link or a
// file at path is an error ([ErrNotFolder]).
func MkdirOwn(fsys FS, path string, mode fs.FileMode) error {
	info, err := fsys.Lstat(path)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: path, Err: ErrNotFolder}
	case errors.Is(err, fs.ErrNotExist):
		return MkdirAll(fsys, path, mode)
	}
	return err
}

// MkdirBelow makes a folder of ours, and those above it that are missing, below
// base, which must exist: [fs.ErrNotExist] when it does not. A symbolic link or a
// file on the way is an error ([ErrNotFolder]). With sync, what was made survives a
// loss of power.
func MkdirBelow(fsys FS, base, folder string, mode fs.FileMode, sync bool) error {
	below, err := filepath.Rel(base, folder)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(below, string(filepath.Separator)) {
		base = filepath.Join(base, name)
		err := IsFolder(fsys, base)
		if errors.Is(err, fs.ErrNotExist) {
			err = mkdir(fsys, base, mode, sync)
		}
		if errors.Is(err, fs.ErrExist) { // somebody was faster
			err = IsFolder(fsys, base)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func mkdir(fsys FS, path string, mode fs.FileMode, sync bool) error {
	err := fsys.Mkdir(path, mode)
	if err == nil && sync {
		if err = fsys.SyncDir(filepath.Dir(path)); err != nil {
			err = errors.Join(err, fsys.Remove(path)) // the next try syncs it
		}
	}
	return err
}

// IsFolder is [ErrNotFolder] unless a folder stands at path: a symbolic link leads
// to where others may write.
func IsFolder(fsys FS, path string) error {
	info, err := fsys.Lstat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotFolder}
	}
	return err
}

// removeTries is how often a folder is emptied that others go on writing to.
const removeTries = 10

// RemoveAll deletes a path with everything under it, also what others put there
// meanwhile: who has found the way to a folder may still write to it after it was
// renamed. It deletes symbolic links, never what they point to. A missing path is
// no error.
func RemoveAll(fsys FS, path string) (err error) {
	for range removeTries {
		if err = removeTree(fsys, path); !errors.Is(err, fs.ErrExist) { // that it is not empty
			return err
		}
	}
	return err
}

func removeTree(fsys FS, path string) error {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := fsys.ReadDir(path)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeTree(fsys, filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := fsys.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

package fsx

import (
	"errors"
	"io/fs"
	"path/filepath"
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

package fsx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// ErrNotRegular says that a path names a symbolic link, a folder or a device
// where a regular file of ours belongs.
var ErrNotRegular = errors.New("not a regular file; move it away")

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

type osFile struct{ *os.File }

func (osFS) OpenFile(path string, flag int, mode fs.FileMode) (File, error) {
	f, err := openNoFollow(path, flag, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func (osFS) Mkdir(path string, mode fs.FileMode) error { return os.Mkdir(path, mode) }

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

func (osFS) RenameNew(from, to string) error {
	if err := renameNew(from, to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (osFS) Remove(path string) error { return os.Remove(path) }

func (osFS) Symlink(target, path string) error { return os.Symlink(target, path) }

func (osFS) Readlink(path string) (string, error) { return os.Readlink(path) }

func (osFS) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

func (osFS) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }

func (osFS) Chtimes(path string, atime, mtime time.Time) error {
	return os.Chtimes(path, atime, mtime)
}

func (osFS) SyncDir(path string) error {
	if !canSyncDir {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (f osFile) TryLock() (bool, error) { return f.lock(tryLock) }

func (f osFile) TryRLock() (bool, error) { return f.lock(tryRLock) }

func (f osFile) lock(try func(*os.File) (bool, error)) (bool, error) {
	held, err := try(f.File)
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return held, nil
}

func (f osFile) Unlock() error {
	if err := unlock(f.File); err != nil {
		return fmt.Errorf("unlock %s: %w", f.Name(), err)
	}
	return nil
}

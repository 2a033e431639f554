package fsx

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const canSyncDir = false

// openNoFollow checks the path before it opens it: this system has no flag for that.
func openNoFollow(path string, flag int, mode fs.FileMode) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	return os.OpenFile(path, flag, mode)
}

func tryLock(f *os.File) (bool, error) { return lockFile(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func tryRLock(f *os.File) (bool, error) { return lockFile(f, 0) }

// lockFile locks one byte far behind the content, which stays readable.
func lockFile(f *os.File, how uint32) (bool, error) {
	at := lockedByte()
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockedByte())
}

func lockedByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

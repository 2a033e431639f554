package fsx

import (
	"errors"

	"golang.org/x/sys/unix"
)

func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported // by this file system
	}
	if errors.Is(err, unix.EXDEV) {
		return errors.ErrUnsupported // from one file system to another
	}
	return err
}

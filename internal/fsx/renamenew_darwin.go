package fsx

import (
	"errors"

	"golang.org/x/sys/unix"
)

func renameNew(from, to string) error {
	err := unix.RenamexNp(from, to, unix.RENAME_EXCL)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return errors.ErrUnsupported // by this file system
	}
	if errors.Is(err, unix.EXDEV) {
		return errors.ErrUnsupported // from one file system to another
	}
	return err
}

// Package fsx is the one small file layer that all state I/O goes through, so
// that a test can make any single call fail. It opens regular files only, never
// follows a symbolic link in the last element of a path, and replaces files
// whole.
package fsx

import (
	"io"
	"io/fs"
	"time"
)

// FS is the file operations that state is kept with; a method is one operation
// of the system, because a fault is injected per operation. [OS] is the real
// one, [Faulty] the one of tests. Paths are absolute. Errors are
// [*fs.PathError] or wrap one, so they name the operation and the path. All
// methods may be called from any goroutine.
type FS interface {
	// OpenFile opens a file as [os.OpenFile] does, but a symbolic link or
	// anything else that is no regular file is an error ([ErrNotRegular]).
	OpenFile(path string, flag int, mode fs.FileMode) (File, error)
	// Mkdir makes one folder; an existing one is [fs.ErrExist].
	Mkdir(path string, mode fs.FileMode) error
	// Rename moves a file over whatever file stands at to.
	Rename(from, to string) error
	// RenameNew moves a file or folder to a name that is free, else it fails
	// with [fs.ErrExist]. Where the system cannot do both at once the error is
	// [errors.ErrUnsupported].
	RenameNew(from, to string) error
	// Remove deletes a file, or an empty folder.
	Remove(path string) error
	// Symlink makes a symbolic link at path; anything there is [fs.ErrExist].
	Symlink(target, path string) error
	// Readlink is where a symbolic link leads to.
	Readlink(path string) (target string, err error)
	// Lstat describes a path without following a symbolic link.
	Lstat(path string) (fs.FileInfo, error)
	// ReadDir lists a folder in the order of names.
	ReadDir(path string) ([]fs.DirEntry, error)
	// Chtimes sets access and modification time.
	Chtimes(path string, atime, mtime time.Time) error
	// SyncDir makes the names in a folder survive a loss of power. It does
	// nothing where the system has no such operation.
	SyncDir(path string) error
}

// File is an open file. Whoever opened it closes it.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	// Name is the path that the file was opened with.
	Name() string
	// Stat describes the open file.
	Stat() (fs.FileInfo, error)
	// Truncate cuts the file to size bytes.
	Truncate(size int64) error
	// Sync makes the content survive a loss of power.
	Sync() error
	// TryLock takes an exclusive lock on the file, which ends with Close or
	// with the process. held is false when somebody else has it. Where the
	// file system knows no such locks the error is [errors.ErrUnsupported].
	TryLock() (held bool, err error)
	// TryRLock does so with a lock that others may share in the same way; one that
	// is exclusive keeps it away, and is kept away by it.
	TryRLock() (held bool, err error)
	// Unlock ends the lock. Closing the file does so too, but later when a child
	// process is being started at this moment: it has the file until it runs its
	// own program.
	Unlock() error
}

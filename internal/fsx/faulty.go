package fsx

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"
)

// Call is one operation on the file system, as [Faulty] sees it: Op is the name
// of the method in lower case ("rename", "write", …), Path its first path, N
// its number, counted from 1.
type Call struct {
	N    int
	Op   string
	Path string
	// Changes says that the call may change what is stored. The others read, lock, or wait
	// for the disk: a process that is killed before one of these leaves the same files as
	// one that is killed before the next call.
	Changes bool
}

// changing are the operations that may change what is stored; writes do
// too, and those that open a file and may make or empty it.
var changing = map[string]bool{
	"mkdir": true, "rename": true, "renamenew": true, "remove": true, "symlink": true, "chtimes": true,
	"truncate": true,
}

// Fault is what happens to a call instead.
type Fault struct {
	Err   error  // what the call returns
	Short bool   // a write writes the first half of its bytes before it fails
	Then  func() // called last, when not nil: tests kill their process with it
}

// Faulty is a file system for tests, which counts the calls and makes chosen
// ones fail. A file whose Close or Unlock fails is closed or unlocked all the
// same.
type Faulty struct {
	FS
	// Decide is asked about each call; nil lets it through. It may be called
	// from any goroutine.
	Decide func(Call) *Fault

	calls atomic.Int64
}

// FailNth makes the n-th call fail, and no other.
func FailNth(n int, fault Fault) func(Call) *Fault {
	return func(c Call) *Fault {
		if c.N == n {
			return &fault
		}
		return nil
	}
}

// Calls is the number of calls so far.
func (f *Faulty) Calls() int { return int(f.calls.Load()) }

func (f *Faulty) fault(op, path string, changes bool) *Fault {
	n := int(f.calls.Add(1))
	if f.Decide == nil {
		return nil
	}
	return f.Decide(Call{n, op, path, changes})
}

func (f *Faulty) check(op, path string) error {
	if fault := f.fault(op, path, changing[op]); fault != nil {
		return fault.fail(op, path)
	}
	return nil
}

func (t *Fault) fail(op, path string) error {
	if t.Then != nil {
		t.Then()
	}
	return &fs.PathError{Op: op, Path: path, Err: t.Err}
}

// OpenFile implements [FS].
func (f *Faulty) OpenFile(path string, flag int, mode fs.FileMode) (File, error) {
	if fault := f.fault("openfile", path, flag&(os.O_CREATE|os.O_TRUNC) != 0); fault != nil {
		return nil, fault.fail("openfile", path)
	}
	file, err := f.FS.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f}, nil
}

// Mkdir implements [FS].
func (f *Faulty) Mkdir(path string, mode fs.FileMode) error {
	if err := f.check("mkdir", path); err != nil {
		return err
	}
	return f.FS.Mkdir(path, mode)
}

// Rename implements [FS].
func (f *Faulty) Rename(from, to string) error {
	if err := f.check("rename", from); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// RenameNew implements [FS].
func (f *Faulty) RenameNew(from, to string) error {
	if err := f.check("renamenew", from); err != nil {
		return err
	}
	return f.FS.RenameNew(from, to)
}

// Remove implements [FS].
func (f *Faulty) Remove(path string) error {
	if err := f.check("remove", path); err != nil {
		return err
	}
	return f.FS.Remove(path)
}

// Symlink implements [FS].
func (f *Faulty) Symlink(target, path string) error {
	if err := f.check("symlink", path); err != nil {
		return err
	}
	return f.FS.Symlink(target, path)
}

// Readlink implements [FS].
func (f *Faulty) Readlink(path string) (string, error) {
	if err := f.check("readlink", path); err != nil {
		return "", err
	}
	return f.FS.Readlink(path)
}

// Lstat implements [FS].
func (f *Faulty) Lstat(path string) (fs.FileInfo, error) {
	if err := f.check("lstat", path); err != nil {
		return nil, err
	}
	return f.FS.Lstat(path)
}

// ReadDir implements [FS].
func (f *Faulty) ReadDir(path string) ([]fs.DirEntry, error) {
	if err := f.check("readdir", path); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(path)
}

// Chtimes implements [FS].
func (f *Faulty) Chtimes(path string, atime, mtime time.Time) error {
	if err := f.check("chtimes", path); err != nil {
		return err
	}
	return f.FS.Chtimes(path, atime, mtime)
}

// SyncDir implements [FS].
func (f *Faulty) SyncDir(path string) error {
	if err := f.check("syncdir", path); err != nil {
		return err
	}
	return f.FS.SyncDir(path)
}

type faultyFile struct {
	File
	faulty *Faulty
}

func (f *faultyFile) Read(p []byte) (int, error) {
	if err := f.faulty.check("read", f.Name()); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *faultyFile) ReadAt(p []byte, at int64) (int, error) {
	if err := f.faulty.check("readat", f.Name()); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

func (f *faultyFile) Write(p []byte) (int, error) { return f.write("write", p, f.File.Write) }

func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	return f.write("writeat", p, func(p []byte) (int, error) { return f.File.WriteAt(p, at) })
}

func (f *faultyFile) write(op string, p []byte, write func([]byte) (int, error)) (int, error) {
	fault := f.faulty.fault(op, f.Name(), true)
	if fault == nil {
		return write(p)
	}
	written := 0
	if fault.Short {
		n, err := write(p[:len(p)/2])
		if err != nil {
			return n, err
		}
		written = n
	}
	return written, fault.fail(op, f.Name())
}

func (f *faultyFile) Stat() (fs.FileInfo, error) {
	if err := f.faulty.check("stat", f.Name()); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.faulty.check("truncate", f.Name()); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.faulty.check("sync", f.Name()); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Close() error {
	return errors.Join(f.File.Close(), f.faulty.check("close", f.Name()))
}

func (f *faultyFile) TryLock() (bool, error) {
	if err := f.faulty.check("trylock", f.Name()); err != nil {
		return false, err
	}
	return f.File.TryLock()
}

// TryRLock is a trylock too: which of them it is makes no difference to a fault.
func (f *faultyFile) TryRLock() (bool, error) {
	if err := f.faulty.check("trylock", f.Name()); err != nil {
		return false, err
	}
	return f.File.TryRLock()
}

func (f *faultyFile) Unlock() error {
	return errors.Join(f.File.Unlock(), f.faulty.check("unlock", f.Name()))
}

package fsx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// WriteOptions say how a file is replaced. The zero value is an unsynced file
// that its owner alone may read.
type WriteOptions struct {
	Mode fs.FileMode // 0 means 0600
	Sync bool        // survive a loss of power, not only the kill of a process
	// Ready is asked last before the new file takes its place: an error leaves
	// the old one standing. nil asks nobody.
	Ready func() error
}

// WriteAtomic replaces the file at path, or makes it: a reader sees the old
// content or the new, and so does whoever comes after a kill. It never writes
// through a symbolic link ([ErrNotRegular]). After an error the old content
// stands and no temporary file is left; only when all that failed was to make
// the new name survive a loss of power, the new content stands. It describes the
// new file.
func WriteAtomic(fsys FS, path string, data []byte, o WriteOptions) (info fs.FileInfo, err error) {
	if err := checkTarget(fsys, path); err != nil {
		return nil, err
	}
	temp, info, err := writeTemp(fsys, path, data, o)
	if err != nil {
		return nil, err
	}
	if o.Ready != nil {
		err = o.Ready()
	}
	if err == nil {
		err = fsys.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(err, fsys.Remove(temp))
	}
	if !o.Sync {
		return info, nil
	}
	if err = fsys.SyncDir(filepath.Dir(path)); err != nil {
		// The new content stands already; a second try may make it lasting.
		err = fsys.SyncDir(filepath.Dir(path))
	}
	return info, err
}

func checkTarget(fsys FS, path string) error {
	info, err := fsys.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "write", Path: path, Err: ErrNotRegular}
	}
	return err
}

func writeTemp(fsys FS, path string, data []byte, o WriteOptions) (temp string, info fs.FileInfo, err error) {
	if o.Mode == 0 {
		o.Mode = 0o600
	}
	temp = filepath.Join(filepath.Dir(path), tempPrefix(path)+strconv.FormatUint(rand.Uint64(), 36)+tempSuffix)
	f, err := fsys.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, o.Mode)
	if err != nil {
		return "", nil, err
	}
	err = writeAll(f, data)
	if err == nil {
		err = date(fsys, temp)
	}
	if err == nil && o.Sync {
		err = f.Sync()
	}
	if err == nil {
		info, err = f.Stat()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, errors.Join(err, fsys.Remove(temp))
	}
	return temp, info, nil
}

// date gives a new file the time of the clock. The file system's own is coarse, and
// it gives the numbers of deleted files to new ones: two versions written within a
// moment could have the same [Key].
func date(fsys FS, path string) error {
	now := time.Now()
	return fsys.Chtimes(path, now, now)
}

func writeAll(f File, data []byte) error {
	n, err := f.Write(data)
	if err == nil && n < len(data) {
		err = fmt.Errorf("write %s: %w", f.Name(), io.ErrShortWrite)
	}
	return err
}

const tempSuffix = ".tmp"

// tempPrefix hides temporary files from programs that list *.json.
func tempPrefix(path string) string { return "." + filepath.Base(path) + "." }

// SweepTemps deletes the temporary files in folder that killed writers of the
// file with this name left, or of any file when name is "". The caller holds the
// lock under which they are written, and knows that no living process is writing
// one.
func SweepTemps(fsys FS, folder, name string) error {
	prefix := "."
	if name != "" {
		prefix = tempPrefix(name)
	}
	entries, err := fsys.ReadDir(folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), tempSuffix) {
			errs = append(errs, fsys.Remove(filepath.Join(folder, e.Name())))
		}
	}
	return errors.Join(errs...)
}

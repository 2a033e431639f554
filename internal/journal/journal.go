// Package journal appends lines to files and reads them back, so that neither a kill nor
// a full disk in the middle of a write spoils what was written before or after.
package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// File is a file that grows by whole lines. Nobody else writes to it, or another
// program that appends whole lines too. It is used by one goroutine at a time.
type File struct {
	fsys fsx.FS
	sync bool
	path string

	file    fsx.File // nil while it is not open
	end     int64    // where our last append ended, so that a line starts there; -1: not known
	partial *part    // of an append that failed, where it could not be cut off
}

// part is what a failed append has written.
type part struct{ start, size int64 }

// New is the file at path, which the first append makes. With sync, what was appended
// survives a loss of power.
func New(fsys fsx.FS, path string, sync bool) *File {
	return &File{fsys: fsys, sync: sync, path: path, end: -1}
}

// Append adds lines, which end with a newline, in one write: all of them count, or none.
// After an error nothing of them is in the file, or it is cut off before the next append.
// The file stays open until Close.
func (j *File) Append(lines []byte) error {
	if err := j.open(); err != nil {
		return err
	}
	start, err := j.start()
	if err != nil {
		return err
	}
	if fresh, err := j.atLineStart(start); err != nil {
		return err
	} else if !fresh {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := j.file.Write(lines)
	if err == nil && n < len(lines) {
		err = fmt.Errorf("write %s: %w", j.path, io.ErrShortWrite)
	}
	if err == nil && j.sync {
		err = j.file.Sync()
	}
	if err != nil {
		j.partial = &part{start, int64(n)}
		return errors.Join(err, j.cutPartial())
	}
	j.end = start + int64(n)
	return nil
}

func (j *File) open() error {
	if j.file != nil {
		return nil
	}
	const flags = os.O_RDWR | os.O_APPEND | os.O_CREATE
	file, err := j.fsys.OpenFile(j.path, flags, layout.FileMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err := fsx.MkdirAll(j.fsys, filepath.Dir(j.path), layout.DirMode); err != nil {
			return err
		}
		file, err = j.fsys.OpenFile(j.path, flags, layout.FileMode)
	}
	if err != nil {
		return err
	}
	if j.sync {
		if err := j.fsys.SyncDir(filepath.Dir(j.path)); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	j.file = file
	return nil
}

// start is where the next append goes.
func (j *File) start() (int64, error) {
	if err := j.cutPartial(); err != nil {
		return 0, err
	}
	info, err := j.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// atLineStart reports whether a line starts at this end of the file. It does
// not after a kill in the middle of a write.
func (j *File) atLineStart(at int64) (bool, error) {
	if at == 0 || at == j.end {
		return true, nil
	}
	last := make([]byte, 1)
	if _, err := j.file.ReadAt(last, at-1); err != nil {
		return false, err
	}
	return last[0] == '\n', nil
}

// cutPartial cuts off what a failed append has written, unless another program wrote
// behind it: then the line stays torn, and every reader skips it.
func (j *File) cutPartial() error {
	if j.partial == nil {
		return nil
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= j.partial.start+j.partial.size {
		if err := j.file.Truncate(j.partial.start); err != nil {
			return err
		}
	}
	j.partial, j.end = nil, -1
	return nil
}

// Visible is how many bytes of the file count: all of them, or those before what a
// failed append has left.
func (j *File) Visible() int64 {
	if j.partial != nil {
		return j.partial.start
	}
	return math.MaxInt64
}

// Close closes the file until the next append.
func (j *File) Close() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file, j.end = nil, -1
	return file.Close()
}

// maxLine is the longest line that we read; a longer one is skipped.
const maxLine = 256 << 20

// ErrStop ends [Scan] early, without an error.
var ErrStop = errors.New("enough lines")

// Scan calls each with every line in the first limit bytes of a file, without its
// newline and surrounding white space; empty ones are passed over. The slice is valid
// until each returns, and nil for a line that is too long to be read. The last line may
// be torn. An error of each ends the scan and is returned, unless it is [ErrStop].
func Scan(fsys fsx.FS, path string, limit int64, each func(line []byte) error) (err error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := bufio.NewReaderSize(io.LimitReader(f, limit), 64<<10)
	var long []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if tooLong = tooLong || len(long)+len(part) > maxLine; tooLong {
			long, part = nil, nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		line := part
		if len(long) > 0 {
			long = append(long, part...)
			line = long
		}
		if line = bytes.TrimSpace(line); len(line) > 0 || tooLong {
			if err := each(line); err != nil {
				return ignoreStop(err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		long, tooLong = long[:0], false
	}
}

func ignoreStop(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

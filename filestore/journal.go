package filestore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// journal appends lines to a file that we alone write, or another program that
// appends whole lines too. An append is one write: all of it counts, or nothing.
// The file is made by the first one.
type journal struct {
	fsys fsx.FS
	sync bool
	path string

	file fsx.File // nil while it is not open
	end  int64    // where our last append ended, so that a line starts there; -1: not known
	junk *junk    // what a failed append left and could not be taken back
}

// junk is a part of an append that failed.
type junk struct{ start, size int64 }

func (s *Store) journal(path string) *journal {
	return &journal{fsys: s.fsys, sync: s.sync, path: path, end: -1}
}

// append writes lines, which end with a newline. After an error nothing of them
// is in the file, or it is taken back before the next append.
func (j *journal) append(lines []byte) error {
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
		j.junk = &junk{start, int64(n)}
		return errors.Join(err, j.takeBack())
	}
	j.end = start + int64(n)
	return nil
}

func (j *journal) open() error {
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
func (j *journal) start() (int64, error) {
	if err := j.takeBack(); err != nil {
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
func (j *journal) atLineStart(at int64) (bool, error) {
	if at == 0 || at == j.end {
		return true, nil
	}
	last := make([]byte, 1)
	if _, err := j.file.ReadAt(last, at-1); err != nil {
		return false, err
	}
	return last[0] == '\n', nil
}

// takeBack cuts off what a failed append left, unless another program wrote
// behind it: then the line stays torn, and is skipped by every reader.
func (j *journal) takeBack() error {
	if j.junk == nil {
		return nil
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= j.junk.start+j.junk.size {
		if err := j.file.Truncate(j.junk.start); err != nil {
			return err
		}
	}
	j.junk, j.end = nil, -1
	return nil
}

// visible is how much of the file counts: all of it, or what stands before the
// rest of a failed append.
func (j *journal) visible() int64 {
	if j.junk != nil {
		return j.junk.start
	}
	return 1<<63 - 1
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file, j.end = nil, -1
	return file.Close()
}

// maxLine is the longest line that we read; a longer one is skipped.
const maxLine = 256 << 20

// errStop ends scanLines early, without an error.
var errStop = errors.New("enough lines")

// scanLines calls each with every line of a file up to limit bytes, without its
// newline; the slice is good until each returns. A line that is too long is nil.
// The last line may be torn.
func scanLines(fsys fsx.FS, path string, limit int64, each func(line []byte) error) (err error) {
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
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

package filestore

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/cadre-dev/cadre/internal/fsx"
)

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

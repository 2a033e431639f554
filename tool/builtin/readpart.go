package builtin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Limits of reading.
const (
	maxShown  = 100 << 10 // bytes of text in one result
	maxHashed = 64 << 20  // larger files are recognized by size and time, not by their content
	maxWhole  = 16 << 20  // bytes of a file that has to be in memory as a whole
)

// filePart is the part of a text file that is shown, and facts about the whole file.
type filePart struct {
	lines   []string // without their ends
	first   int      // number of the first of them, from 1
	total   int      // lines of the file
	invalid bool     // the lines are not all UTF-8
	sight   sight
}

func (p *filePart) last() int { return p.first + len(p.lines) - 1 }

// readPart reads a text file from its start to its end, keeping only the lines
// that are shown, so that the size of the file does not matter.
func readPart(ctx context.Context, file *os.File, info os.FileInfo, first, limit int) (*filePart, error) {
	p := &filePart{first: first, sight: sight{size: info.Size(), modified: info.ModTime()}}
	var sum hash.Hash
	var in io.Reader = file
	if info.Size() <= maxHashed {
		sum = sha256.New()
		in = io.TeeReader(file, sum)
	}
	in, err := asUTF8(in, info)
	if err != nil {
		return nil, err
	}
	if err := p.scan(ctx, bufio.NewReaderSize(in, 64<<10), limit); err != nil {
		return nil, err
	}
	if sum != nil {
		sum.Sum(p.sight.hash[:0])
		p.sight.hashed = true
	}
	return p, nil
}

// asUTF8 removes the byte order mark of a text, and turns UTF-16 into UTF-8.
func asUTF8(in io.Reader, info os.FileInfo) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	start, _ := buffered.Peek(3)
	if bytes.HasPrefix(start, []byte(marks[utf8Marked])) {
		_, err := buffered.Discard(len(marks[utf8Marked]))
		return buffered, err
	}
	if !bytes.HasPrefix(start, []byte(marks[utf16LE])) && !bytes.HasPrefix(start, []byte(marks[utf16BE])) {
		return buffered, nil
	}
	if info.Size() > maxWhole {
		return nil, errors.New("the file is UTF-16 and too big; convert it with iconv in Bash")
	}
	content, err := io.ReadAll(buffered)
	if err != nil {
		return nil, err
	}
	text, _, ok := decode(content)
	if !ok {
		return nil, errors.New("the file is not valid UTF-16")
	}
	return strings.NewReader(text), nil
}

// scan counts all lines and keeps those to show.
func (p *filePart) scan(ctx context.Context, in *bufio.Reader, limit int) error {
	shown, full := 0, false
	for {
		keep := !full && p.total+1 >= p.first && len(p.lines) < limit
		line, size, err := nextLine(in, keep)
		if size >= 0 {
			p.total++
		}
		if size >= 0 && keep {
			text := cutLine(string(line), size, maxLine)
			shown += len(text) + len("123456\t\n")
			if full = shown > maxShown && len(p.lines) > 0; !full {
				p.lines = append(p.lines, text)
				p.invalid = p.invalid || !utf8.ValidString(text)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.total%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// nextLine reads to the end of a line, which it leaves out, and returns how many
// bytes the line has: -1 at the end of the input. Of a very long line only the
// first bytes are kept, and none of a line that is not shown.
func nextLine(in *bufio.Reader, keep bool) (line []byte, size int, err error) {
	const most = 4*maxLine + 2
	var piece []byte
	for {
		piece, err = in.ReadSlice('\n')
		size += len(piece)
		if keep && len(line) < most {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if size == 0 {
		return nil, -1, err
	}
	for _, end := range []string{"\n", "\r"} {
		if bytes.HasSuffix(piece, []byte(end)) {
			piece = piece[:len(piece)-1]
			line = bytes.TrimSuffix(line, []byte(end))
			size--
		}
	}
	return line, size, err
}

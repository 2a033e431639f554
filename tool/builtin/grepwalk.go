package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxSearched is how much of a file our own engine reads.
const maxSearched = 64 << 20

// searchByWalking is our own engine, for machines without ripgrep.
func searchByWalking(ctx context.Context, q query) (hits, error) {
	m, err := newMatcher(q)
	if err != nil {
		return hits{}, err
	}
	if q.file != "" {
		f := m.file(filepath.Join(q.dir, q.file), q.file)
		if f.count == 0 {
			return hits{}, nil
		}
		return hits{files: []fileHits{f}}, nil
	}
	kinds, err := kindPatterns(q.kind)
	if err != nil {
		return hits{}, err
	}
	files, err := m.all(ctx, newWalker(q.dir, q.globs, true), kinds)
	enough := errors.Is(err, errEnough)
	if err != nil && !enough {
		return hits{}, err
	}
	slices.SortFunc(files, func(a, b fileHits) int { return strings.Compare(a.rel, b.rel) })
	return hits{files: files, cut: enough}, nil
}

// kindPatterns are the names of the files of a kind; none for all files.
func kindPatterns(kind string) ([]pattern, error) {
	if kind == "" {
		return nil, nil
	}
	names, ok := fileKinds[kind]
	if !ok {
		return nil, fmt.Errorf("unknown type %q; give a glob instead", kind)
	}
	var patterns []pattern
	for _, name := range names {
		if p, ok := parsePattern(name); ok {
			patterns = append(patterns, p)
		}
	}
	return patterns, nil
}

// all searches the files of the walk, several at a time. With errEnough it
// returns what was found until then.
func (m *matcher) all(ctx context.Context, w *walker, kinds []pattern) ([]fileHits, error) {
	paths := make(chan string)
	var mu sync.Mutex
	var found []fileHits
	var size atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for rel := range paths {
				f := m.file(filepath.Join(w.root, filepath.FromSlash(rel)), rel)
				if f.count == 0 {
					continue
				}
				mu.Lock()
				found = append(found, f)
				mu.Unlock()
				size.Add(int64(f.size()))
			}
		})
	}
	err := w.walk(ctx, func(rel string, entry fs.DirEntry) error {
		if !entry.Type().IsRegular() || kinds != nil && judge(kinds, rel, false) == silent {
			return nil
		}
		if size.Load() > maxFound {
			return errEnough
		}
		select {
		case paths <- rel:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(paths)
	workers.Wait()
	return found, err
}

// size estimates how many bytes the file's part of a result has.
func (f fileHits) size() int {
	n := len(f.rel)
	for _, l := range f.lines {
		n += len(f.rel) + len(l.text) + len(":1234:")
	}
	return n
}

// matcher searches single files. It is safe for use by many goroutines.
type matcher struct {
	q       query
	re      *regexp.Regexp
	literal []byte // every match begins with it; nil when nothing is known
}

func newMatcher(q query) (*matcher, error) {
	flags := "m"
	if q.insensitive {
		flags += "i"
	}
	if q.multiline {
		flags += "s"
	}
	re, err := regexp.Compile("(?" + flags + ":" + q.pattern + ")")
	if err != nil {
		return nil, &patternError{strings.TrimPrefix(err.Error(), "error parsing regexp: ")}
	}
	m := &matcher{q: q, re: re}
	if prefix, _ := re.LiteralPrefix(); prefix != "" {
		m.literal = []byte(prefix)
	}
	return m, nil
}

// file searches a file; what cannot be read has no matches.
func (m *matcher) file(path, rel string) fileHits {
	f := fileHits{rel: rel}
	content, ok := readSearched(path)
	if !ok || m.literal != nil && !bytes.Contains(content, m.literal) {
		return f
	}
	starts := lineStarts(content)
	var matched []bool
	if m.q.multiline {
		matched = m.acrossLines(content, starts, &f)
	} else {
		matched = m.byLine(content, starts, &f)
	}
	if m.q.mode == modeContent && f.count > 0 {
		f.lines = m.show(content, starts, matched)
	}
	return f
}

// readSearched reads a file as UTF-8 text; false for binary files.
func readSearched(path string) ([]byte, bool) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSearched))
	if err != nil {
		return nil, false
	}
	for _, enc := range []encoding{utf16LE, utf16BE} {
		if rest, ok := bytes.CutPrefix(content, []byte(marks[enc])); ok {
			return []byte(fromUTF16(rest, byteOrder(enc))), true
		}
	}
	content = bytes.TrimPrefix(content, []byte(marks[utf8Marked]))
	return content, bytes.IndexByte(content, 0) < 0
}

// lineStarts are the offsets at which lines begin, and the end of the content.
func lineStarts(content []byte) []int {
	starts := make([]int, 0, bytes.Count(content, []byte("\n"))+2)
	for at := 0; at < len(content); {
		starts = append(starts, at)
		n := bytes.IndexByte(content[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	return append(starts, len(content))
}

// line is a line without its end.
func line(content []byte, starts []int, i int) []byte {
	text := bytes.TrimSuffix(content[starts[i]:starts[i+1]], []byte("\n"))
	return bytes.TrimSuffix(text, []byte("\r"))
}

func (m *matcher) byLine(content []byte, starts []int, f *fileHits) []bool {
	matched := make([]bool, len(starts)-1)
	for i := range matched {
		if !m.re.Match(line(content, starts, i)) {
			continue
		}
		matched[i] = true
		f.count++
		if m.q.mode == modeFiles {
			break
		}
	}
	return matched
}

// acrossLines counts matches, not lines, and marks all lines that they touch.
func (m *matcher) acrossLines(content []byte, starts []int, f *fileHits) []bool {
	matched := make([]bool, len(starts)-1)
	most := -1
	if m.q.mode == modeFiles {
		most = 1
	}
	for _, at := range m.re.FindAllIndex(content, most) {
		if at[0] == len(content) {
			continue // an empty match behind the last line
		}
		f.count++
		first := lineOf(starts, at[0])
		for i := first; i <= max(first, lineOf(starts, at[1]-1)); i++ {
			matched[i] = true
		}
	}
	return matched
}

// lineOf finds the line with the byte at this place.
func lineOf(starts []int, at int) int {
	i, exact := slices.BinarySearch(starts, at)
	if !exact {
		i--
	}
	return i
}

// show lists the lines to show: matches, and those around them.
func (m *matcher) show(content []byte, starts []int, matched []bool) []hitLine {
	var out []hitLine
	next := 0 // the first line that is not listed yet
	for i, hit := range matched {
		if !hit {
			continue
		}
		last := min(i+m.q.after, len(matched)-1)
		for n := max(next, i-m.q.before); n <= last; n++ {
			out = append(out, hitLine{n + 1, string(line(content, starts, n)), matched[n]})
		}
		next = max(next, last+1)
	}
	return out
}

package builtin

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/proc"
)

// searchWithRipgrep runs rg in the folder to search, with flags that make its
// answers depend on nothing but the files and their .gitignore.
func searchWithRipgrep(ctx context.Context, rg string, q query) (hits, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out := &limitedBuffer{most: maxFound, full: func() { stop(errEnough) }}
	problems := &limitedBuffer{most: 4 << 10}
	exit, err := proc.Run(ctx, proc.Command{
		Path: rg, Args: append([]string{"rg"}, ripgrepFlags(q)...), Dir: q.dir, Stdout: out, Stderr: problems,
	})
	if err != nil {
		return hits{}, err
	}
	enough := errors.Is(context.Cause(ctx), errEnough)
	if exit.Killed && !enough {
		return hits{}, context.Cause(ctx)
	}
	if exit.Code == 2 && out.data == nil && len(problems.data) > 0 {
		return hits{}, ripgrepError(string(problems.data))
	}
	return hits{files: parseRipgrep(out.data, q.mode), cut: enough}, nil
}

// ripgrepFlags is the command line. The pattern comes after "--", so that it
// can never be read as a flag; the file after "./" for the same reason.
func ripgrepFlags(q query) []string {
	flags := []string{
		"--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--null", "--crlf",
		"--hidden", "--no-ignore-dot", "--no-ignore-global",
	}
	switch q.mode {
	case modeContent:
		flags = append(flags, "--line-number", "--before-context="+strconv.Itoa(q.before), "--after-context="+strconv.Itoa(q.after))
	case modeCount:
		if q.multiline { // lines would be counted or matches, depending on the pattern
			flags = append(flags, "--count-matches")
		} else {
			flags = append(flags, "--count")
		}
	default:
		flags = append(flags, "--files-with-matches")
	}
	if q.insensitive {
		flags = append(flags, "--ignore-case")
	}
	if q.multiline {
		flags = append(flags, "--multiline", "--multiline-dotall")
	}
	for _, glob := range q.globs {
		flags = append(flags, "--glob="+glob)
	}
	for dir := range versionControl {
		flags = append(flags, "--glob=!"+dir)
	}
	if q.kind != "" {
		if names := fileKinds[q.kind]; names != nil {
			flags = append(flags, "--type-clear="+q.kind)
			for _, name := range names {
				flags = append(flags, "--type-add="+q.kind+":"+name)
			}
		}
		flags = append(flags, "--type="+q.kind)
	}
	return append(flags, "--", q.pattern, "./"+q.file)
}

// ripgrepError turns the message of rg into an error, which is nearly always about
// the pattern.
func ripgrepError(text string) error {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "regex parse error") || strings.Contains(text, "regex could not be compiled") || strings.Contains(text, "literal") {
		return &patternError{text}
	}
	return errors.New(text)
}

// parseRipgrep reads what rg prints with --null: a path, NUL, and then the rest
// of the line, or in files mode nothing.
func parseRipgrep(out []byte, mode string) []fileHits {
	byPath := map[string]*fileHits{}
	for {
		for rest, binary := remark(out, mode); rest != nil; rest, binary = remark(out, mode) {
			delete(byPath, binary)
			out = rest
		}
		path, rest, ok := bytes.Cut(out, []byte{0})
		if !ok {
			break // the end, or cut off
		}
		rel := strings.TrimPrefix(string(path), "./")
		f := byPath[rel]
		if f == nil {
			f = &fileHits{rel: rel}
			byPath[rel] = f
		}
		out = rest
		if mode == modeFiles {
			continue
		}
		var line []byte
		if line, out, ok = bytes.Cut(rest, []byte("\n")); !ok {
			break
		}
		f.add(strings.TrimSuffix(string(line), "\r"), mode)
	}
	var files []fileHits
	for _, f := range byPath {
		if f.count > 0 || mode == modeFiles {
			files = append(files, *f)
		}
	}
	slices.SortFunc(files, func(a, b fileHits) int { return strings.Compare(a.rel, b.rel) })
	return files
}

// remark consumes a line that is not a result: the two dashes between groups of
// lines, or that a file turned out to be binary, and which. rest is nil when
// there is none. Paths begin with a dot.
func remark(out []byte, mode string) (rest []byte, binary string) {
	line, rest, ok := bytes.Cut(out, []byte("\n"))
	if mode != modeContent || !ok || bytes.IndexByte(line, 0) >= 0 {
		return nil, ""
	}
	if bytes.HasPrefix(line, []byte("--")) {
		return rest, ""
	}
	path, _, found := strings.Cut(string(line), ": WARNING: stopped searching binary file")
	if !found {
		return nil, ""
	}
	return rest, strings.TrimPrefix(path, "./")
}

// add consumes the rest of a line: a count, or a number, a sign and the text.
func (f *fileHits) add(line, mode string) {
	if mode == modeCount {
		f.count, _ = strconv.Atoi(line)
		return
	}
	end := strings.IndexAny(line, ":-")
	if end < 0 {
		return
	}
	number, err := strconv.Atoi(line[:end])
	if err != nil {
		return
	}
	match := line[end] == ':'
	if match {
		f.count++
	}
	f.lines = append(f.lines, hitLine{number, line[end+1:], match})
}

// limitedBuffer keeps what is written up to a limit, and calls full, if set, once
// when more is written.
type limitedBuffer struct {
	data []byte
	most int
	full func()
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	fit := min(len(p), b.most-len(b.data))
	b.data = append(b.data, p[:fit]...)
	if fit < len(p) && b.full != nil {
		b.full()
		b.full = nil
	}
	return len(p), nil
}

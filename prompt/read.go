package prompt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits on instruction files, in bytes. A prompt that large pushes out the
// work itself.
const (
	maxFile  = 64 << 10
	maxTotal = 256 << 10
)

// read returns the text of a file with its imports in place, trimmed. A file
// that counts already gives "". importers are the resolved files that lead to
// this one.
func (r *reader) read(path string, in reach, importers []string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if slices.Contains(importers, resolved) {
		return "", errLoop
	}
	if r.seen[resolved] {
		return "", nil
	}
	if err := r.mayRead(resolved, in, len(importers) > 0); err != nil {
		return "", err
	}
	data, err := readRegular(resolved)
	if err != nil {
		return "", err
	}
	if r.total+len(data) > maxTotal {
		return "", fmt.Errorf("instruction files have more than %d KiB together", maxTotal>>10)
	}
	r.total += len(data)
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", errors.New("no text in UTF-8")
	}
	text, removed := visible(string(data))
	if removed > 0 {
		r.warn(path, "%d invisible characters were removed", removed)
	}
	if len(importers) == 0 {
		r.seen[resolved] = true
	}
	chain := append(slices.Clone(importers), resolved)
	return strings.TrimSpace(r.withImports(path, text, in, chain)), nil
}

var errLoop = errors.New("it imports itself")

// mayRead says why a file must not be read.
func (r *reader) mayRead(resolved string, in reach, imported bool) error {
	if r.Denied != nil {
		if rule, denied := r.Denied(resolved); denied {
			return fmt.Errorf("the rule %s denies reading it", rule)
		}
	}
	if in.own && !imported {
		return nil
	}
	if slices.ContainsFunc(in.folders, func(dir string) bool { return within(dir, resolved) }) {
		return nil
	}
	if slices.ContainsFunc(in.definitions, func(dir string) bool { return isDefinition(dir, resolved) }) {
		return nil
	}
	return fmt.Errorf("%s lies outside the folders it may come from", resolved)
}

// stateFolders hold what agents left, of all projects.
var stateFolders = []string{"projects", "teams", "tasks", "plans", "debug", "file-history", "session-env"}

// isDefinition reports whether path is Markdown that the user wrote in a folder
// of definitions, and not state that agents left there.
func isDefinition(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !within(dir, path) || !strings.EqualFold(filepath.Ext(path), ".md") {
		return false
	}
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return !slices.Contains(stateFolders, first)
}

// readRegular reads a whole file that is neither special nor too large.
func readRegular(path string) (data []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d KiB", maxFile>>10)
	}
	return data, err
}

// visible removes what a person who reads the file would not see but a model
// would: controls, marks that turn text around, zero-width and tag characters.
// The joiners that scripts and emoji need stay.
func visible(text string) (cleaned string, removed int) {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")
	cleaned = strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return c
		case c < ' ', c >= 0x7f && c < 0xa0, c == 0xad, c == 0x200b, c == 0x200e, c == 0x200f, c >= 0x2028 && c <= 0x202e,
			c >= 0x2060 && c <= 0x206f, c == 0xfeff, c >= 0xe0000 && c <= 0xe0fff:
			removed++
			return -1
		}
		return c
	}, text)
	return cleaned, removed
}

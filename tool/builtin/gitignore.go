package builtin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// verdict is what a list of patterns says about a path.
type verdict int

const (
	silent  verdict = iota
	ignored         // by a pattern
	wanted          // by a pattern with a ! in front
)

// pattern is one line of a .gitignore file, or one glob of a search in the same
// language (gitignore(5)).
type pattern struct {
	glob    string // for doublestar, against the path relative to its folder
	name    string // instead of glob: the last component must be this
	negated bool
	dirOnly bool
}

// parsePattern reads a line. Braces mean alternatives, as they do to ripgrep,
// though not to git.
func parsePattern(line string) (pattern, bool) {
	line = strings.TrimSuffix(line, "\r")
	if strings.HasPrefix(line, "#") {
		return pattern{}, false
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	var p pattern
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return pattern{}, false
	}
	switch {
	case strings.Contains(line, "/"):
		line = strings.TrimPrefix(line, "/")
		if inside, ok := strings.CutSuffix(line, "/**"); ok {
			line = inside + "/**/*" // what is in the folder, not the folder
		}
		p.glob = line
	case !strings.ContainsAny(line, `*?[{\`):
		p.name = line
	default:
		p.glob = "**/" + line
	}
	if !doublestar.ValidatePattern(p.glob) {
		return pattern{}, false
	}
	return p, true
}

// matches reports whether the pattern matches a path relative to its folder, with
// slashes.
func (p pattern) matches(rel string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.name != "" {
		return rel[strings.LastIndexByte(rel, '/')+1:] == p.name
	}
	return doublestar.MatchUnvalidated(p.glob, rel)
}

// judge lets the last pattern that matches decide.
func judge(patterns []pattern, rel string, isDir bool) verdict {
	for i := len(patterns) - 1; i >= 0; i-- {
		if patterns[i].matches(rel, isDir) {
			if patterns[i].negated {
				return wanted
			}
			return ignored
		}
	}
	return silent
}

// ignoreFolder is a folder with the ignore files that apply in it and below.
type ignoreFolder struct {
	parent   *ignoreFolder
	path     string // absolute
	patterns []pattern
	isRepo   bool // a repository begins here: nothing above applies
	inRepo   bool // outside of repositories ignore files do not apply
}

// ignoresAbove loads the ignore files that apply to dir: from the root of its
// repository down to dir itself.
func ignoresAbove(dir string) *ignoreFolder {
	var chain []string
	for at := dir; ; at = filepath.Dir(at) {
		chain = append(chain, at)
		if isRepository(at) || at == filepath.Dir(at) {
			break
		}
	}
	var f *ignoreFolder
	for i := len(chain) - 1; i >= 0; i-- {
		f = f.enter(chain[i])
	}
	return f
}

func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// enter is the folder dir below f, which may be nil.
func (f *ignoreFolder) enter(dir string) *ignoreFolder {
	sub := &ignoreFolder{parent: f, path: dir, isRepo: isRepository(dir)}
	sub.inRepo = sub.isRepo || f != nil && f.inRepo
	if !sub.inRepo {
		return sub
	}
	if sub.isRepo {
		sub.load(filepath.Join(dir, ".git", "info", "exclude"))
	}
	sub.load(filepath.Join(dir, ".gitignore"))
	return sub
}

func (f *ignoreFolder) load(file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		return // there is none, or it is not readable
	}
	for line := range strings.Lines(string(bytes.TrimPrefix(content, []byte(marks[utf8Marked])))) {
		if p, ok := parsePattern(strings.TrimSuffix(line, "\n")); ok {
			f.patterns = append(f.patterns, p)
		}
	}
}

// ignores decides about a path in the folder f or below it: the nearest ignore file
// with a pattern for it counts, up to the root of the repository.
func (f *ignoreFolder) ignores(path string, isDir bool) bool {
	if !f.inRepo {
		return false
	}
	for ; f != nil; f = f.parent {
		rel := filepath.ToSlash(strings.TrimPrefix(path[len(f.path):], string(filepath.Separator)))
		if v := judge(f.patterns, rel, isDir); v != silent {
			return v == ignored
		}
		if f.isRepo {
			return false
		}
	}
	return false
}

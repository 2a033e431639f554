package permission

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// care is how a pattern is compared with a path: that of a deny or ask rule
// generously, that of an allow rule exactly.
type care bool

const (
	exact    care = false
	generous care = true // ignoring case, and a bare name in any folder
)

// reads and writes say which accesses a rule with content is about. A path rule
// of one file tool counts for all file tools that do the same to a file.
func (r Rule) reads() bool {
	switch currentName(r.Tool) {
	case "Read", "Grep", "Glob":
		return true
	}
	return false
}

func (r Rule) writes() bool {
	switch currentName(r.Tool) {
	case "Edit", "Write", "NotebookEdit":
		return true
	}
	return false
}

// pathRuleMatches reports whether the rule's pattern covers file: the file
// itself or a folder above it, as in a .gitignore. A pattern starts at the root
// with "//", at home with "~/", at the rule's base with "/", else at the first
// working folder; a bare name matches at any depth.
func (p Policy) pathRuleMatches(r SourcedRule, file string, how care) bool {
	dir, glob, ok := p.anchor(r, how)
	if !ok {
		return false
	}
	rel, ok := relative(dir, file, how)
	if !ok {
		return false
	}
	if how == generous {
		glob = strings.ToLower(glob)
	}
	for ; ; rel = path.Dir(rel) {
		if rel == "." {
			rel = ""
		}
		if matched, err := doublestar.Match(glob, rel); err == nil && matched {
			return true
		}
		if rel == "" {
			return false
		}
	}
}

// anchor splits a pattern into the folder it starts from and the rest.
func (p Policy) anchor(r SourcedRule, how care) (dir, glob string, ok bool) {
	pattern := strings.TrimSuffix(r.Content, "/")
	if rest, found := strings.CutPrefix(pattern, "//"); found {
		return "/", rest, true
	}
	if rest, found := strings.CutPrefix(pattern, "~/"); found {
		return p.Home, rest, p.Home != ""
	}
	if pattern == "~" {
		return p.Home, "**", p.Home != ""
	}
	if rest, found := strings.CutPrefix(pattern, "/"); found {
		if r.Base != "" {
			return r.Base, rest, true
		}
		return p.start(), rest, p.start() != ""
	}
	if filepath.IsAbs(pattern) { // a Windows path with its drive
		volume := filepath.VolumeName(pattern)
		rest := strings.TrimLeft(filepath.ToSlash(pattern[len(volume):]), "/")
		return volume + string(filepath.Separator), rest, true
	}
	if strings.Contains(pattern, "/") {
		dir, glob = p.start(), path.Clean(pattern)
		for dir != "" && strings.HasPrefix(glob, "../") {
			dir, glob = filepath.Dir(dir), glob[len("../"):]
		}
		return dir, glob, dir != ""
	}
	if how == generous {
		return "/", "**/" + pattern, pattern != ""
	}
	return p.start(), "**/" + pattern, p.start() != ""
}

// relative is file as a slash path below dir: "" for dir itself. It compares
// whole components, so /a/bc is not below /a/b.
func relative(dir, file string, how care) (string, bool) {
	dir, file = path.Clean(filepath.ToSlash(dir)), path.Clean(filepath.ToSlash(file))
	if how == generous {
		dir, file = strings.ToLower(dir), strings.ToLower(file)
	}
	switch {
	case dir == ".": // never a folder of ours: all are absolute
		return "", false
	case dir == file:
		return "", true
	case dir == "/":
		return strings.TrimPrefix(file, "/"), true
	case strings.HasPrefix(file, dir) && file[len(dir)] == '/':
		return file[len(dir)+1:], true
	}
	return "", false
}

// within reports whether file is dir or lies below it.
func within(dir, file string) bool {
	_, ok := relative(dir, file, exact)
	return ok
}

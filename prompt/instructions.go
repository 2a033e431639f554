package prompt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/symlink"
)

// File is an instruction file with its imports in place.
type File struct {
	Path string
	Text string
}

// Places says where instruction files are looked for.
type Places struct {
	Cwd string // absolute; "" leaves out the project's files
	// Users are the folders of the user's own definitions: the state root and
	// ~/.claude, the one that counts more last.
	Users []string
	Home  string // "" when it is unknown
	// Denied, when set, reports whether a deny rule forbids reading a resolved path.
	Denied func(path string) (rule string, denied bool)
}

// Names of instruction files in a folder, the most general first, so that ours
// has the last word. The local ones are a person's own and not committed.
var (
	userNames    = []string{"AGENTS.md", "CLAUDE.md", "CADRE.md"}
	projectNames = append(slices.Clone(userNames), ".claude/CLAUDE.md", ".cadre/CADRE.md", "CLAUDE.local.md", "CADRE.local.md")
)

// Instructions reads the instruction files that apply in Cwd: the user's own,
// then those of the folders from below the home folder, or from the top of the
// file system, down to Cwd. The most general come first. A file counts once,
// whatever names lead to it, and so does equal text in one folder. What cannot
// or must not be read is left out, and named in the warnings.
func Instructions(p Places) ([]File, []string) {
	r := &reader{Places: p, seen: map[string]bool{}}
	for _, dir := range p.Users {
		if dir != "" {
			r.addFolder(dir, userNames, r.userReach(dir))
		}
	}
	if p.Cwd == "" {
		return r.files, r.warnings
	}
	cwd := symlink.Follow(p.Cwd)
	git := gitRoot(cwd)
	for _, dir := range r.chain(cwd) {
		tree := dir
		if git != "" && within(git, dir) {
			tree = git
		}
		if dir != cwd && writableByAll(dir) {
			r.warnAbout(dir)
			continue
		}
		r.addFolder(dir, projectNames, reach{folders: []string{tree}, definitions: r.resolveAll(p.Users...)})
	}
	return r.files, r.warnings
}

// reader gathers files in their order.
type reader struct {
	Places
	files    []File
	warnings []string
	seen     map[string]bool // resolved paths of files that count already
	total    int             // bytes so far
}

// maxWarnings keeps a hostile file from filling the terminal.
const maxWarnings = 20

func (r *reader) warn(path, format string, args ...any) {
	switch {
	case len(r.warnings) < maxWarnings:
		r.warnings = append(r.warnings, path+": "+fmt.Sprintf(format, args...))
	case len(r.warnings) == maxWarnings:
		r.warnings = append(r.warnings, path+": more is wrong with instruction files than is listed here")
	}
}

// reach is where a file and what it imports may lie. The folders are resolved.
type reach struct {
	// own is set for the user's own files, which may be links to anywhere.
	own     bool
	folders []string
	// definitions are the user's folders, from which a project may import
	// Markdown: a person's own preferences for it.
	definitions []string
}

func (r *reader) userReach(dir string) reach {
	return reach{own: true, folders: r.resolveAll(dir, r.Home)}
}

// chain is the folders below home, or from the top, down to dir.
func (r *reader) chain(dir string) []string {
	home := symlink.Follow(r.Home)
	chain := []string{dir}
	for parent := filepath.Dir(dir); parent != dir && parent != home && dir != home; parent = filepath.Dir(dir) {
		chain = append(chain, parent)
		dir = parent
	}
	slices.Reverse(chain)
	return chain
}

func (r *reader) addFolder(dir string, names []string, in reach) {
	var texts []string
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		text, err := r.read(path, in, nil)
		if err != nil {
			r.warn(path, "left out: %v", err)
			continue
		}
		if text == "" || slices.Contains(texts, text) {
			continue
		}
		texts = append(texts, text)
		r.files = append(r.files, File{path, text})
	}
}

// warnAbout names the files of a folder that anybody on the machine may write.
func (r *reader) warnAbout(dir string) {
	for _, name := range projectNames {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(path); err == nil {
			r.warn(path, "left out: everybody may write to its folder")
		}
	}
}

func writableByAll(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0
}

// gitRoot is the folder at or above dir that holds .git, or "".
func gitRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func (r *reader) resolveAll(paths ...string) []string {
	var out []string
	for _, path := range paths {
		if filepath.IsAbs(path) {
			out = append(out, symlink.Follow(path))
		}
	}
	return out
}

// within reports whether path is dir or lies below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

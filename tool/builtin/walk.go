package builtin

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// walker walks a folder in the order of names. It never enters the folders of version
// control, and follows no symbolic links. Hidden files are files like any others.
type walker struct {
	root      string    // absolute
	globs     []pattern // of a search: files that match none of the wanted ones are left out
	ignoring  bool      // leave out what .gitignore files say
	depth     int       // how many folders deep to go; 0: no limit
	positives int       // globs that are not negated
}

// visitor is called with each file, by its path relative to the root, with slashes.
type visitor func(rel string, entry fs.DirEntry) error

func newWalker(root string, globs []string, ignoring bool) *walker {
	w := &walker{root: root, ignoring: ignoring}
	for _, glob := range globs {
		if p, ok := parsePattern(glob); ok {
			w.globs = append(w.globs, p)
			if !p.negated {
				w.positives++
			}
		}
	}
	return w
}

// walk calls visit for every file, links included. It ends with ctx, or with
// the first error of visit; folders that cannot be read are left out.
func (w *walker) walk(ctx context.Context, visit visitor) error {
	var ignores *ignoreFolder
	if w.ignoring {
		ignores = ignoresAbove(w.root)
	}
	return w.folder(ctx, "", 1, ignores, visit)
}

func (w *walker) folder(ctx context.Context, rel string, depth int, ignores *ignoreFolder, visit visitor) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir := filepath.Join(w.root, filepath.FromSlash(rel))
	entries, err := os.ReadDir(dir)
	if err != nil && rel == "" {
		return err
	}
	for _, e := range entries {
		sub := e.Name()
		if rel != "" {
			sub = rel + "/" + sub
		}
		if w.leavesOut(sub, filepath.Join(dir, e.Name()), e.IsDir(), ignores) {
			continue
		}
		if !e.IsDir() {
			if err := visit(sub, e); err != nil {
				return err
			}
			continue
		}
		if depth == w.depth {
			continue
		}
		below := ignores
		if ignores != nil {
			below = ignores.enter(filepath.Join(dir, e.Name()))
		}
		if err := w.folder(ctx, sub, depth+1, below, visit); err != nil {
			return err
		}
	}
	return nil
}

// leavesOut decides as ripgrep does: a glob that was asked for overrides an ignore
// file.
func (w *walker) leavesOut(rel, path string, isDir bool, ignores *ignoreFolder) bool {
	if isDir && versionControl[filepath.Base(path)] || filepath.Base(path) == ".git" {
		return true
	}
	// In globs, unlike in ignore files, ! excludes.
	switch judge(w.globs, rel, isDir) {
	case ignored:
		return false
	case wanted:
		return true
	}
	if w.positives > 0 && !isDir {
		return true
	}
	return ignores != nil && ignores.ignores(path, isDir)
}

// versionControl are the folders in which programs keep versions.
var versionControl = map[string]bool{".git": true, ".svn": true, ".hg": true, ".bzr": true, ".jj": true}

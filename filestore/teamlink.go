package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// recordShown is the kind of the records that say under which other roots a team
// can be found.
const recordShown = "shown"

type shown struct {
	Root layout.Root `json:"root"`
}

// ErrOccupied says that another program has a team of this name already.
var ErrOccupied = errors.New("something else stands there; name the team otherwise")

// ShowTeam lets programs whose state lies under another root find a team of ours
// there: its folder and its task list stand under that root as symbolic links, so
// that both see, and lock, the same files. To show it again does nothing. The links
// go with the team. Errors: [ErrOccupied].
func (s *Store) ShowTeam(ctx context.Context, name string, to layout.Root) error {
	if err := s.teams.show(ctx, name, to); err != nil {
		return fmt.Errorf("show team %q in %s: %w", name, to, err)
	}
	return nil
}

func (ts *teams) show(ctx context.Context, name string, to layout.Root) error {
	if err := fsx.MkdirOwn(ts.fsys, ts.root.TaskList(name), layout.DirMode); err != nil {
		return err
	}
	// On record first: what is not cannot be removed after a crash.
	err := (&records{ts.files}).Put(ctx, name, recordShown, layout.Slug(string(to)), jsonx.MustMarshal(shown{to}))
	for _, l := range ts.linksOf(name, to) {
		if err == nil {
			err = ts.link(l)
		}
	}
	return err
}

// link is a symbolic link under another root to a folder of ours.
type link struct{ path, target string }

func (ts *teams) linksOf(name string, to layout.Root) []link {
	return []link{{to.TeamDir(name), ts.root.TeamDir(name)}, {to.TaskList(name), ts.root.TaskList(name)}}
}

// link makes a link, also where one of a team that is gone has stayed.
func (ts *teams) link(l link) error {
	if err := fsx.MkdirAll(ts.fsys, filepath.Dir(l.path), layout.DirMode); err != nil {
		return err
	}
	err := ts.fsys.Symlink(l.target, l.path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if same, err := ts.sameFolder(l); same || err != nil {
		return err
	}
	old, err := ts.fsys.Readlink(l.path)
	if err == nil && old == l.target {
		return nil
	}
	if err == nil {
		_, err = ts.fsys.Lstat(old)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "link", Path: l.path, Err: ErrOccupied}
	}
	return errors.Join(ts.fsys.Remove(l.path), ts.fsys.Symlink(l.target, l.path))
}

// sameFolder reports whether both ends of a link are one folder: the other root may
// be ours by another path.
func (ts *teams) sameFolder(l link) (bool, error) {
	at, err := ts.fsys.Lstat(l.path)
	if err != nil {
		return false, err
	}
	ours, err := ts.fsys.Lstat(l.target)
	return err == nil && os.SameFile(at, ours), err
}

// unshow removes the links to a team, and nothing else that stands in their place.
func (ts *teams) unshow(ctx context.Context, name string) error {
	docs, err := (&records{ts.files}).All(ctx, name, recordShown)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		var where shown
		if err := json.Unmarshal(doc, &where); err != nil {
			return err
		}
		for _, l := range ts.linksOf(name, where.Root) {
			if at, err := ts.fsys.Readlink(l.path); err != nil || at != l.target {
				continue
			}
			if err := ts.fsys.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

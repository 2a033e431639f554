package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// recordLink is the kind of the records that name the other roots under which a team can be
// found.
const recordLink = "shown"

type teamLink struct {
	Root layout.Root `json:"root"`
}

// ErrOccupied says that another program has a team of this name already.
var ErrOccupied = errors.New("another program has a team of this name there; choose another name")

// ShowTeam lets programs whose state lies under another root find a team there: symbolic
// links under that root lead to its folder and to its task list, so that both see, and
// lock, the same files. If the links exist already it does nothing. They are removed with
// the team. Errors: [ErrOccupied].
func (s *Store) ShowTeam(ctx context.Context, name string, to layout.Root) (err error) {
	defer wrap(&err, "show team %q in %s", name, to)
	return s.teams.linkTo(ctx, name, to)
}

func (ts *teams) linkTo(ctx context.Context, name string, to layout.Root) error {
	if err := fsx.MkdirOwn(ts.fsys, ts.root.TaskList(name), layout.DirMode); err != nil {
		return err
	}
	// The record first: after a crash, a link that is not on record is never removed.
	err := (&records{ts.files}).Put(ctx, name, recordLink, layout.Slug(string(to)), jsonx.MustMarshal(teamLink{to}))
	for _, l := range ts.linksOf(name, to) {
		if err == nil {
			err = ts.link(l)
		}
	}
	return err
}

// link is a symbolic link under another root to a folder under ours.
type link struct{ path, target string }

func (ts *teams) linksOf(name string, to layout.Root) []link {
	return []link{{to.TeamDir(name), ts.root.TeamDir(name)}, {to.TaskList(name), ts.root.TaskList(name)}}
}

// link makes a link, also in the place of one whose team does not exist any more.
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

// sameFolder reports whether both ends of a link are the same folder: the other root may be
// ours by another path.
func (ts *teams) sameFolder(l link) (bool, error) {
	at, err := ts.fsys.Lstat(l.path)
	if err != nil {
		return false, err
	}
	ours, err := ts.fsys.Lstat(l.target)
	return err == nil && os.SameFile(at, ours), err
}

// unlink removes the links to a team, and nothing else that is in their place.
func (ts *teams) unlink(ctx context.Context, name string) error {
	docs, err := (&records{ts.files}).All(ctx, name, recordLink)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		var where teamLink
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

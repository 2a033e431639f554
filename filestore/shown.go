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
	if err := s.showTeam(ctx, name, to); err != nil {
		return fmt.Errorf("show team %q in %s: %w", name, to, err)
	}
	return nil
}

func (s *Store) showTeam(ctx context.Context, name string, to layout.Root) error {
	if err := fsx.MkdirOwn(s.fsys, s.root.TaskList(name), layout.DirMode); err != nil {
		return err
	}
	// On record first: what is not cannot be removed after a crash.
	err := s.Records().Put(ctx, name, recordShown, layout.Slug(string(to)), jsonx.MustMarshal(shown{to}))
	for _, l := range s.linksOf(name, to) {
		if err == nil {
			err = s.link(l)
		}
	}
	return err
}

// link is a symbolic link under another root to a folder of ours.
type link struct{ path, target string }

func (s *Store) linksOf(name string, to layout.Root) []link {
	return []link{{to.TeamDir(name), s.root.TeamDir(name)}, {to.TaskList(name), s.root.TaskList(name)}}
}

// link makes a link, also where one of a team that is gone has stayed.
func (s *Store) link(l link) error {
	if err := fsx.MkdirAll(s.fsys, filepath.Dir(l.path), layout.DirMode); err != nil {
		return err
	}
	err := s.fsys.Symlink(l.target, l.path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if same, err := s.sameFolder(l); same || err != nil {
		return err
	}
	old, err := s.fsys.Readlink(l.path)
	if err == nil && old == l.target {
		return nil
	}
	if err == nil {
		_, err = s.fsys.Lstat(old)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "link", Path: l.path, Err: ErrOccupied}
	}
	return errors.Join(s.fsys.Remove(l.path), s.fsys.Symlink(l.target, l.path))
}

// sameFolder reports whether both ends of a link are one folder: the other root may
// be ours by another path.
func (s *Store) sameFolder(l link) (bool, error) {
	at, err := s.fsys.Lstat(l.path)
	if err != nil {
		return false, err
	}
	ours, err := s.fsys.Lstat(l.target)
	return err == nil && os.SameFile(at, ours), err
}

// unshow removes the links to a team, and nothing else that stands in their place.
func (s *Store) unshow(ctx context.Context, name string) error {
	docs, err := s.Records().All(ctx, name, recordShown)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		var where shown
		if err := json.Unmarshal(doc, &where); err != nil {
			return err
		}
		for _, l := range s.linksOf(name, where.Root) {
			if at, err := s.fsys.Readlink(l.path); err != nil || at != l.target {
				continue
			}
			if err := s.fsys.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
)

// Keep changes the permissions in the settings of a scope, as a person has said,
// and returns the file that was changed last. What is added goes into the user's
// file in the state root, or into the project's .cadre file if there is one and its
// .claude file if not (facts: sdk-contract §3.2); what is removed is removed from all of
// these. Files in ~/.claude are another program's, and left alone.
//
// What the person accepts in a project's file is noted in the state root too, and
// counts from then on without trust in the project ([Load]). Processes that share
// the state root change files one after the other; ctx ends the wait for the others.
func (o Options) Keep(ctx context.Context, scope Scope, edits ...Edit) (file string, err error) {
	if scope != User && scope != Project && scope != Local {
		return "", fmt.Errorf("change the permissions of the scope %q: it has no file", scope)
	}
	if err := fsx.MkdirAll(fsx.OS, o.Root.OwnDir(), layout.DirMode); err != nil {
		return "", err
	}
	settings := filepath.Join(o.Root.OwnDir(), "settings")
	below, file := o.Root.LockQueue(settings)
	lock, err := dirlock.Acquire(ctx, fsx.OS, settings, dirlock.Queue{Below: below, File: file})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if scope == User {
		return o.Root.Settings(), o.keepForUser(edits)
	}
	return o.keepForProject(scope, edits)
}

func (o Options) keepForUser(edits []Edit) error {
	if err := EditFile(o.Root.Settings(), edits...); err != nil {
		return err
	}
	other := filepath.Join(o.Home, ".claude", "settings.json")
	if o.Home == "" || other == o.Root.Settings() {
		return nil
	}
	text, err := readSettings(other)
	if err != nil {
		return nil // what cannot be read does not count either
	}
	if left, err := edited(text, removals(edits)); err == nil && !bytes.Equal(left, text) {
		return fmt.Errorf("%s holds some of what was to go; it is another program's file, so change it there", other)
	}
	return nil
}

func (o Options) keepForProject(scope Scope, edits []Edit) (file string, err error) {
	name := map[Scope]string{Project: "settings.json", Local: "settings.local.json"}[scope]
	files := []string{filepath.Join(o.Project, ".claude", name), filepath.Join(o.Project, ".cadre", name)}
	for _, file := range files {
		if err := o.isProjects(file); err != nil {
			return "", err
		}
	}
	ours, err := fsx.KeyAt(fsx.OS, files[1])
	if err != nil {
		return "", err
	}
	if ours != (fsx.Key{}) {
		slices.Reverse(files)
	}
	if err := EditFile(files[1], removals(edits)...); err != nil {
		return "", err
	}
	if err := EditFile(files[0], edits...); err != nil {
		return "", err
	}
	return files[0], o.accept(edits)
}

// isProjects refuses a settings file of the project that is really elsewhere: a
// repository can hold a symbolic link to the user's own settings.
func (o Options) isProjects(file string) error {
	project, err := filepath.EvalSymlinks(o.Project)
	if err != nil {
		return err
	}
	for path := file; path != filepath.Clean(o.Project); path = filepath.Dir(path) {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			rel, err := filepath.Rel(project, real)
			if err != nil || !filepath.IsLocal(rel) {
				return fmt.Errorf("%s leads out of the project, to %s", path, real)
			}
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if key, err := fsx.KeyAt(fsx.OS, path); err != nil || key != (fsx.Key{}) {
			return errors.Join(err, fmt.Errorf("%s is a symbolic link that leads nowhere", path))
		}
	}
	return nil
}

// removals are the edits without what they add.
func removals(edits []Edit) []Edit {
	var out []Edit
	for _, e := range edits {
		if e.List != "" {
			// What is added stays where it is already.
			e.Remove = slices.DeleteFunc(slices.Clone(e.Remove), func(value string) bool { return slices.Contains(e.Add, value) })
			out = append(out, Edit{List: e.List, Clear: e.Clear, Remove: e.Remove})
		}
	}
	return out
}

// accept records what the person has accepted that extends what agents may do.
func (o Options) accept(edits []Edit) error {
	widening := slices.DeleteFunc(slices.Clone(edits), func(e Edit) bool { return e.List == AskList || e.List == DenyList })
	if len(widening) == 0 {
		return nil
	}
	return EditFile(o.acceptedFile(), widening...)
}

// acceptedFile is the same whatever symbolic links lead to the project.
func (o Options) acceptedFile() string {
	project := o.Project
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	return o.Root.Accepted(project)
}

// accepted reads what the person has accepted of the project's settings. What
// cannot be read was not accepted.
func (m *merge) accepted() document {
	if m.Root == "" {
		return document{}
	}
	file := m.acceptedFile()
	source := Source{Scope: User, Path: file}
	text, _, err := fsx.ReadFile(fsx.OS, file, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return document{}
	case err != nil:
		m.warn(source, 0, "cannot be read: "+reason(err), lostFile)
		return document{}
	}
	p, bad := parse(text)
	if bad != nil {
		m.warn(source, bad.line, bad.text, lostFile)
		return document{}
	}
	return p.document
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/lease"
	"github.com/cadre-dev/cadre/transcript"
	"github.com/cadre-dev/cadre/tui"
)

// place is a state root that the verbs read.
type place struct {
	*cadre.State
	root layout.Root
	// foreign is another program's root: it is read, never changed.
	foreign bool
	warn    func(error) // reports damaged files
	// sessions is set in a place that holds a copy of a finished team: the place with the
	// sessions of that team. nil in every other place.
	sessions *place
}

// stateRoot is our state root.
func stateRoot() (layout.Root, error) {
	root, err := layout.Find(os.Getenv)
	if err != nil {
		return "", fmt.Errorf("find the state root: %w", err)
	}
	return root, nil
}

// workingFolder is the folder in which cadre was started.
func workingFolder() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working folder: %w", err)
	}
	return cwd, nil
}

// openPlaces opens our state root and, when it is another one and exists,
// ~/.claude. The caller closes them.
func openPlaces(warn func(error)) ([]place, error) {
	root, err := stateRoot()
	if err != nil {
		return nil, err
	}
	places := []place{{State: cadre.OpenState(root, warn), root: root, warn: warn}}
	home, err := os.UserHomeDir()
	if err != nil {
		return places, nil
	}
	other := layout.Root(filepath.Join(home, ".claude"))
	if info, err := os.Stat(string(other)); err == nil && info.IsDir() && !sameFolder(root, other) {
		places = append(places, place{State: cadre.OpenOthersState(other, warn), root: other, foreign: true, warn: warn})
	}
	return places, nil
}

// warnOfDamage names files that are damaged to whoever runs a verb; what can be shown
// without them is shown.
func warnOfDamage(err error) { _, _ = fmt.Fprintln(os.Stderr, "cadre: warning:", err) }

func sameFolder(a, b layout.Root) bool {
	x, errA := os.Stat(string(a))
	y, errB := os.Stat(string(b))
	return errA == nil && errB == nil && os.SameFile(x, y)
}

func closePlaces(places []place) error {
	var errs []error
	for _, p := range places {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// withPlaces runs one verb on the state roots.
func withPlaces(f func([]place) error) error {
	places, err := openPlaces(warnOfDamage)
	if err != nil {
		return err
	}
	return errors.Join(f(places), closePlaces(places))
}

// folders lists the names of the folders in dir, none when it is missing.
func folders(dir string) ([]string, error) {
	items, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, item := range items {
		if item.IsDir() && !strings.HasPrefix(item.Name(), ".") {
			names = append(names, item.Name())
		}
	}
	return names, err
}

// holder is the process that has a session open; nil when there is none.
func (p place) holder(ctx context.Context, ref transcript.Ref) (*lease.Holder, error) {
	h, ok, err := lease.Inspect(ctx, fsx.OS, p.root.Lease(ref.Project, ref.Session, ref.Agent))
	if err != nil || !ok {
		return nil, err
	}
	return &h, nil
}

// findSession finds a main session by its id or the beginning of it.
func (p place) findSession(ctx context.Context, id string) (transcript.Info, error) {
	infos, err := p.Transcripts().List(ctx, "")
	if err != nil {
		return transcript.Info{}, err
	}
	var found []transcript.Info
	for _, info := range infos {
		if info.Ref.Session == id {
			return info, nil
		}
		if id != "" && strings.HasPrefix(info.Ref.Session, id) { // an unset variable names nothing
			found = append(found, info)
		}
	}
	switch len(found) {
	case 0:
		return transcript.Info{}, transcript.ErrNotFound
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for i, info := range found {
		ids[i] = info.Ref.Session
	}
	return transcript.Info{}, usagef("%q is the beginning of %d sessions: %s", id, len(found), strings.Join(ids, ", "))
}

// mayRemove refuses what is not ours to remove, and asks the person unless yes
// is set.
func (p place) mayRemove(what string, yes bool) error {
	if p.foreign {
		return &exit{
			code: exitFailed, err: fmt.Errorf("%s is in %s, which belongs to another program", what, p.root),
			hint: fmt.Sprintf("To remove it all the same: CADRE_HOME=%s cadre …", p.root),
		}
	}
	return confirm(fmt.Sprintf("remove %s from %s", what, p.root), yes)
}

// table prints rows in columns.
func table(rows [][]string) error {
	return writeOut([]byte(strings.Join(columnLines(rows), "\n") + "\n"))
}

// fields prints what is known of one thing, a line for each name and value. One
// without a value is left out.
func fields(rows [][]string) error {
	return table(slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" }))
}

// columnLines sets rows in columns, a line each. What cells hold was written by
// models and other programs, so it is cleaned.
func columnLines(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], cells.Width(cleanCell(cell)))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = cleanCell(cell)
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-cells.Width(cell)+2))
			}
		}
		lines[n] = strings.TrimRight(line.String(), " ")
	}
	return lines
}

func cleanCell(cell string) string {
	return strings.Join(strings.Fields(tui.Clean(cell)), " ")
}

// shorten cuts text to so many columns.
func shorten(text string, columns int) string { return cells.Fit(cleanCell(text), columns) }

// byName sorts listings of several roots.
func byName[T any](list []T, name func(T) string) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
}

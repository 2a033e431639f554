package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

// records implements [roster.Records]: a folder per kind in the team's own, a file
// per record.
type records struct{ *files }

// maxRecord is the largest record that we read.
const maxRecord = 64 << 20

var (
	errNoRecordName = errors.New("the record's name is empty")
	errNoJSON       = errors.New("the record is not valid JSON")
)

func (r *records) Put(ctx context.Context, team, kind, name string, doc []byte) (err error) {
	defer wrap(&err, "keep %s record %q of team %q", kind, name, team)
	if err := checkRecord(team, kind, name); err != nil {
		return err
	}
	if !json.Valid(doc) {
		return errNoJSON
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.makeTeamFolder(team, kind); err != nil {
		return err
	}
	err = r.locked(ctx, team, kind, func(lock *dirlock.Lock) error {
		_, err := r.writePrivate(r.root.Record(team, kind, name), doc, lock)
		return err
	})
	return asNoTeam(err)
}

// locked calls change while it holds the lock of the records of a kind.
func (r *records) locked(ctx context.Context, team, kind string, change func(*dirlock.Lock) error) error {
	folder := r.root.TeamSide(team, kind)
	return r.lockedFolder(ctx, folder, r.sweepTemps(folder), change)
}

func (r *records) Get(_ context.Context, team, kind, name string) (doc []byte, err error) {
	defer wrap(&err, "get %s record %q of team %q", kind, name, team)
	if err := checkRecord(team, kind, name); err != nil {
		return nil, err
	}
	return r.read(r.root.Record(team, kind, name))
}

func (r *records) read(path string) ([]byte, error) {
	doc, _, err := fsx.ReadFile(r.fsys, path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, roster.ErrNoRecord
	}
	if err == nil && !json.Valid(doc) {
		err = &TornError{path, errNoJSON}
	}
	return doc, err
}

func (r *records) All(ctx context.Context, team, kind string) (docs [][]byte, err error) {
	defer wrap(&err, "list %s records of team %q", kind, team)
	if err := checkKind(team, kind); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	folder := r.root.TeamSide(team, kind)
	files, err := r.recordFiles(folder)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		doc, err := r.read(filepath.Join(folder, file+recordSuffix))
		if errors.Is(err, roster.ErrNoRecord) {
			continue // dropped meanwhile
		}
		if err != nil {
			r.warn(fmt.Errorf("list %s records of team %q: %w", kind, team, err))
			continue
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

const recordSuffix = ".json"

// recordFiles lists the files of a folder of records without their suffix, in
// the order of the records' names.
func (r *records) recordFiles(folder string) ([]string, error) {
	entries, err := r.readDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if file, ok := strings.CutSuffix(e.Name(), recordSuffix); ok && isShared(e.Name()) {
			files = append(files, file)
		}
	}
	slices.SortStableFunc(files, func(a, b string) int { return strings.Compare(layout.NameOf(a), layout.NameOf(b)) })
	return files, nil
}

func (r *records) Drop(ctx context.Context, team, kind, name string) (err error) {
	defer wrap(&err, "drop %s record %q of team %q", kind, name, team)
	if err := checkRecord(team, kind, name); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	path := r.root.Record(team, kind, name)
	exists, err := r.exists(path)
	if err != nil || !exists {
		return err
	}
	err = r.locked(ctx, team, kind, func(*dirlock.Lock) error { return r.removePrivate(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its team was removed just now
	}
	return err
}

func checkRecord(team, kind, name string) error {
	if name == "" {
		return errNoRecordName
	}
	return checkKind(team, kind)
}

// checkKind refuses kinds that would lead somewhere else.
func checkKind(team, kind string) error {
	if team == "" {
		return errNoName
	}
	if layout.FileName(kind) != kind || kind == "" {
		return fmt.Errorf("%q is not a kind of record", kind)
	}
	return nil
}

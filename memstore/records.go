package memstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
)

type records struct {
	exists func(team string) bool // whether there is a team of this name
	mu     sync.Mutex
	kinds  map[string]map[string][]byte // by the path of the kind's folder, then by name
}

var (
	errNoRecordName = errors.New("the record's name is empty")
	errNoJSON       = errors.New("the record is not valid JSON")
)

func (r *records) Put(ctx context.Context, name, kind, record string, doc []byte) error {
	folder, err := recordFolder(ctx, name, kind)
	switch {
	case err != nil:
	case record == "":
		err = errNoRecordName
	case !json.Valid(doc):
		err = errNoJSON
	case !r.exists(name):
		err = roster.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("keep %s record %q of team %q: %w", kind, record, name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kinds == nil {
		r.kinds = make(map[string]map[string][]byte)
	}
	if r.kinds[folder] == nil {
		r.kinds[folder] = make(map[string][]byte)
	}
	r.kinds[folder][record] = slices.Clone(doc)
	return nil
}

func (r *records) Get(ctx context.Context, name, kind, record string) ([]byte, error) {
	folder, err := recordFolder(ctx, name, kind)
	if err == nil && record == "" {
		err = errNoRecordName
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	doc, ok := r.kinds[folder][record]
	if err == nil && !ok {
		err = roster.ErrNoRecord
	}
	if err != nil {
		return nil, fmt.Errorf("get %s record %q of team %q: %w", kind, record, name, err)
	}
	return slices.Clone(doc), nil
}

func (r *records) All(ctx context.Context, name, kind string) ([][]byte, error) {
	folder, err := recordFolder(ctx, name, kind)
	if err != nil {
		return nil, fmt.Errorf("list %s records of team %q: %w", kind, name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var docs [][]byte
	for _, record := range slices.Sorted(maps.Keys(r.kinds[folder])) {
		docs = append(docs, slices.Clone(r.kinds[folder][record]))
	}
	return docs, nil
}

func (r *records) Drop(ctx context.Context, name, kind, record string) error {
	folder, err := recordFolder(ctx, name, kind)
	if err == nil && record == "" {
		err = errNoRecordName
	}
	if err != nil {
		return fmt.Errorf("drop %s record %q of team %q: %w", kind, record, name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kinds[folder], record)
	return nil
}

func (r *records) removeTeam(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	removeBelow(r.kinds, root.TeamDir(name))
}

// recordFolder is the path that the folder of a kind would have.
func recordFolder(ctx context.Context, name, kind string) (string, error) {
	if name == "" {
		return "", errNoName
	}
	if layout.FileName(kind) != kind || kind == "" {
		return "", fmt.Errorf("%q is not a kind of record", kind)
	}
	return root.TeamSide(name, kind), context.Cause(ctx)
}

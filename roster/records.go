package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// GetRecord decodes a document into v. Errors: [ErrNoRecord] when none is kept.
func GetRecord(ctx context.Context, records Records, team, kind, name string, v any) error {
	doc, err := records.Get(ctx, team, kind, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(doc, v); err != nil {
		return fmt.Errorf("decode record %s of %s: %w", kind, name, err)
	}
	return nil
}

// PutRecord keeps v as a document in the place of an older one.
func PutRecord(ctx context.Context, records Records, team, kind, name string, v any) error {
	doc, err := jsonx.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode record %s of %s: %w", kind, name, err)
	}
	return records.Put(ctx, team, kind, name, doc)
}

// AllRecords decodes the documents of a kind, and leaves out what is not of type T.
func AllRecords[T any](ctx context.Context, records Records, team, kind string) ([]T, error) {
	docs, err := records.All(ctx, team, kind)
	var all []T
	for _, doc := range docs {
		var one T
		if json.Unmarshal(doc, &one) == nil {
			all = append(all, one)
		}
	}
	return all, err
}

// ErrNoRecord says that a record is not kept.
var ErrNoRecord = errors.New("no such record")

// Records keeps what is ours alone about a team, beside the files that other
// programs share: small JSON documents, each with a kind and a name. They go when
// the team is removed. Implementations pass the suite in internal/storetest. All
// methods may be called from any goroutine and any process at once.
type Records interface {
	// Put keeps a document in the place of an older one. When it returns nil the
	// document survives the kill of any process; a reader sees the old or the
	// new one. name may be any agent's name.
	Put(ctx context.Context, team, kind, name string, doc []byte) error
	// Get returns a document, or [ErrNoRecord].
	Get(ctx context.Context, team, kind, name string) ([]byte, error)
	// All returns the documents of a kind, ordered by name. Those that cannot be
	// read are left out.
	All(ctx context.Context, team, kind string) ([][]byte, error)
	// Drop removes a document; a missing one is no error.
	Drop(ctx context.Context, team, kind, name string) error
}

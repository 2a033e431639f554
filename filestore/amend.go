package filestore

import (
	"bytes"
	"slices"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// amend sets key of doc to v, unless it says so already: the bytes of what does
// not change are kept. An absent key stays absent while v is the zero value,
// unless always is set. A value of another type counts as the zero value, so it
// stays too.
func amend[T any](doc *jsonx.Object, key string, v T, always bool) {
	var current T
	if _, err := doc.Get(key, &current); err != nil {
		var zero T
		current = zero
	}
	same := bytes.Equal(jsonx.MustMarshal(current), jsonx.MustMarshal(v))
	if same && (doc.Has(key) || !always) {
		return
	}
	doc.Set(key, v)
}

// amendExtra makes the keys of doc that are not known those of extra.
func amendExtra(doc *jsonx.Object, known []string, extra jsonx.Object) {
	for _, key := range doc.Keys() {
		if !slices.Contains(known, key) && !extra.Has(key) {
			doc.Delete(key)
		}
	}
	for _, key := range extra.Keys() {
		if slices.Contains(known, key) && doc.Has(key) {
			continue // a known key with a value of the wrong type
		}
		if !bytes.Equal(doc.Raw(key), extra.Raw(key)) {
			doc.Set(key, extra.Raw(key))
		}
	}
}

// extraOf returns the fields of doc that are not known.
func extraOf(doc *jsonx.Object, known []string) jsonx.Object {
	var extra jsonx.Object
	for _, key := range doc.Keys() {
		if !slices.Contains(known, key) {
			extra.Set(key, doc.Raw(key))
		}
	}
	return extra
}

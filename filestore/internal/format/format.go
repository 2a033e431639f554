// Package format reads and writes the messages, rosters and tasks of Claude Code's files
// as that program spells them. Fields that we do not know, and known ones with a value of
// another type, are kept as they are.
package format

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// field is a field that we know, and the pointer to its value.
type field struct {
	key    string
	value  any
	always bool // it is written to a new object even when it has the zero value
}

// fields are the known fields of an object, in the order in which they are written.
type fields []field

func (fs fields) keys() []string {
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.key
	}
	return keys
}

// decode reads the values. It returns the fields that are not known, and those whose
// value does not fit.
func (fs fields) decode(doc *jsonx.Object, known []string) jsonx.Object {
	var extra jsonx.Object
	for _, key := range doc.Keys() {
		if !slices.Contains(known, key) {
			extra.Set(key, doc.Raw(key))
		}
	}
	for _, f := range fs {
		if _, err := doc.Get(f.key, f.value); err != nil {
			extra.Set(f.key, doc.Raw(f.key))
		}
	}
	return extra
}

// encode writes the values, and extra, over what doc says.
func (fs fields) encode(doc *jsonx.Object, known []string, extra jsonx.Object) {
	for _, f := range fs {
		f.encode(doc)
	}
	for _, key := range doc.Keys() {
		if !slices.Contains(known, key) && !extra.Has(key) {
			doc.Delete(key)
		}
	}
	for _, key := range extra.Keys() {
		if slices.Contains(known, key) && doc.Has(key) {
			continue // a known key with a value of another type
		}
		if !bytes.Equal(doc.Raw(key), extra.Raw(key)) {
			doc.Set(key, extra.Raw(key))
		}
	}
}

// encode sets the field of doc, unless it has that value already: the bytes of what does
// not change stay as they are. An absent field stays absent while the value is zero,
// unless always is set. A value of another type counts as zero, so it stays too.
func (f field) encode(doc *jsonx.Object) {
	value := reflect.ValueOf(f.value).Elem()
	current := reflect.New(value.Type())
	if _, err := doc.Get(f.key, current.Interface()); err != nil {
		current = reflect.New(value.Type())
	}
	same := bytes.Equal(jsonx.MustMarshal(current.Elem().Interface()), jsonx.MustMarshal(value.Interface()))
	if !same || f.always && !doc.Has(f.key) {
		doc.Set(f.key, value.Interface())
	}
}

// orEmpty makes a list without elements one that is written as [], not null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

package filestore

import (
	"bytes"
	"slices"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

// messageKeys is the order of an inbox entry (facts: claude-code §5.1).
var messageKeys = []string{"from", "text", "summary", "timestamp", "color", "read"}

// decodeMessage reads an entry of any shape: a known field of another type is
// left out, and stands in Extra.
func decodeMessage(doc *jsonx.Object) mailbox.Message {
	m := mailbox.Message{Extra: extraOf(doc, messageKeys)}
	take(doc, &m.Extra, "from", &m.From)
	take(doc, &m.Extra, "text", &m.Text)
	take(doc, &m.Extra, "summary", &m.Summary)
	take(doc, &m.Extra, "timestamp", &m.Timestamp)
	take(doc, &m.Extra, "color", &m.Color)
	take(doc, &m.Extra, "read", &m.Read)
	return m
}

// take decodes the field key into v, or puts what does not fit into extra.
func take(doc, extra *jsonx.Object, key string, v any) {
	if _, err := doc.Get(key, v); err != nil {
		extra.Set(key, doc.Raw(key))
	}
}

// encodeMessage writes a new, unread entry.
func encodeMessage(m mailbox.Message) jsonx.Object {
	var doc jsonx.Object
	doc.Set("from", m.From)
	doc.Set("text", m.Text)
	amend(&doc, "summary", m.Summary, false)
	doc.Set("timestamp", m.Timestamp)
	amend(&doc, "color", m.Color, false)
	doc.Set("read", false)
	amendExtra(&doc, messageKeys, m.Extra)
	return doc
}

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

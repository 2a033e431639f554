package filestore

import (
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

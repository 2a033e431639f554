package format

import (
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

// messageFields are those of an entry in an inbox (facts: claude-code §5.1).
func messageFields(m *mailbox.Message) fields {
	return fields{
		{"from", &m.From, true},
		{"text", &m.Text, true},
		{"summary", &m.Summary, false},
		{"timestamp", &m.Timestamp, true},
		{"color", &m.Color, false},
		{"read", &m.Read, true},
	}
}

var messageKeys = messageFields(new(mailbox.Message)).keys()

// DecodeMessage reads an entry of any shape.
func DecodeMessage(doc *jsonx.Object) mailbox.Message {
	var m mailbox.Message
	m.Extra = messageFields(&m).decode(doc, messageKeys)
	return m
}

// EncodeMessage writes a new, unread entry.
func EncodeMessage(m mailbox.Message) jsonx.Object {
	var doc jsonx.Object
	m.Read = false
	messageFields(&m).encode(&doc, messageKeys, m.Extra)
	return doc
}

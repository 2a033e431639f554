package tool

import (
	"encoding/json"
	"sync"
)

// Schema is the JSON schema of a tool's input. Its text is sent to models byte
// for byte; it is parsed when the first call has to be checked.
type Schema struct {
	text   json.RawMessage
	parsed func() (*parsedSchema, error)
}

// NewSchema makes a schema from its JSON text, which must be an object schema.
// The text is compacted by the caller; it is not checked here (a test checks
// every tool's).
func NewSchema(text string) *Schema {
	s := &Schema{text: json.RawMessage(text)}
	s.parsed = sync.OnceValues(func() (*parsedSchema, error) { return parseSchema(s.text) })
	return s
}

// JSON is the text of the schema. The caller must not change it.
func (s *Schema) JSON() json.RawMessage { return s.text }

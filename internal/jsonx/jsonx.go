// Package jsonx writes JSON the way the programs we share files with do: no
// HTML escaping, no trailing newline, object keys in the order they were
// first seen.
package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal encodes v compactly, without escaping <, > and &, and without the
// newline that [json.Encoder] appends.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// MarshalIndent is [Marshal] with two spaces of indentation: the form of
// config, inbox and task files (facts: claude-code §2.1, §3.1, §5.1).
func MarshalIndent(v any) ([]byte, error) {
	flat, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	Indent(&buf, flat, "", "  ")
	return buf.Bytes(), nil
}

// MustMarshal is [Marshal] for values that cannot fail: structs of strings,
// numbers and raw messages that were valid when they were read.
func MustMarshal(v any) json.RawMessage {
	data, err := Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("jsonx: marshal %T: %v", v, err))
	}
	return data
}

package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/provider"
)

const hexDigits = "0123456789abcdef"

// plain marks the bytes that stand for themselves in a JSON string.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD, since servers refuse a body that has them.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = appendEscape(append(dst, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\ufffd"...)
			start = i + 1
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// ToolInput makes the input of a tool call from what a model wrote as its
// arguments: always a JSON object in compact form. Nothing and null are the
// empty object, a string that holds an object is that object, and anything else
// is kept for the model to see under [provider.InvalidJSON].
func ToolInput(written []byte) json.RawMessage {
	trimmed := bytes.TrimSpace(written)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}")
	}
	if object, ok := compactObject(trimmed); ok {
		return object
	}
	var inner string
	if trimmed[0] == '"' && json.Unmarshal(trimmed, &inner) == nil {
		if object, ok := compactObject(bytes.TrimSpace([]byte(inner))); ok {
			return object
		}
	}
	return jsonx.MustMarshal(map[string]string{provider.InvalidJSON: string(written)})
}

func compactObject(data []byte) (json.RawMessage, bool) {
	if len(data) == 0 || data[0] != '{' {
		return nil, false
	}
	var buf bytes.Buffer
	if json.Compact(&buf, data) != nil {
		return nil, false
	}
	return bytes.ToValidUTF8(buf.Bytes(), []byte("\ufffd")), true
}

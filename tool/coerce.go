package tool

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// coerce converts a string to the type that was asked for, when that is unambiguous.
// Anything else is returned unchanged.
func coerce(p *parsedSchema, v json.RawMessage) json.RawMessage {
	if kindOf(v) != "string" {
		return v
	}
	text := strings.TrimSpace(unquote(v))
	if lower := strings.ToLower(text); slices.Contains(p.Type, "boolean") && (lower == "true" || lower == "false") {
		return json.RawMessage(lower)
	}
	inner := json.RawMessage(text)
	if text == "" || !json.Valid(inner) {
		return v
	}
	if kind := kindOf(inner); (kind == "number" || kind == "array" || kind == "object") && p.accepts(kind) {
		return inner
	}
	return v
}

func unquote(v json.RawMessage) string {
	var text string
	_ = json.Unmarshal(v, &text) // a valid JSON string
	return text
}

// fits reports whether a number is of one of the types asked for: any number, or an
// integer.
func fits(p *parsedSchema, v json.RawMessage) bool {
	if len(p.Type) == 0 || slices.Contains(p.Type, "number") {
		return true
	}
	n, err := strconv.ParseFloat(string(v), 64)
	return err == nil && n == math.Trunc(n)
}

// whole writes an integer without fraction and exponent, as decoders of
// integers need it.
func whole(p *parsedSchema, v json.RawMessage) json.RawMessage {
	if !slices.Contains(p.Type, "integer") || !bytes.ContainsAny(v, ".eE") {
		return v
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) >= 1<<53 {
		return v
	}
	return strconv.AppendInt(nil, int64(n), 10)
}

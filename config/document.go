package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// UnmarshalJSON implements [json.Unmarshaler].
func (s *scalar) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(s))
	case '{', '[', 'n':
		return fmt.Errorf("the value of an environment variable is a string, not %s", data)
	}
	*s = scalar(data)
	return nil
}

// parsed is a settings file that could be read.
type parsed struct {
	document
	raw  jsonx.Object
	text []byte
	tree hujson.Value
}

// lineError is a mistake in a file, and its line.
type lineError struct {
	line int
	text string
}

// parse reads JSON with comments and trailing commas. With a mistake, nothing of the
// file counts.
func parse(text []byte) (*parsed, *lineError) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if nesting(text) > maxNesting {
		return nil, &lineError{0, fmt.Sprintf("more than %d brackets open at once", maxNesting)}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, &lineError{1, "the file is empty; write {} for no settings"}
	}
	tree, err := hujson.Parse(text)
	if err != nil {
		return nil, syntaxError(err)
	}
	plain := tree.Clone()
	plain.Standardize() // keeps every offset and line
	standard := plain.Pack()
	p := &parsed{text: text, tree: tree}
	if err := json.Unmarshal(standard, &p.document); err != nil {
		return nil, p.typeError(standard, err)
	}
	if err := json.Unmarshal(standard, &p.raw); err != nil {
		return nil, &lineError{1, "want a JSON object"}
	}
	return p, nil
}

// syntaxError finds line and column in the parser's message.
func syntaxError(err error) *lineError {
	text := strings.TrimPrefix(err.Error(), "hujson: ")
	var line, column int
	if n, _ := fmt.Sscanf(text, "line %d, column %d:", &line, &column); n == 2 {
		_, text, _ = strings.Cut(text, ": ")
		text = fmt.Sprintf("column %d: %s", column, text)
	}
	return &lineError{line, "not valid JSON: " + text}
}

func (p *parsed) typeError(text []byte, err error) *lineError {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) { // of a scalar
		return &lineError{p.line("/env"), err.Error()}
	}
	field := wrong.Field
	if field == "" {
		return &lineError{1, "want a JSON object, found " + wrong.Value}
	}
	kind := map[string]string{"string": "a string", "bool": "true or false", "int64": "a whole number"}[wrong.Type.String()]
	if kind == "" {
		kind = map[bool]string{true: "a list", false: "an object"}[wrong.Type.Kind().String() == "slice"]
	}
	return &lineError{lineAt(text, int(wrong.Offset)), fmt.Sprintf("%s must be %s, found %s", field, kind, wrong.Value)}
}

func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), len(text))], []byte("\n"))
}

// line is the line of the value at a JSON pointer.
func (p *parsed) line(pointer string) int {
	if v := p.tree.Find(pointer); v != nil {
		return lineAt(p.text, v.StartOffset)
	}
	return 0
}

// maxNesting bounds the stack that a parser may use up.
const maxNesting = 1000

// nesting is at least as deep as text nests.
func nesting(text []byte) int {
	depth, deepest := 0, 0
	for _, c := range text {
		switch c {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

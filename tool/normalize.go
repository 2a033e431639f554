package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// Normalize checks the input of a call of the named tool and returns it in the
// form that the tool expects. Unambiguous mistakes of models are
// corrected: a number, boolean, list or object written as a string, null for an
// optional parameter, a missing required parameter that has a default. Input without
// these is returned unchanged, byte for byte. An error is an [*InputError], or about the schema itself.
func (s *Schema) Normalize(name string, input json.RawMessage) (json.RawMessage, error) {
	schema, err := s.parsed()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	trimmed := bytes.TrimSpace(input)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		trimmed = json.RawMessage("{}")
		input = trimmed
	}
	if !json.Valid(trimmed) {
		return nil, &InputError{Tool: name, bare: unreadable(string(trimmed))}
	}
	if text, broken := brokenInput(schema, trimmed); broken {
		return nil, &InputError{Tool: name, bare: unreadable(text)}
	}
	c := checker{coerce: true}
	out := c.check(schema, trimmed)
	if c.issues != nil {
		return nil, &InputError{Tool: name, issues: c.issues}
	}
	if bytes.Equal(out, trimmed) {
		return input, nil
	}
	return out, nil
}

// invalidJSON is provider.InvalidJSON: the key under which a reply carries
// input that was not a JSON object. The layers keep this room from importing it.
const invalidJSON = "invalid_json"

// brokenInput returns the text of input that the provider had found not to be JSON.
func brokenInput(schema *parsedSchema, input json.RawMessage) (string, bool) {
	if schema.Properties[invalidJSON] != nil || !bytes.Contains(input, []byte(invalidJSON)) {
		return "", false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil || len(fields) != 1 {
		return "", false
	}
	var text string
	if raw, ok := fields[invalidJSON]; !ok || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, true
}

// unreadable explains input that is not JSON, showing its start and end.
func unreadable(text string) string {
	const head, tail = 200, 100
	shown := strings.ToValidUTF8(text, "\uFFFD")
	advice := ""
	if runes := []rune(shown); len(runes) > head+tail {
		shown = string(runes[:head]) + " […] " + string(runes[len(runes)-tail:])
		advice = " If it was cut off for its length, split the work into several smaller calls."
	}
	return "The input is not a valid JSON object: `" + shown + "`\nNothing was run. Send the call again with complete JSON." + advice
}

// checker walks a value beside its schema, collecting what does not fit.
type checker struct {
	coerce bool
	path   []any
	issues []issue
}

func (c *checker) report(is issue) {
	is.Path = append([]any{}, c.path...)
	c.issues = append(c.issues, is)
}

// at checks the part of the value that step leads to.
func (c *checker) at(step any, p *parsedSchema, v json.RawMessage) json.RawMessage {
	c.path = append(c.path, step)
	out := c.check(p, v)
	c.path = c.path[:len(c.path)-1]
	return out
}

// check returns v as it should be: v itself when nothing had to change.
func (c *checker) check(p *parsedSchema, v json.RawMessage) json.RawMessage {
	if p == nil {
		return v
	}
	if p.nothing {
		c.report(typeIssue("never", kindOf(v)))
		return v
	}
	if !p.accepts(kindOf(v)) && c.coerce {
		v = coerce(p, v)
	}
	kind := kindOf(v)
	if !p.accepts(kind) || kind == "number" && !fits(p, v) {
		c.report(typeIssue(strings.Join(p.Type, "|"), kind))
		return v
	}
	if branches := p.branches(); branches != nil {
		v = c.union(branches, v)
	}
	c.fixed(p, v)
	switch kindOf(v) {
	case "object":
		return c.object(p, v)
	case "array":
		return c.array(p, v)
	case "string":
		c.text(p, v)
	case "number":
		c.number(p, v)
		return whole(p, v)
	}
	return v
}

// union uses the first branch that fits as it is, else the first that fits after
// coercion.
func (c *checker) union(branches []*parsedSchema, v json.RawMessage) json.RawMessage {
	var failed [][]issue
	for _, coerce := range []bool{false, true} {
		if coerce && !c.coerce {
			break
		}
		failed = failed[:0]
		for _, branch := range branches {
			try := checker{coerce: coerce}
			out := try.check(branch, v)
			if try.issues == nil {
				return out
			}
			failed = append(failed, try.issues)
		}
	}
	c.report(issue{Code: codeUnion, Errors: failed, Message: "Invalid input"})
	return v
}

// fixed checks enum and const.
func (c *checker) fixed(p *parsedSchema, v json.RawMessage) {
	values := p.Enum
	if p.Const != nil {
		var only any
		_ = json.Unmarshal(p.Const, &only) // valid: it was part of the schema's text
		values = []any{only}
	}
	if values == nil {
		return
	}
	got := canonical(v)
	for _, want := range values {
		if string(jsonx.MustMarshal(want)) == got {
			return
		}
	}
	c.report(valueIssue(values))
}

// canonical is v with sorted keys, no space and one spelling per string and
// number, so that equal values are equal texts.
func canonical(v json.RawMessage) string {
	var value any
	if json.Unmarshal(v, &value) != nil { // a number beyond float64
		return string(v)
	}
	return string(jsonx.MustMarshal(value))
}

func (c *checker) object(p *parsedSchema, v json.RawMessage) json.RawMessage {
	if p.Properties == nil && p.Additional == nil && p.Required == nil {
		return v
	}
	var fields jsonx.Object
	if err := json.Unmarshal(v, &fields); err != nil {
		c.report(typeIssue("object", "invalid JSON"))
		return v
	}
	changed := false
	for _, key := range fields.Keys() {
		raw := fields.Raw(key)
		prop, known := p.Properties[key]
		switch {
		case !known && p.Additional != nil && p.Additional.nothing:
			c.report(keyIssue(key))
			continue
		case !known:
			prop = p.Additional
		case c.coerce && kindOf(raw) == "null" && !p.requires(key) && !prop.allowsNull():
			fields.Delete(key)
			changed = true
			continue
		}
		if out := c.at(key, prop, raw); !bytes.Equal(out, raw) {
			fields.Set(key, out)
			changed = true
		}
	}
	for _, key := range p.Required {
		if fields.Has(key) {
			continue
		}
		prop := p.Properties[key]
		if prop != nil && prop.Default != nil && c.coerce {
			fields.Set(key, prop.Default)
			changed = true
			continue
		}
		c.missing(key, prop)
	}
	if !changed {
		return v
	}
	return jsonx.MustMarshal(fields)
}

func (c *checker) missing(key string, prop *parsedSchema) {
	want := "nonoptional"
	if prop != nil && len(prop.Type) > 0 {
		want = strings.Join(prop.Type, "|")
	}
	c.path = append(c.path, key)
	c.report(typeIssue(want, absent))
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) array(p *parsedSchema, v json.RawMessage) json.RawMessage {
	if p.Items == nil && p.MinItems == nil && p.MaxItems == nil {
		return v
	}
	var items []json.RawMessage
	if err := json.Unmarshal(v, &items); err != nil {
		c.report(typeIssue("array", "invalid JSON"))
		return v
	}
	c.count("array", "items", len(items), p.MinItems, p.MaxItems)
	changed := false
	for i, raw := range items {
		items[i] = c.at(i, p.Items, raw)
		changed = changed || !bytes.Equal(items[i], raw)
	}
	if !changed {
		return v
	}
	return jsonx.MustMarshal(items)
}

func (c *checker) text(p *parsedSchema, v json.RawMessage) {
	if p.MinLength == nil && p.MaxLength == nil {
		return
	}
	c.count("string", "characters", utf8.RuneCountInString(unquote(v)), p.MinLength, p.MaxLength)
}

func (c *checker) count(origin, counted string, n int, least, most *float64) {
	if least != nil && float64(n) < *least {
		c.report(limitIssue(codeSmall, origin, counted, *least, true))
	}
	if most != nil && float64(n) > *most {
		c.report(limitIssue(codeBig, origin, counted, *most, true))
	}
}

func (c *checker) number(p *parsedSchema, v json.RawMessage) {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil { // beyond float64: no tool can use it
		c.report(typeIssue("number", "number out of range"))
		return
	}
	if p.Minimum != nil && n < *p.Minimum {
		c.report(limitIssue(codeSmall, "number", "", *p.Minimum, true))
	}
	if p.ExclusiveMinimum != nil && n <= *p.ExclusiveMinimum {
		c.report(limitIssue(codeSmall, "number", "", *p.ExclusiveMinimum, false))
	}
	if p.Maximum != nil && n > *p.Maximum {
		c.report(limitIssue(codeBig, "number", "", *p.Maximum, true))
	}
	if p.ExclusiveMaximum != nil && n >= *p.ExclusiveMaximum {
		c.report(limitIssue(codeBig, "number", "", *p.ExclusiveMaximum, false))
	}
}

// kindOf is the JSON type of a valid value, in the words of the schema.
func kindOf(v json.RawMessage) string {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return absent
	}
	switch v[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

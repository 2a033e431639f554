package tool

import (
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// InputError says what is wrong with the input of a call. Its text is for the
// model; wrap it with [UseError]. The texts are those of facts: claude-code §1.
type InputError struct {
	Tool   string
	issues []issue
	bare   string // instead of issues
}

// Error is the text for the model, with its prefix.
func (e *InputError) Error() string { return "InputValidationError: " + e.detail() }

func (e *InputError) detail() string {
	if e.bare != "" {
		return e.Tool + " failed due to the following issue:\n" + e.bare
	}
	lines := e.lines()
	if lines == nil {
		return e.list()
	}
	noun := "issue"
	if len(lines) > 1 {
		noun = "issues"
	}
	return fmt.Sprintf("%s failed due to the following %s:\n%s", e.Tool, noun, strings.Join(lines, "\n"))
}

// lines describes each issue in a sentence: first missing parameters, then unexpected
// ones, then wrong types, then the rest. It is nil when there is only the rest.
func (e *InputError) lines() []string {
	var missing, unexpected, mismatched, rest []string
	for _, is := range e.issues {
		name := is.name()
		switch {
		case is.Code == codeType && is.received == absent:
			missing = append(missing, fmt.Sprintf("The required parameter `%s` is missing", name))
		case is.Code == codeKeys:
			unexpected = append(unexpected, fmt.Sprintf("An unexpected parameter `%s` was provided", name))
		case is.Code == codeType:
			mismatched = append(mismatched, fmt.Sprintf(
				"The parameter `%s` type is expected as `%s` but provided as `%s`", name, is.Expected, is.received))
		default:
			rest = append(rest, fmt.Sprintf("The parameter `%s` is not valid: %s", name, is.Message))
		}
	}
	plain := append(append(missing, unexpected...), mismatched...)
	if len(plain) == 0 {
		return nil
	}
	return append(plain, rest...)
}

// list shows the issues as an indented JSON list, the form of those that have no
// sentence of their own.
func (e *InputError) list() string {
	text, err := jsonx.MarshalIndent(e.issues)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// issue is one thing that does not fit. Its JSON form, with the order of its
// keys, is that of facts: claude-code §1 (golden t1 shows all of it in parts).
type issue struct {
	Expected  string    `json:"expected,omitempty"`
	Origin    string    `json:"origin,omitempty"`
	Code      issueCode `json:"code"`
	Minimum   *float64  `json:"minimum,omitempty"`
	Maximum   *float64  `json:"maximum,omitempty"`
	Inclusive *bool     `json:"inclusive,omitempty"`
	Values    []any     `json:"values,omitempty"`
	Errors    [][]issue `json:"errors,omitempty"`
	Keys      []string  `json:"keys,omitempty"`
	Path      []any     `json:"path"` // keys and positions; never nil
	Message   string    `json:"message"`

	received string // the type that came, for codeType
}

type issueCode string

const (
	codeType  issueCode = "invalid_type"
	codeKeys  issueCode = "unrecognized_keys"
	codeValue issueCode = "invalid_value"
	codeUnion issueCode = "invalid_union"
	codeSmall issueCode = "too_small"
	codeBig   issueCode = "too_big"
)

// absent is the received type of a parameter that is not there.
const absent = "undefined"

// name is the parameter as a model would write it: questions[0].header.
func (is issue) name() string {
	var b strings.Builder
	for _, step := range is.Path {
		writeStep(&b, step)
	}
	for _, key := range is.Keys { // one per issue
		writeStep(&b, key)
	}
	if b.Len() == 0 {
		return "input"
	}
	return b.String()
}

func writeStep(b *strings.Builder, step any) {
	switch step := step.(type) {
	case int:
		fmt.Fprintf(b, "[%d]", step)
	case string:
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
}

func typeIssue(expected, received string) issue {
	return issue{
		Code: codeType, Expected: expected, received: received,
		Message: fmt.Sprintf("Invalid input: expected %s, received %s", expected, received),
	}
}

func keyIssue(key string) issue {
	return issue{Code: codeKeys, Keys: []string{key}, Message: fmt.Sprintf("Unrecognized key: %q", key)}
}

func valueIssue(values []any) issue {
	is := issue{Code: codeValue, Values: values}
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = string(jsonx.MustMarshal(v))
	}
	if len(values) == 1 {
		is.Message = "Invalid input: expected " + shown[0]
	} else {
		is.Message = "Invalid option: expected one of " + strings.Join(shown, "|")
	}
	return is
}

// limitIssue is about a limit that was crossed: by a number itself, or by the
// count of characters or items.
func limitIssue(code issueCode, origin, counted string, limit float64, inclusive bool) issue {
	is := issue{Code: code, Origin: origin, Inclusive: &inclusive}
	word, sign := "Too small", ">"
	is.Minimum = &limit
	if code == codeBig {
		word, sign = "Too big", "<"
		is.Minimum, is.Maximum = nil, &limit
	}
	if inclusive {
		sign += "="
	}
	verb := "to be "
	if counted != "" {
		verb, counted = "to have ", " "+counted
	}
	is.Message = fmt.Sprintf("%s: expected %s %s%s%s%s", word, origin, verb, sign, string(jsonx.MustMarshal(limit)), counted)
	return is
}

package tui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cleaner removes control characters and escape sequences from text that a
// model, a tool or another program wrote, so that nothing in it can move the
// cursor, change the title, or hide a part of a line. Text may come in pieces:
// a sequence that is split between two is still found. The zero value is ready;
// one goroutine at a time may use it.
type Cleaner struct {
	state cleanState
}

type cleanState int

const (
	plain    cleanState = iota
	escape              // after ESC
	sequence            // in ESC [ …, which a letter or @[\]^_`{|}~ ends
	str                 // in a string (title, hyperlink, …), which BEL or ST ends
	strEnd              // after ESC in such a string
	charset             // after ESC ( and the like: one more character
)

// Clean returns the next piece of text without what must not reach a terminal.
// Newlines and tabs stay.
func (c *Cleaner) Clean(text string) string {
	if c.state == plain && isClean(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if c.keeps(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Clean cleans a complete text.
func Clean(text string) string {
	var c Cleaner
	return c.Clean(text)
}

func isClean(text string) bool {
	for _, r := range text {
		if isControl(r) || isInvisible(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// keeps reports whether the next character is shown.
func (c *Cleaner) keeps(r rune) bool {
	switch c.state {
	case escape:
		c.state = afterEscape(r)
		return false
	case sequence:
		if r >= 0x40 && r <= 0x7e || r == '\n' {
			c.state = plain
		}
		return r == '\n'
	case str:
		switch r {
		case 0x07, 0x9c:
			c.state = plain
		case 0x1b:
			c.state = strEnd
		case '\n': // an unfinished string must not swallow the rest of the text
			c.state = plain
			return true
		}
		return false
	case strEnd:
		c.state = plain
		return false
	case charset:
		c.state = plain
		return false
	}
	if start, ok := sequenceStart[r]; ok {
		c.state = start
		return false
	}
	return !isControl(r) && !isInvisible(r)
}

// sequenceStart are the characters that begin a sequence, in seven and in eight
// bits (ECMA-48 §5).
var sequenceStart = map[rune]cleanState{
	0x1b: escape, 0x9b: sequence, 0x90: str, 0x98: str, 0x9d: str, 0x9e: str, 0x9f: str,
}

func afterEscape(r rune) cleanState {
	switch r {
	case '[':
		return sequence
	case ']', 'P', 'X', '^', '_':
		return str
	case '(', ')', '*', '+', '-', '.', '/', '#', '%', ' ':
		return charset
	}
	return plain
}

func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
}

// isInvisible reports characters that change what is seen without being seen:
// directions of writing, and tags.
func isInvisible(r rune) bool {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r >= 0xe0000 && r <= 0xe007f, r == 0x200b, r == 0xfeff, r == 0x2028, r == 0x2029:
		return true
	}
	return false
}

// Visible spells out what [Clean] would drop. Questions use it: what a person
// approves must be what runs.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case isControl(r), isInvisible(r), unicode.Is(unicode.Co, r):
			if r < 0x100 {
				fmt.Fprintf(&b, `\x%02x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Package oneline shortens text of any origin to one line that is safe to show on a
// terminal.
package oneline

import (
	"strings"
	"unicode"

	"github.com/cadre-dev/cadre/internal/lazy"
)

// length is the most characters of a preview.
const length = 100

// Of shortens text to a line of 100 characters that a terminal shows harmlessly.
func Of(text string) string { return Within(length, text) }

// Within does so with another number of characters.
func Within(length int, text string) string {
	if len(text) > 8*length {
		text = text[:8*length]
	}
	text = colors().ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case Invisible(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > length {
		return string(line[:length-1]) + "…"
	}
	return string(line)
}

// colors are the sequences of colours and the like (ECMA-48 §5.4). The escape
// character alone would leave its arguments behind.
var colors = lazy.Regexp("\x1b\\[[0-?]*[ -/]*[@-~]")

// Invisible reports runes that break a line, hide, or turn the direction.
func Invisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector)
}

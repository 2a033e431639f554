package demo

import (
	"strings"

	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/tui"
)

// The styles of a span (ECMA-48 §8.3.117).
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// agentColors are the colours of a team's roster (facts: claude-code §4.1).
var agentColors = map[string]string{
	"red": "31", "green": "32", "yellow": "33", "blue": "34", "purple": "35", "cyan": "36",
	"orange": "38;5;208", "pink": "38;5;205",
}

// span is a piece of a line in one style. Its text is clean.
type span struct{ style, text string }

// line is one line of output.
type line []span

// width is the width of the line in columns.
func (l line) width() int {
	n := 0
	for _, s := range l {
		n += cells.Width(s.text)
	}
	return n
}

// fit cuts the line to a number of columns, with an ellipsis where it was cut;
// 0 is no limit.
func (l line) fit(columns int) line {
	if columns <= 0 || l.width() <= columns {
		return l
	}
	left := columns - 1 // for the ellipsis
	var out line
	for _, s := range l {
		head := cells.Cut(s.text, left)
		left -= cells.Width(head)
		out = append(out, span{s.style, head})
		if len(head) < len(s.text) {
			break
		}
	}
	return append(out, span{dim, "…"})
}

// pad fills the line up to a number of columns.
func (l line) pad(columns int) line {
	if n := columns - l.width(); n > 0 {
		return append(l, span{plain, strings.Repeat(" ", n)})
	}
	return l
}

// render is the line as text, with or without colour, without a newline.
func (l line) render(color bool) string {
	var b strings.Builder
	for _, s := range l {
		if s.text == "" {
			continue
		}
		if color && s.style != plain {
			b.WriteString("\x1b[" + s.style + "m" + s.text + "\x1b[0m")
		} else {
			b.WriteString(s.text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// flat makes one clean line of text that a model or a program wrote.
func flat(text string) string {
	return strings.Join(strings.Fields(tui.Clean(text)), " ")
}

// wrap breaks flat text at words into lines of so many columns; 0 is no limit.
func wrap(text string, columns int) []string {
	if columns <= 0 {
		return []string{text}
	}
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		for cells.Width(word) > columns { // a word that fits no line
			if current != "" {
				lines = append(lines, current)
				current = ""
			}
			head := cells.Cut(word, columns)
			if head == "" {
				break
			}
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case current == "":
			current = word
		case cells.Width(current)+1+cells.Width(word) <= columns:
			current += " " + word
		default:
			lines, current = append(lines, current), word
		}
	}
	if current != "" || len(lines) == 0 {
		lines = append(lines, current)
	}
	return lines
}

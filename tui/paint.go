package tui

import (
	"strings"

	"github.com/cadre-dev/cadre/internal/cells"
)

// The styles of a line (ECMA-48 §8.3.117). Agents have the colours of their
// team's roster (facts: claude-code §4.1).
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	amber = "33"
)

var agentColors = map[string]string{
	"red": "31", "green": "32", "yellow": "33", "blue": "34", "purple": "35", "cyan": "36",
	"orange": "38;5;208", "pink": "38;5;205",
}

// Style says how lines are shown.
type Style struct {
	Color bool
	// Width is asked for the columns before each line; nil or 0: no limit.
	Width func() int
	// Dir is the folder whose paths are shown without it; "": none.
	Dir string
}

// paint puts text, which must be clean already, into a style.
func (s Style) paint(style, text string) string {
	if !s.Color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (s Style) columns() int {
	if s.Width == nil {
		return 0
	}
	return s.Width()
}

// minColumns is the narrowest line that is still cut: below it, a line says
// more than a cut one would.
const minColumns = 20

// fit cuts a line to what is left of the width beside reserved columns.
func (s Style) fit(text string, reserved int) string {
	width := s.columns()
	if width <= 0 {
		width = 120
	}
	return cells.Fit(text, max(width-reserved, minColumns))
}

// oneLine is the first line of text that is not empty, with a mark when there
// is more.
func oneLine(text string) string {
	text = strings.TrimSpace(Clean(text))
	first, rest, _ := strings.Cut(text, "\n")
	first = strings.ReplaceAll(strings.TrimSpace(first), "\t", " ")
	if strings.TrimSpace(rest) != "" {
		first += " …"
	}
	return first
}

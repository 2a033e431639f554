package pane

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestTitle is what a border has room for, in characters.
const longestTitle = 80

// cleanTitle makes a title one line of printable text: anything else in it could move
// the cursor or colour the terminal.
func cleanTitle(title string) string {
	title = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, title)
	title = strings.TrimSpace(title)
	if runes := []rune(title); len(runes) > longestTitle {
		title = string(runes[:longestTitle-1]) + "…"
	}
	return title
}

// styles are tmux's names of the agents' colours (facts: claude-code §4.3).
var styles = map[string]string{
	"blue": "blue", "green": "green", "yellow": "yellow", "purple": "magenta",
	"orange": "colour208", "pink": "colour205", "cyan": "cyan", "red": "red",
}

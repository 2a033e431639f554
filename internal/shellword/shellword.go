// Package shellword writes words for a POSIX shell.
package shellword

import "strings"

// Quote makes text one word of a shell, with nothing in it expanded. Text that
// every shell reads as it stands stays readable.
func Quote(text string) string {
	if text != "" && strings.IndexFunc(text, isSpecial) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// isSpecial is generous: an equals sign would make an assignment of a first word.
func isSpecial(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,", r)
	return !plain
}

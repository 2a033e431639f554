package builtin

import (
	"slices"
	"strings"
)

// span is a part of a text: from its first byte up to the one after its last.
type span struct{ from, to int }

// occurrences finds where old occurs in text, from left to right without
// overlaps. A line end matches whether it is written \n or \r\n, since models
// are shown the same for both.
func occurrences(text, old string) []span {
	flat, returns := flatten(text)
	old = strings.ReplaceAll(old, "\r\n", "\n")
	if old == "" {
		return nil
	}
	var found []span
	for at := 0; ; {
		i := strings.Index(flat[at:], old)
		if i < 0 {
			return found
		}
		from, to := at+i, at+i+len(old)
		found = append(found, span{from + before(returns, from), to + before(returns, to)})
		at = to
	}
}

// flatten writes every line end as \n, and returns at which bytes of the result a
// \r before it was left out.
func flatten(text string) (flat string, returns []int) {
	if !strings.Contains(text, "\r\n") {
		return text, nil
	}
	flat = strings.ReplaceAll(text, "\r\n", "\n")
	for i, gone := 0, 0; ; gone++ {
		n := strings.Index(text[i:], "\r\n")
		if n < 0 {
			return flat, returns
		}
		i += n + len("\r\n")
		returns = append(returns, i-len("\r\n")-gone)
	}
}

// before counts the numbers below limit in a sorted list.
func before(sorted []int, limit int) int {
	n, _ := slices.BinarySearch(sorted, limit)
	return n
}

// replace replaces the spans. The line ends of the new text become those that most
// lines of the text have.
func replace(text string, spans []span, with string) string {
	if usesCRLF(text) {
		with = strings.ReplaceAll(strings.ReplaceAll(with, "\r\n", "\n"), "\n", "\r\n")
	}
	var b strings.Builder
	b.Grow(len(text) + len(spans)*len(with))
	last := 0
	for _, s := range spans {
		b.WriteString(text[last:s.from])
		b.WriteString(with)
		last = s.to
	}
	b.WriteString(text[last:])
	return b.String()
}

// lineAt is the number, from 1, of the line with the byte at this place.
func lineAt(text string, at int) int { return 1 + strings.Count(text[:at], "\n") }

package builtin

import (
	"fmt"
	"strings"
)

// explainNoMatch says why old_string may not have been found: what is there
// instead, where, and what to do. Nothing is ever changed on a guess.
func explainNoMatch(text, old, new string) string {
	if text == "" {
		return "The file is empty. To fill it use an empty old_string, or Write."
	}
	if startsWithNumber(old) {
		return "It starts with a line number as Read shows it: leave out the number and the tab at the start of each line."
	}
	lines := splitLines(text)
	if found, at := findLoosely(lines, old); found > 0 {
		return "A text that differs only in white space exists: copy it exactly, with its tabs and spaces. The file has:\n" +
			snippet(lines, found, at)
	}
	if new != "" && len(occurrences(text, new)) > 0 {
		return fmt.Sprintf("But new_string is already there, in line %d: the change may have been made before. Read the file again.",
			lineAt(text, occurrences(text, new)[0].from))
	}
	if strings.Contains(old, "\uFFFD") {
		return "It contains \uFFFD, which stands for bytes that are not UTF-8. Identify the place without them."
	}
	if line, count := nearest(lines, old); line > 0 {
		return "There is a similar text, but it is not the same. The file has:\n" + snippet(lines, line, count) +
			"\nRead the file again if you are not sure what is in it."
	}
	return "There is nothing like it in the file. Read the file again; perhaps you mean another one."
}

// startsWithNumber reports whether text was copied with the line numbers of Read.
func startsWithNumber(text string) bool {
	number, _, tab := strings.Cut(strings.TrimLeft(text, " "), "\t")
	return tab && number != "" && strings.Trim(number, "0123456789") == ""
}

// snippet shows lines from a number on, with tabs and line ends visible by cat -n.
func snippet(lines []string, from, count int) string {
	const most = 20
	var b strings.Builder
	end := min(len(lines), from+min(count, most)-1)
	for n := from; n <= end; n++ {
		numberLine(&b, n, cutLine(lines[n-1], len(lines[n-1]), 300))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// findLoosely searches for old, ignoring white space inside and around lines. It returns the number of the first line and how many there are.
func findLoosely(lines []string, old string) (line, count int) {
	want := squeezed(splitLines(strings.Trim(old, "\r\n")))
	if strings.Join(want, "") == "" {
		return 0, 0
	}
	have := squeezed(lines)
	for i := 0; i+len(want) <= len(have); i++ {
		if matches(have[i:i+len(want)], want) {
			return i + 1, len(want)
		}
	}
	return 0, 0
}

// matches compares whole lines; the first may start, and the last may end, in
// the middle of a line of the file.
func matches(have, want []string) bool {
	last := len(want) - 1
	if last == 0 {
		return strings.Contains(have[0], want[0])
	}
	if !strings.HasSuffix(have[0], want[0]) || !strings.HasPrefix(have[last], want[last]) {
		return false
	}
	for i := 1; i < last; i++ {
		if have[i] != want[i] {
			return false
		}
	}
	return true
}

// squeezed removes all white space.
func squeezed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.Join(strings.Fields(line), "")
	}
	return out
}

// nearest finds the place of the file that is most similar to old: the one with most
// of the lines of old, in the order and at the distances that they have there. If
// there is none, it is the line that shares most words with the longest line of old.
func nearest(lines []string, old string) (line, count int) {
	want := squeezed(splitLines(old))
	have := squeezed(lines)
	wanted := map[string][]int{} // line of old: where it stands there
	for i, text := range want {
		if len(text) > 3 { // not just a bracket
			wanted[text] = append(wanted[text], i)
		}
	}
	votes, best := map[int]int{}, 0
	for n, text := range have {
		for _, i := range wanted[text] {
			start := n - i
			votes[start]++
			if votes[start] > votes[best] || votes[start] == votes[best] && start < best {
				best = start
			}
		}
	}
	if votes[best] > 0 {
		return max(1, best+1), len(want)
	}
	return likeliest(lines, old), 1
}

// likeliest is the number of the line that shares most of its words with the
// longest line of old; 0 when none shares half of them.
func likeliest(lines []string, old string) int {
	longest := ""
	for _, line := range splitLines(old) {
		if len(line) > len(longest) {
			longest = line
		}
	}
	words := map[string]bool{}
	for _, word := range wordsOf(longest) {
		words[word] = true
	}
	best, most := 0, (len(words)+1)/2
	for n, line := range lines {
		shared := map[string]bool{}
		for _, word := range wordsOf(line) {
			if words[word] {
				shared[word] = true
			}
		}
		if len(shared) > 0 && len(shared) >= most {
			if best == 0 || len(shared) > most {
				best, most = n+1, len(shared)
			}
		}
	}
	return best
}

func wordsOf(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r >= 0x80)
	})
}

// Package near finds the known names that a mistyped one was probably meant for.
package near

import (
	"slices"
	"strings"
)

// nearest is how many near names an error offers.
const nearest = 3

// longest is the most bytes of a name that is compared: agents have at most 64
// characters.
const longest = 256

// Names lists those of the known names that name may have been meant for,
// the nearest first.
func Names(name string, known []string) []string {
	type candidate struct {
		name string
		far  int
	}
	var near []candidate
	if len(name) > longest { // nobody's, and costly to compare
		return nil
	}
	asked := []rune(strings.ToLower(name))
	for _, k := range known {
		folded := []rune(strings.ToLower(k))
		far := editDistance(asked, folded)
		related := len(asked) > 1 && len(folded) > 1 &&
			(strings.HasPrefix(string(folded), string(asked)) || strings.HasPrefix(string(asked), string(folded)))
		if related || far <= max(1, min(len(asked), len(folded))/3) {
			near = append(near, candidate{k, far})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.far - b.far })
	var names []string
	for _, c := range near[:min(len(near), nearest)] {
		names = append(names, c.name)
	}
	return names
}

// editDistance counts insertions, deletions, replacements, and swaps of
// neighbours that turn a into b.
func editDistance(a, b []rune) int {
	before, above := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}

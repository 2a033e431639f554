package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/cadre-dev/cadre/task"
)

// screenLines is how many tasks a model is shown at once: about a screenful.
const screenLines = 60

// urgency orders what is shown first when not everything can be shown.
func (r taskRow) urgency() int {
	switch {
	case r.Status == task.InProgress:
		return 0
	case r.claimable():
		return 1
	case r.Status != task.Completed:
		return 2
	}
	return 3
}

func (r taskRow) claimable() bool {
	return r.Status == task.Pending && r.Owner == "" && len(r.BlockedBy) == 0
}

// screenful picks the rows to show, in their order, and counts the others. Of
// the open tasks the first of each urgency are shown, of the completed ones the
// last.
func screenful(rows []taskRow) (shown []taskRow, rest int) {
	if len(rows) <= screenLines {
		return rows, 0
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if c := cmp.Compare(rows[a].urgency(), rows[b].urgency()); c != 0 {
			return c
		}
		if rows[a].Status == task.Completed {
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a, b)
	})
	picked := order[:screenLines]
	slices.Sort(picked)
	for _, i := range picked {
		shown = append(shown, rows[i])
	}
	return shown, len(rows) - screenLines
}

// countLine says how many tasks there are, of which rest are not shown.
func countLine(rows []taskRow, rest int) string {
	var begun, pending, ready, completed int
	for _, r := range rows {
		switch r.Status {
		case task.InProgress:
			begun++
		case task.Completed:
			completed++
		default:
			pending++
			if r.claimable() {
				ready++
			}
		}
	}
	return fmt.Sprintf("… and %s more. In all: %s in progress, %s pending (%s ready to take), %s completed. TaskGet shows one.",
		grouped(rest), grouped(begun), grouped(pending), grouped(ready), grouped(completed))
}

// grouped writes a count as 9,940.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// cut shortens text to at most so many characters.
func cut(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

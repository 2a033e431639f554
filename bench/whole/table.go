package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// row is one figure beside its bound.
type row struct {
	what         string
	cadre, limit string // limit: what it is compared with; "" when there is nothing
	compared     string
	bound        string
	over         bool
}

// median of a list that is not empty.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// ratio is a row whose bound is a multiple of another time, measured in the same
// run.
func ratio(what string, ours, limits []time.Duration, bound float64) row {
	a, b := median(ours), median(limits)
	times := float64(a) / float64(b)
	return row{what, ms(a), ms(b), fmt.Sprintf("%.2fx", times), fmt.Sprintf("≤ %gx", bound), times > bound}
}

// above is a row whose bound is an addition to the minimal program's time.
func above(what string, ours, limits []time.Duration, bound time.Duration) row {
	a, b := median(ours), median(limits)
	more := fmt.Sprintf("%+.2f ms", float64(a-b)/float64(time.Millisecond))
	return row{what, ms(a), ms(b), more, "≤ +" + ms(bound), a-b > bound}
}

// within is a row with a bound of its own.
func within(what string, ours []time.Duration, bound time.Duration) row {
	a := median(ours)
	return row{what, ms(a), "", "", "≤ " + ms(bound), a > bound}
}

// bytesWithin is a row about memory or disk, in units of 2^20 or 10^6 bytes.
func bytesWithin(what string, size int64, bound int64, unit int64, name string) row {
	return row{
		what:  what,
		cadre: fmt.Sprintf("%.1f %s", float64(size)/float64(unit), name),
		bound: fmt.Sprintf("≤ %d %s", bound, name), over: size > bound*unit,
	}
}

func ms(d time.Duration) string {
	if d > 0 && d < time.Millisecond {
		return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// figure is a row without a bound.
func figure(what string, ours []time.Duration) row { return row{what: what, cadre: ms(median(ours))} }

// render writes the rows as a Markdown table.
func render(w io.Writer, columns [2]string, rows []row) {
	fmt.Fprintf(w, "| | %s | %s | compared | bound | |\n", columns[0], columns[1])
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---|")
	for _, r := range rows {
		mark := ""
		if r.over {
			mark = "over"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", r.what, r.cadre, r.limit, r.compared, r.bound, mark)
	}
}

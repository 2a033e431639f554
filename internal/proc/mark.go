package proc

import (
	"os"
	"strconv"
	"strings"
)

// markName is the variable that marks everything a run started, so that a process
// that has left the group can be found. Its value is the mark of the run, after those
// of the runs that this process itself is part of.
const markName = "CADRE_RUN"

// baseLength is the number of hexadecimal digits that a mark begins with.
const baseLength = 32

// markOf is the mark of a run. Each ends with a dot: no mark is part of another.
func markOf(base string, number int) string { return base + "." + strconv.Itoa(number) + "." }

// isMark reports whether text has the form of a mark.
func isMark(text string) bool {
	base, rest, _ := strings.Cut(text, ".")
	number, end, ok := strings.Cut(rest, ".")
	return ok && end == "" && len(base) == baseLength && number != "" &&
		strings.Trim(base, "0123456789abcdef") == "" && strings.Trim(number, "0123456789") == ""
}

// withMark returns env with the mark; nil is the environment of this process.
// env is not changed.
func withMark(env []string, mark string) []string {
	if env == nil {
		env = os.Environ()
	}
	marked := make([]string, 0, len(env)+1)
	outer := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, markName+"="); ok {
			outer = value + " "
			continue
		}
		marked = append(marked, entry)
	}
	return append(marked, markName+"="+outer+mark)
}

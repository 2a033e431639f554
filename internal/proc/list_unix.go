//go:build unix

package proc

import (
	"fmt"
	"os"
	"sync"
)

// list is a file with a line per run under way: its mark, and its process group
// once there is one. It is a file so that it is still there when this process
// is not, and so that a change costs one write to memory and wakes nobody.
type list struct {
	file *os.File
	path string // "" when the file has no name any more

	mu   sync.Mutex
	free []int64 // places of lines that are gone
	size int64
}

// entry is a run's line in the list. Its place is used again, so that the file is
// as long as there were ever runs at once.
type entry struct {
	of   *list
	at   int64
	mark string
}

// entrySize is the length of a line: a mark, a group and blanks, and a newline.
const entrySize = 64

// add writes a run down.
func (l *list) add(mark string) *entry {
	e := &entry{l, l.place(), mark}
	e.write(mark)
	return e
}

// started adds the process group that the run's program leads.
func (e *entry) started(group int) { e.write(fmt.Sprintf("%s %d", e.mark, group)) }

// remove takes the run out again.
func (e *entry) remove() {
	e.write("")
	e.of.mu.Lock()
	e.of.free = append(e.of.free, e.at)
	e.of.mu.Unlock()
}

// write writes the line in one go: a reader finds the old one or the new one. A
// failure leaves the run without a watchdog; it runs all the same.
func (e *entry) write(text string) {
	_, _ = e.of.file.WriteAt(fmt.Appendf(nil, "%-*s\n", entrySize-1, text), e.at)
}

// place is a free place of the file.
func (l *list) place() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free) - 1; last >= 0 {
		at := l.free[last]
		l.free = l.free[:last]
		return at
	}
	l.size += entrySize
	return l.size - entrySize
}

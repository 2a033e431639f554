//go:build unix

package proc

import (
	"fmt"
	"os"
	"sync"
)

// list is a file with a line for each current run: its mark, and its process group
// once there is one. It is a file so that it outlives this process, and so that a
// change costs one write to memory and wakes no other process.
type list struct {
	file *os.File
	path string // "" when the file no longer has a name

	mu   sync.Mutex
	free []int64 // places of removed lines
	size int64
}

// entry is a run's line in the list. Its place is reused, so the file never has more
// lines than there were runs at the same time.
type entry struct {
	of   *list
	at   int64
	mark string
}

// entrySize is the length of a line: a mark, a group and blanks, and a newline.
const entrySize = 64

// add records a run.
func (l *list) add(mark string) *entry {
	e := &entry{l, l.place(), mark}
	e.write(mark)
	return e
}

// started records the process group that the run's program leads.
func (e *entry) started(group int) { e.write(fmt.Sprintf("%s %d", e.mark, group)) }

// remove erases the run from the list.
func (e *entry) remove() {
	e.write("")
	e.of.mu.Lock()
	e.of.free = append(e.of.free, e.at)
	e.of.mu.Unlock()
}

// write writes the line atomically: a reader finds the old one or the new one. After
// a failure the program runs without a watchdog.
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

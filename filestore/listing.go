package filestore

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/task"
)

// listing is what is known of the task files of one list. What is remembered of
// a listing is not changed any more: with and without return another one, which
// shares all chunks with it but one.
type listing struct {
	chunks [][]*taskFile // in the order of their ids; none is empty
	mark   changeMark    // up to where the list's changes are in it
	swept  time.Time     // when every file was looked at
}

// chunkLen is how many files are in a chunk at first; it is split at twice that.
const chunkLen = 128

// setFiles makes the listing one of these files, in any order.
func (l *listing) setFiles(files []*taskFile) {
	slices.SortFunc(files, compareFiles)
	l.chunks = slices.Collect(slices.Chunk(files, chunkLen))
}

func compareFiles(a, b *taskFile) int {
	return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.id, b.id))
}

// files lists the files in the order of their ids.
func (l *listing) files() iter.Seq[*taskFile] {
	return func(yield func(*taskFile) bool) {
		for _, chunk := range l.chunks {
			for _, f := range chunk {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// find returns the file of a task, or nil.
func (l *listing) find(id string) *taskFile {
	if l == nil {
		return nil
	}
	if c, at, ok := l.search(id); ok {
		return l.chunks[c][at]
	}
	return nil
}

// search returns the chunk that a file is in or belongs in, and the place there.
// Only a listing without chunks has no such chunk.
func (l *listing) search(id string) (c, at int, ok bool) {
	f := &taskFile{id: id, number: task.Number(id)}
	c, _ = slices.BinarySearchFunc(l.chunks, f, func(chunk []*taskFile, f *taskFile) int {
		return compareFiles(chunk[len(chunk)-1], f)
	})
	if c == len(l.chunks) {
		if c == 0 {
			return 0, 0, false
		}
		c--
	}
	at, ok = slices.BinarySearchFunc(l.chunks[c], f, compareFiles)
	return c, at, ok
}

// with is the listing with a newer version of a file.
func (l listing) with(f *taskFile) listing {
	c, at, ok := l.search(f.id)
	if len(l.chunks) == 0 {
		l.chunks = [][]*taskFile{{f}}
		return l
	}
	l.chunks = slices.Clone(l.chunks)
	chunk := slices.Clone(l.chunks[c])
	if ok {
		chunk[at] = f
	} else {
		chunk = slices.Insert(chunk, at, f)
	}
	l.chunks[c] = chunk
	if half := len(chunk) / 2; half >= chunkLen {
		l.chunks[c] = chunk[:half:half]
		l.chunks = slices.Insert(l.chunks, c+1, chunk[half:])
	}
	return l
}

// without is the listing without a file.
func (l listing) without(id string) listing {
	c, at, ok := l.search(id)
	if !ok {
		return l
	}
	l.chunks = slices.Clone(l.chunks)
	l.chunks[c] = slices.Delete(slices.Clone(l.chunks[c]), at, at+1)
	if len(l.chunks[c]) == 0 {
		l.chunks = slices.Delete(l.chunks, c, c+1)
	}
	return l
}

// tasks lists the tasks in the order of their ids; torn ones only when asked.
func (l *listing) tasks(torn bool) []task.Task {
	list := make([]task.Task, 0, len(l.chunks)*chunkLen)
	for f := range l.files() {
		if f.err == nil || torn && f.task.Status == unreadable {
			list = append(list, f.task)
		}
	}
	return list
}

// firstClaimable returns the first task that anybody may take, or nil.
func (l *listing) firstClaimable() *taskFile {
	for f := range l.files() {
		if task.ClaimableIn(l.status, &f.task) {
			return f
		}
	}
	return nil
}

func (l *listing) status(id string) (task.Status, bool) {
	f := l.find(id)
	if f == nil || f.err != nil && f.task.Status != unreadable {
		return "", false
	}
	return f.task.Status, true
}

// highest is the highest number that names a file, whatever is in it.
func (l *listing) highest() int {
	highest := 0
	for f := range l.files() {
		if n, err := strconv.Atoi(f.id); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

package filestore

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/task"
)

// listing is what is known of the task files of one list. What is remembered of
// a listing is not changed any more: with and without return another one.
type listing struct {
	files []*taskFile // in the order of their ids
	mark  changeMark  // up to where the list's changes are in it
	swept time.Time   // when every file was looked at
}

func compareFiles(a, b *taskFile) int {
	return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.id, b.id))
}

// find returns the file of a task, or nil.
func (l *listing) find(id string) *taskFile {
	if l == nil {
		return nil
	}
	if at, ok := l.search(id); ok {
		return l.files[at]
	}
	return nil
}

func (l *listing) search(id string) (at int, ok bool) {
	return slices.BinarySearchFunc(l.files, &taskFile{id: id, number: task.Number(id)}, compareFiles)
}

// with is the listing with a newer version of a file.
func (l listing) with(f *taskFile) listing {
	at, ok := l.search(f.id)
	if ok {
		l.files = slices.Clone(l.files)
		l.files[at] = f
	} else {
		l.files = slices.Insert(slices.Clip(l.files), at, f)
	}
	return l
}

// without is the listing without a file.
func (l listing) without(id string) listing {
	if at, ok := l.search(id); ok {
		l.files = slices.Delete(slices.Clone(l.files), at, at+1)
	}
	return l
}

// tasks lists the tasks in the order of their ids; torn ones only when asked.
func (l *listing) tasks(torn bool) []task.Task {
	list := make([]task.Task, 0, len(l.files))
	for _, f := range l.files {
		if f.err == nil || torn && f.task.Status == unreadable {
			list = append(list, f.task)
		}
	}
	return list
}

// firstClaimable returns the first task that anybody may take, or nil.
func (l *listing) firstClaimable() *taskFile {
	at := task.FirstClaimableOf(len(l.files), func(i int) *task.Task { return &l.files[i].task }, l.status)
	if at < 0 {
		return nil
	}
	return l.files[at]
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
	for _, f := range l.files {
		if n, err := strconv.Atoi(f.id); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

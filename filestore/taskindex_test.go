package filestore

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/task"
)

// An index holds what was put into it, in order, and what it was copied from stays as
// it was.
func TestTaskIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := func(n int) *taskFile {
			return &taskFile{id: strconv.Itoa(n), number: n, task: task.Task{ID: strconv.Itoa(n)}}
		}
		want := make(map[int]*taskFile)
		l := new(taskIndex)
		for _, n := range rapid.Permutation(slices.Collect(upTo(rapid.IntRange(0, 600).Draw(t, "size")))).Draw(t, "files") {
			want[2*n] = file(2 * n)
			l.put(want[2*n])
		}
		id := rapid.IntRange(0, 1300)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				before, f := l, file(id.Draw(t, "id"))
				was := slices.Clone(before.files)
				l = l.clone()
				l.put(f)
				want[f.number] = f
				if !slices.Equal(before.files, was) {
					t.Fatal("the index before was changed")
				}
			},
			"drop": func(t *rapid.T) {
				before, n := l, id.Draw(t, "id")
				was := slices.Clone(before.files)
				l = l.clone()
				l.drop(strconv.Itoa(n))
				delete(want, n)
				if !slices.Equal(before.files, was) {
					t.Fatal("the index before was changed")
				}
			},
			"": func(t *rapid.T) {
				var sorted []*taskFile
				for n := range 3000 {
					if f := want[n]; f != nil {
						sorted = append(sorted, f)
					}
					if got := l.find(strconv.Itoa(n)); got != want[n] {
						t.Fatalf("#%d is %v", n, got)
					}
				}
				if !slices.Equal(l.files, sorted) {
					t.Fatal("not all the files in order")
				}
			},
		})
	})
}

func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

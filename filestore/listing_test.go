package filestore

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/task"
)

// A listing holds what was put into it, in order, and older ones stay as they
// were.
func TestListing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		file := func(n int) *taskFile {
			return &taskFile{id: strconv.Itoa(n), number: n, task: task.Task{ID: strconv.Itoa(n)}}
		}
		want := make(map[int]*taskFile)
		var l listing
		var files []*taskFile
		for _, n := range rapid.Permutation(slices.Collect(upTo(rapid.IntRange(0, 600).Draw(t, "size")))).Draw(t, "files") {
			want[2*n] = file(2 * n)
			files = append(files, want[2*n])
		}
		l.setFiles(files)
		id := rapid.IntRange(0, 1300)
		t.Repeat(map[string]func(*rapid.T){
			"with": func(t *rapid.T) {
				before, f := l, file(id.Draw(t, "id"))
				was := slices.Collect(before.files())
				l = l.with(f)
				want[f.number] = f
				if !slices.Equal(slices.Collect(before.files()), was) {
					t.Fatal("the listing before was changed")
				}
			},
			"many": func(t *rapid.T) { // as many as split a chunk
				from := id.Draw(t, "from")
				for n := from; n < from+2*chunkLen; n++ {
					want[n] = file(n)
					l = l.with(want[n])
				}
			},
			"without": func(t *rapid.T) {
				before, n := l, id.Draw(t, "id")
				was := slices.Collect(before.files())
				l = l.without(strconv.Itoa(n))
				delete(want, n)
				if !slices.Equal(slices.Collect(before.files()), was) {
					t.Fatal("the listing before was changed")
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
				if !slices.Equal(slices.Collect(l.files()), sorted) {
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

package filestore_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
)

// What an operation costs must not grow with what is kept. A clock says that
// badly, so this counts what the file layer is asked to do.

// meter is a file layer that counts.
type meter struct {
	fsx.Faulty
	bytes atomic.Int64
}

type meteredFile struct {
	fsx.File
	bytes *atomic.Int64
}

func newMeter() *meter { return &meter{Faulty: fsx.Faulty{FS: fsx.OS}} }

func (m *meter) OpenFile(path string, flag int, mode fs.FileMode) (fsx.File, error) {
	f, err := m.Faulty.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return meteredFile{f, &m.bytes}, nil
}

func (f meteredFile) count(n int, err error) (int, error) {
	f.bytes.Add(int64(n))
	return n, err
}

func (f meteredFile) Read(p []byte) (int, error)              { return f.count(f.File.Read(p)) }
func (f meteredFile) ReadAt(p []byte, at int64) (int, error)  { return f.count(f.File.ReadAt(p, at)) }
func (f meteredFile) Write(p []byte) (int, error)             { return f.count(f.File.Write(p)) }
func (f meteredFile) WriteAt(p []byte, at int64) (int, error) { return f.count(f.File.WriteAt(p, at)) }

// work is how many bytes and calls something took.
type work struct{ bytes, calls int64 }

func (m *meter) of(do func()) work {
	before := work{m.bytes.Load(), int64(m.Calls())}
	do()
	return work{m.bytes.Load() - before.bytes, int64(m.Calls()) - before.calls}
}

// writeHistory makes an inbox with n messages that were read.
func writeHistory(t testing.TB, root layout.Root, n int) {
	t.Helper()
	var text strings.Builder
	for i := range n {
		separator := ","
		if i == 0 {
			separator = "["
		}
		fmt.Fprintf(&text, `%s
  {
    "from": "w%d",
    "text": "message %d of ordinary length, some sixty characters long",
    "summary": "one more",
    "timestamp": "2026-11-21T03:18:57.981Z",
    "read": true
  }`, separator, i%7, i)
	}
	text.WriteString("\n]")
	path := root.Inbox(faultBox.Team, faultBox.Agent)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

// takeMail is what a reader does: it lists what is new and marks it read.
func takeMail(t testing.TB, mail mailbox.Store) []mailbox.Message {
	t.Helper()
	unread, err := mail.Unread(t.Context(), faultBox)
	check(t, err)
	check(t, mail.MarkRead(t.Context(), faultBox, ids(unread)))
	return unread
}

// mailWork is what appending and taking cost in an inbox that has so many
// messages, several times each.
func mailWork(t *testing.T, messages int) (posts, takes []work) {
	root := layout.Root(t.TempDir())
	writeHistory(t, root, messages)
	sent, taken := newMeter(), newMeter()
	poster, reader := open(t, root, filestore.WithFS(sent)).Mail(), open(t, root, filestore.WithFS(taken)).Mail()
	takeMail(t, reader)
	for i := range 40 {
		m := ordinary(i)
		posts = append(posts, sent.of(func() { check(t, poster.Post(t.Context(), faultBox, m)) }))
		takes = append(takes, taken.of(func() {
			if got := takeMail(t, reader); len(got) != 1 || got[0].Text != m.Text {
				t.Fatalf("took %v", got)
			}
		}))
	}
	return posts[1:], takes[1:] // the first makes what stays
}

func ordinary(i int) mailbox.Message {
	return post("w9", fmt.Sprintf("message %03d of ordinary length, some sixty characters long", i), "s", "2026-11-21T03:18:57.981Z", "")
}

func TestMailWorkDoesNotGrow(t *testing.T) {
	manyPosts, manyTakes := mailWork(t, 100_000)
	fewPosts, fewTakes := mailWork(t, 10)
	atMost(t, "post", manyPosts, fewPosts, 1.5)
	atMost(t, "take", manyTakes, fewTakes, 1.5)
}

// claimWork is what claiming and completing cost in a list of so many tasks.
func claimWork(t *testing.T, tasks int) (claims []work) {
	root := layout.Root(t.TempDir())
	writeTasks(t, root, tasks, func(int) []int { return nil })
	metered := newMeter()
	s := open(t, root, filestore.WithFS(metered), filestore.WithPoll(time.Hour))
	check(t, readTasks(t.Context(), s))
	for range 10 {
		claims = append(claims, metered.of(func() {
			check(t, update(claim(t, s), completed)(t.Context(), s))
		}))
	}
	return claims[1:]
}

func TestClaimWorkDoesNotGrow(t *testing.T) {
	atMost(t, "claim", claimWork(t, 10_000), claimWork(t, 100), 1.5)
}

// atMost compares the worst with much kept, so that no rare rewrite hides, to
// the best with little.
func atMost(t *testing.T, what string, many, few []work, factor float64) {
	t.Helper()
	worst, best := many[0], few[0]
	for _, w := range many {
		worst = work{max(worst.bytes, w.bytes), max(worst.calls, w.calls)}
	}
	for _, w := range few {
		best = work{min(best.bytes, w.bytes), min(best.calls, w.calls)}
	}
	t.Logf("%s: %+v with much kept, %+v with little", what, worst, best)
	if float64(worst.bytes) > factor*float64(best.bytes) || float64(worst.calls) > factor*float64(best.calls) {
		t.Errorf("%s: more than %g times", what, factor)
	}
}

// writeTasks makes a list of n tasks; blockers lists what holds back the i-th.
func writeTasks(t testing.TB, root layout.Root, n int, blockers func(i int) []int) {
	t.Helper()
	tasks := make([]task.Task, n+1)
	for i := 1; i <= n; i++ {
		id := strconv.Itoa(i)
		tasks[i].ID, tasks[i].Subject, tasks[i].Status = id, "task "+id, task.Pending
		for _, b := range blockers(i) {
			tasks[i].BlockedBy = append(tasks[i].BlockedBy, strconv.Itoa(b))
			tasks[b].Blocks = append(tasks[b].Blocks, id)
		}
	}
	check(t, os.MkdirAll(root.TaskList("t"), 0o700))
	for _, one := range tasks[1:] {
		file := struct {
			ID          string      `json:"id"`
			Subject     string      `json:"subject"`
			Description string      `json:"description"`
			Status      task.Status `json:"status"`
			Blocks      []string    `json:"blocks"`
			BlockedBy   []string    `json:"blockedBy"`
		}{one.ID, one.Subject, "", one.Status, append([]string{}, one.Blocks...), append([]string{}, one.BlockedBy...)}
		data, err := json.MarshalIndent(file, "", "  ")
		check(t, err)
		check(t, os.WriteFile(root.Task("t", one.ID), data, 0o600))
	}
}

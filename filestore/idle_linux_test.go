package filestore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// callLog counts the calls of a file layer from the moment when it is started,
// for some rounds.
type callLog struct {
	mu    sync.Mutex
	round string // the call that comes once in a round
	left  int    // rounds to count; none before the start
	calls map[string]int
	done  chan struct{}
}

func (l *callLog) start(rounds int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.left, l.done = make(map[string]int), rounds, make(chan struct{})
}

func (l *callLog) decide(c fsx.Call) *fsx.Fault {
	call := c.Op + " " + c.Path
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return nil
	}
	l.calls[call]++
	if call == l.round {
		if l.left--; l.left == 0 {
			close(l.done)
		}
	}
	return nil
}

// Waiting costs nothing: many who wait for mail and tasks cost one look at each
// folder in a poll, and nothing between two polls.
func TestIdleWatchesAskForNothing(t *testing.T) {
	const watchers, polls = 200, 10
	root, plain := quiet(t)
	check(t, makeTasks(t.Context(), plain))
	inboxes, list := filepath.Dir(root.Inbox("t", "w")), root.TaskList("t")
	for i := range watchers / 2 { // the others have got no mail yet
		check(t, plain.Mail().Post(t.Context(), mailbox.Address{Team: "t", Agent: fmt.Sprint("w", i)}, ordinary(i)))
	}
	log := &callLog{round: "lstat " + inboxes}
	s := open(t, root, filestore.WithFS(&fsx.Faulty{FS: fsx.OS, Decide: log.decide}), filestore.WithPoll(2*time.Millisecond))
	for i := range watchers {
		_, stop := s.Mail().Watch(mailbox.Address{Team: "t", Agent: fmt.Sprint("w", i)})
		t.Cleanup(stop)
		_, stop = s.Tasks().Watch("t")
		t.Cleanup(stop)
	}
	_, stop := s.Tasks().Watch("a list that nobody made")
	defer stop()
	for _, rounds := range []int{2, polls} { // the first may belong to the beginning
		log.start(rounds)
		<-log.done
	}
	for _, folder := range []string{inboxes, list, root.TaskList("a list that nobody made")} {
		call := "lstat " + folder
		if n := log.calls[call]; n < polls-1 || n > polls+1 {
			t.Errorf("%s: %d times in %d polls", call, n, polls)
		}
		delete(log.calls, call)
	}
	for call, n := range log.calls {
		t.Errorf("%s: %d times", call, n)
	}
}

// A watch follows its folder when it is deleted and made again.
func TestWatchFollowsItsFolder(t *testing.T) {
	root := layout.Root(t.TempDir())
	s, other := open(t, root, filestore.WithPoll(2*time.Millisecond)), open(t, root)
	signal, stop := s.Tasks().Watch("t")
	defer stop()
	remove := []func(){
		func() { check(t, other.Tasks().Remove(t.Context(), "t")) },
		func() { check(t, os.RemoveAll(root.TaskList("t"))) }, // the next one may get its inode
	}
	for i := range 20 {
		check(t, makeTasks(t.Context(), other))
		for n := 0; n < 4; {
			<-signal
			all, err := s.Tasks().List(t.Context(), "t")
			check(t, err)
			n = len(all)
		}
		remove[i%2]()
	}
}

// What came and went before the watch looked may have been seen by one who
// looked by himself: he is told.
func TestWatchTellsOfWhatCameAndWent(t *testing.T) {
	root, plain := quiet(t)
	path := inboxPath(root)
	check(t, plain.Mail().Post(t.Context(), mailbox.Address{Team: "t", Agent: "other"}, ordinary(1)))
	s := open(t, root, filestore.WithPoll(time.Hour), filestore.WithFS(&fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op == "lstat" && c.Path == path {
			_ = os.Remove(path) // it need not be there yet
		}
		return nil
	}}))
	signal, stop := s.Mail().Watch(faultBox)
	defer stop()
	write(t, path, "[]")
	<-signal
}

// Who waits for a file of a folder that is not there is told of it also when it is
// somebody else's watch that finds the folder made.
func TestWatchOfAFolderThatAnotherWatchFinds(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root, filestore.WithPoll(time.Hour))
	signal, stop := s.Mail().Watch(faultBox)
	defer stop()
	_, stopTasks := s.Tasks().Watch("t") // taken up when the watch before it has looked
	defer stopTasks()
	path := inboxPath(root)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	write(t, path, "[]")
	_, stopOther := s.Mail().Watch(mailbox.Address{Team: faultBox.Team, Agent: "other"})
	defer stopOther()
	<-signal
}

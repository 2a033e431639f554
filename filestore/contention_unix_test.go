//go:build unix

package filestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// postAsForeign writes as Claude Code does (facts: claude-code §8): one mkdir,
// no retry; the file written in place. A message that finds the lock held is
// given up. It prints what it wrote.
func postAsForeign(root layout.Root, from string, n int) error {
	path := root.Inbox(faultBox.Team, faultBox.Agent)
	for written, tries := 0, 0; tries < n; tries++ {
		<-time.After(time.Duration(1+tries%7) * time.Millisecond) // its model thinks
		if err := os.Mkdir(path+".lock", 0o755); err != nil {
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			return err
		}
		at := time.Now().Truncate(time.Second).Add(time.Second + 5*time.Millisecond)
		err := errors.Join(os.Chtimes(path+".lock", at, at), appendInPlace(path, from, written), os.Remove(path+".lock"))
		if err != nil {
			return err
		}
		fmt.Println("ack", written)
		written++
	}
	return nil
}

// appendInPlace spells the inbox in its own way, differently each time, and
// keeps what it does not know.
func appendInPlace(path, from string, i int) error {
	var inbox []json.RawMessage
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &inbox)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %q", err, data)
	}
	inbox = append(inbox, json.RawMessage(fmt.Sprintf(
		`{"from":%q,"text":"%d","timestamp":"2026-11-21T03:18:57.981Z","read":false,"x-foreign":{"n":%d}}`, from, i, i)))
	data, err = json.MarshalIndent(inbox, "", []string{"  ", "", "\t"}[i%3])
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// readUntilStopped takes mail until its standard input ends, and prints the
// identity of each message that it marked.
func readUntilStopped(ctx context.Context, root layout.Root) (err error) {
	s := filestore.New(root)
	defer func() { err = errors.Join(err, s.Close()) }()
	signal, stop := s.Mail().Watch(faultBox)
	defer stop()
	stopped := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stopped)
	}()
	marked := make(map[mailbox.ID]bool)
	for last := false; ; {
		unread, err := s.Mail().Unread(ctx, faultBox)
		if err == nil {
			err = s.Mail().MarkRead(ctx, faultBox, ids(unread))
		}
		if err != nil {
			return err
		}
		for _, m := range unread {
			if marked[m.ID] {
				return fmt.Errorf("%s was marked and is unread again", m.ID)
			}
			marked[m.ID] = true
			fmt.Println("ack", m.ID)
		}
		if last {
			return nil
		}
		select {
		case <-signal:
		case <-stopped:
			last = true
		}
	}
}

// crowd is the processes that work on one inbox, and what they were told.
type crowd struct {
	root  layout.Root
	mu    sync.Mutex
	acked map[string][]string // by process
}

// run starts a process and waits for its end.
func (c *crowd) run(t *testing.T, stdin *os.File, mode, name string, more ...string) {
	lines := runChildWith(t, stdin, childEnv(append([]string{string(c.root), mode, name}, more...)...))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range lines {
		if ack, ok := strings.CutPrefix(line, "ack "); ok {
			c.acked[name] = append(c.acked[name], ack)
		}
	}
}

// Several processes post to one inbox, two of them other programs, and several
// read it: nothing is lost, nothing is there twice, each sender's order holds,
// and what was marked stays marked.
func TestProcessesShareAnInbox(t *testing.T) {
	senders, each, readers := 8, 25, 4
	if testWhole {
		senders, each = 64, 100
	}
	c := &crowd{root: layout.Root(t.TempDir()), acked: make(map[string][]string)}
	s := open(t, c.root)
	check(t, s.Mail().Post(t.Context(), faultBox, post("w0", "first", "", "2026-11-21T03:18:57.981Z", "")))
	stdin, stop, err := os.Pipe()
	check(t, err)
	var reading, writing sync.WaitGroup
	for i := range readers {
		reading.Go(func() { c.run(t, stdin, "read", fmt.Sprint("reader", i)) })
	}
	for i := range senders {
		writing.Go(func() { c.run(t, nil, "post", fmt.Sprint("w", i+1), strconv.Itoa(each)) })
	}
	for i := range 2 {
		writing.Go(func() { c.run(t, nil, "foreign", fmt.Sprint("claude-", i+1), strconv.Itoa(each)) })
	}
	written := make(chan struct{})
	go func() {
		writing.Wait()
		close(written)
	}()
	neverLess(t, s, written)
	check(t, stop.Close()) // the readers take what is left
	reading.Wait()
	check(t, stdin.Close())
	for i := range senders {
		if name := fmt.Sprint("w", i+1); len(c.acked[name]) != each {
			t.Errorf("%s sent %d of %d", name, len(c.acked[name]), each)
		}
	}
	c.checkInbox(t, s)
}

// neverLess looks at the inbox now and then until done: it only grows.
func neverLess(t *testing.T, s *filestore.Store, done <-chan struct{}) {
	t.Helper()
	signal, stop := s.Mail().Watch(faultBox)
	defer stop()
	for seen, signals := 0, 0; ; signals++ {
		if signals%50 == 0 {
			all, err := s.Mail().All(t.Context(), faultBox)
			if err != nil || len(all) < seen {
				t.Errorf("%d messages after %d: %v", len(all), seen, err)
			}
			seen = len(all)
		}
		select {
		case <-signal:
		case <-done:
			return
		}
	}
}

// checkInbox holds what is kept to what the processes were told.
func (c *crowd) checkInbox(t *testing.T, s *filestore.Store) {
	t.Helper()
	all, err := s.Mail().All(t.Context(), faultBox)
	check(t, err)
	kept := make(map[string][]string)
	read := make(map[string]bool)
	for i, m := range all {
		read[string(m.ID)] = m.Read
		if i > 0 {
			kept[m.From] = append(kept[m.From], m.Text)
		}
		if !m.Read {
			t.Errorf("%s of %s is unread, and the readers are done", m.Text, m.From)
		}
		if strings.HasPrefix(m.From, "claude-") && string(m.Extra.Raw("x-foreign")) == "" {
			t.Errorf("%s of %s lost a field", m.Text, m.From)
		}
	}
	foreign := 0
	for name, acks := range c.acked {
		switch {
		case strings.HasPrefix(name, "reader"):
			for _, id := range acks {
				if !read[id] {
					t.Errorf("%s marked %s: it is lost or unread", name, id)
				}
			}
			continue
		case strings.HasPrefix(name, "claude-"):
			foreign += len(acks)
		}
		if diff := cmp.Diff(acks, kept[name]); diff != "" {
			t.Errorf("messages of %s (-acknowledged +kept):\n%s", name, diff)
		}
		delete(kept, name)
	}
	if len(kept) > 0 {
		t.Errorf("nobody sent %v", kept)
	}
	if foreign == 0 {
		t.Error("the other programs never got the lock")
	}
	t.Logf("%d messages, %d of them by other programs", len(all), foreign)
}

//go:build unix

package filestore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// postAsForeign writes as Claude Code does (facts: claude-code §8): one mkdir,
// no retry; the file written in place. It prints what it got the lock for.
func postAsForeign(root layout.Root, from string, n int) error {
	path := root.Inbox(faultBox.Team, faultBox.Agent)
	for i, tries := 0, 0; i < n && tries < 20_000; tries++ {
		if err := os.Mkdir(path+".lock", 0o755); err != nil {
			if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
				<-time.After(time.Duration(tries%7) * 100 * time.Microsecond) // its model thinks
				continue
			}
			return err
		}
		at := time.Now().Truncate(time.Second).Add(time.Second + 5*time.Millisecond)
		err := errors.Join(os.Chtimes(path+".lock", at, at), appendInPlace(path, from, i), os.Remove(path+".lock"))
		if err != nil {
			return err
		}
		fmt.Println("ack", i)
		i++
	}
	return nil
}

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
		`{"from":%q,"text":"%d","timestamp":"2026-11-21T03:18:57.981Z","read":false}`, from, i)))
	data, err = json.MarshalIndent(inbox, "", "  ")
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

// Several processes post to one inbox, one of them another program: nothing is
// lost, nothing is there twice, and a reader never sees less than before.
func TestProcessesShareAnInbox(t *testing.T) {
	root := layout.Root(t.TempDir())
	processes, each := 4, 25
	if testAll {
		processes, each = 64, 200
	}
	mail := open(t, root).Mail()
	check(t, mail.Post(t.Context(), faultBox, post("w0", "first", "", "2026-11-21T03:18:57.981Z", "")))
	var mu sync.Mutex
	acked := make(map[string]int)
	var wg sync.WaitGroup
	start := func(mode, name string, n int) {
		wg.Go(func() {
			lines := runChild(t, childEnv(string(root), mode, name, strconv.Itoa(n)))
			mu.Lock()
			defer mu.Unlock()
			for _, line := range lines {
				if line != "" {
					acked[name]++
				}
			}
		})
	}
	for i := range processes {
		start("post", fmt.Sprint("w", i+1), each)
	}
	start("foreign", "claude-1", each)
	start("foreign", "claude-2", each)
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for seen, running := 0, true; running; {
		unread, err := mail.Unread(t.Context(), faultBox)
		if err != nil || len(unread) < seen {
			t.Errorf("%d messages after %d: %v", len(unread), seen, err)
			break
		}
		seen = len(unread)
		select {
		case <-done:
			running = false
		default:
		}
	}
	<-done
	all, err := mail.All(t.Context(), faultBox)
	check(t, err)
	next := make(map[string]int)
	for _, m := range all[1:] {
		if m.Text != strconv.Itoa(next[m.From]) {
			t.Errorf("of %s: message %s instead of %d", m.From, m.Text, next[m.From])
		}
		next[m.From]++
	}
	if diff := cmp.Diff(acked, next); diff != "" {
		t.Errorf("messages (-acknowledged +kept):\n%s", diff)
	}
	for i := range processes {
		if name := fmt.Sprint("w", i+1); acked[name] != each {
			t.Errorf("%s sent %d of %d", name, acked[name], each)
		}
	}
}

// Several processes work through one list: no task is claimed twice, none
// before its blockers.
func TestProcessesShareATaskList(t *testing.T) {
	root := layout.Root(t.TempDir())
	workers, total := 3, 24
	if testAll {
		workers, total = 16, 400
	}
	s := open(t, root)
	for i := range total {
		one := task.Task{Subject: strconv.Itoa(i)}
		if i > 2 {
			one.BlockedBy = []string{strconv.Itoa(i - 1), strconv.Itoa(i/2 + 1)}
		}
		_, err := s.Tasks().Create(t.Context(), "t", one)
		check(t, err)
	}
	var mu sync.Mutex
	owners := make(map[string]string)
	var wg sync.WaitGroup
	for w := range workers {
		name := fmt.Sprint("w", w)
		wg.Go(func() {
			lines := runChild(t, childEnv(string(root), "claim", name, strconv.Itoa(total)))
			mu.Lock()
			defer mu.Unlock()
			for _, line := range lines {
				if line == "" {
					continue
				}
				if other, twice := owners[line]; twice {
					t.Errorf("%s: by %s and %s", line, other, name)
				}
				owners[line] = name
			}
		})
	}
	wg.Wait()
	all, err := s.Tasks().List(t.Context(), "t")
	check(t, err)
	for _, one := range all {
		if one.Status != task.Completed || one.Owner != owners["ack "+one.ID] {
			t.Errorf("#%s is %s and %s's, claimed by %s", one.ID, one.Status, one.Owner, owners["ack "+one.ID])
		}
	}
}

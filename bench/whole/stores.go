package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
)

// How much lies in a small and in a large store.
const (
	shortInbox, longInbox = 10, 100_000
	shortList, longList   = 100, 10_000
)

// storeRows compares what an inbox and a task list cost when they are large and
// when they are small, in turns. The stores are open and warm; the first look at
// a large one has rows of its own.
func storeRows(ctx context.Context, b *bench, quick bool) ([]row, error) {
	times, openings := 1000, 7
	if quick {
		times, openings = 100, 3
	}
	root := layout.Root(filepath.Join(b.dir, "stores"))
	rows, err := inboxRows(ctx, root, times)
	if err != nil {
		return nil, err
	}
	more, err := claimRows(ctx, root, times)
	if err != nil {
		return nil, err
	}
	cold, err := coldRows(ctx, root, openings)
	return append(append(rows, more...), cold...), err
}

// longBox is the inbox with a history.
var longBox = mailbox.Address{Team: teamName, Agent: "long"}

// inboxRows posts with one store and takes with another, as the processes of a
// sender and of a reader do.
func inboxRows(ctx context.Context, root layout.Root, times int) (rows []row, err error) {
	sender, reader := cadre.OpenState(root), cadre.OpenState(root)
	defer func() { err = errors.Join(err, sender.Close(), reader.Close()) }()
	if err := writeInbox(root, longBox, longInbox); err != nil {
		return nil, err
	}
	m := mailer{sender.Mail(), reader.Mail()}
	if _, _, err := m.round(ctx, longBox); err != nil { // cold
		return nil, err
	}
	var posts, takes [2][]time.Duration
	short := mailbox.Address{Team: teamName}
	for n := range times {
		if n%32 == 0 { // so that it stays as short as it is
			short.Agent = fmt.Sprint("short", n)
			if err := writeInbox(root, short, shortInbox); err != nil {
				return nil, err
			}
			if _, _, err := m.round(ctx, short); err != nil {
				return nil, err
			}
		}
		for i, box := range []mailbox.Address{short, longBox} {
			post, take, err := m.round(ctx, box)
			if err != nil {
				return nil, err
			}
			posts[i], takes[i] = append(posts[i], post), append(takes[i], take)
		}
	}
	return []row{
		ratio("append to an inbox of 100,000 messages, and of 10", posts[1], posts[0], 1.5),
		ratio("take from an inbox of 100,000 messages, and of 10", takes[1], takes[0], 1.5),
	}, nil
}

type mailer struct{ sender, reader mailbox.Store }

// round is a message from the sender to the reader's mark.
func (m mailer) round(ctx context.Context, box mailbox.Address) (post, take time.Duration, err error) {
	start := time.Now()
	err = m.sender.Post(ctx, box, mailbox.Message{
		From: "w1", Text: "a message of ordinary length, some sixty characters long", Timestamp: start.UTC().Format("2006-01-02T15:04:05.000Z"),
	})
	if err != nil {
		return 0, 0, err
	}
	posted := time.Now()
	unread, err := m.reader.Unread(ctx, box)
	if err != nil {
		return 0, 0, err
	}
	if len(unread) != 1 {
		return 0, 0, fmt.Errorf("one message became %d", len(unread))
	}
	err = m.reader.MarkRead(ctx, box, []mailbox.ID{unread[0].ID})
	return posted.Sub(start), time.Since(posted), err
}

// writeInbox writes an inbox of messages that are read, as any program of the
// format does.
func writeInbox(root layout.Root, box mailbox.Address, messages int) error {
	var text bytes.Buffer
	for i := range messages {
		separator := ","
		if i == 0 {
			separator = "["
		}
		fmt.Fprintf(&text, "%s\n  {\n    \"from\": \"w%d\",\n    \"text\": \"message %d of ordinary length, some sixty characters long\",\n"+
			"    \"timestamp\": \"2026-11-21T03:18:57.981Z\",\n    \"read\": true\n  }", separator, i%7, i)
	}
	text.WriteString("\n]")
	return write(root.Inbox(box.Team, box.Agent), text.Bytes())
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// claimRows claims the one open task of a list, in its middle, and gives it back.
func claimRows(ctx context.Context, root layout.Root, times int) (rows []row, err error) {
	state := cadre.OpenState(root)
	defer func() { err = errors.Join(err, state.Close()) }()
	var took [2][]time.Duration
	for n := range times + 1 {
		for i, size := range []int{shortList, longList} {
			list := listName(size)
			if n == 0 {
				if err := writeTasks(root, list, size); err != nil {
					return nil, err
				}
			}
			once, err := claim(ctx, state.Tasks(), list)
			if err != nil {
				return nil, err
			}
			if n > 0 { // the first is cold
				took[i] = append(took[i], once)
			}
		}
	}
	return []row{ratio("claim from a list of 10,000 tasks, and of 100", took[1], took[0], 2)}, nil
}

func listName(size int) string { return "list" + strconv.Itoa(size) }

func claim(ctx context.Context, tasks task.Store, list string) (time.Duration, error) {
	start := time.Now()
	t, ok, err := tasks.Claim(ctx, list, "w1")
	took := time.Since(start)
	if err != nil || !ok {
		return 0, fmt.Errorf("claim from %s: got one %t: %w", list, ok, err)
	}
	pending, nobody := task.Pending, ""
	_, err = tasks.Update(ctx, list, t.ID, task.Change{Status: &pending, Owner: &nobody})
	return took, err
}

// writeTasks writes a list that is done but for the task in its middle.
func writeTasks(root layout.Root, list string, size int) error {
	for i := 1; i <= size; i++ {
		status := task.Completed
		if i == size/2 {
			status = task.Pending
		}
		text := fmt.Sprintf("{\n  \"id\": \"%d\",\n  \"subject\": \"task %d\",\n  \"description\": \"\",\n  \"status\": %q,\n  \"blocks\": [],\n  \"blockedBy\": []\n}", i, i, status)
		if err := write(root.Task(list, strconv.Itoa(i)), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// coldRows looks for the first time at what is large.
func coldRows(ctx context.Context, root layout.Root, times int) ([]row, error) {
	var inbox, tasks []time.Duration
	for range times {
		state := cadre.OpenState(root)
		start := time.Now()
		if _, err := state.Mail().Unread(ctx, longBox); err != nil {
			return nil, err
		}
		opened := time.Now()
		if _, err := claim(ctx, state.Tasks(), listName(longList)); err != nil {
			return nil, err
		}
		inbox, tasks = append(inbox, opened.Sub(start)), append(tasks, time.Since(opened))
		if err := state.Close(); err != nil {
			return nil, err
		}
	}
	return []row{
		figure("first look at an inbox of 100,000 messages", inbox),
		figure("first claim from a list of 10,000 tasks", tasks),
	}, nil
}

package filestore_test

import (
	"fmt"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// BenchmarkPost is a message until its reader has it: the write, the signal and
// the list of what is unread. Every 32nd time all is marked read.
func BenchmarkPost(b *testing.B) {
	for _, history := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			s := filestore.New(layout.Root(b.TempDir()))
			defer func() { _ = s.Close() }()
			mail := s.Mail()
			at := mailbox.Address{Team: "t", Agent: "w1"}
			signal, stop := mail.Watch(at)
			defer stop()
			m := post("team-lead", "a message of ordinary length, some sixty characters long", "s", "2026-11-21T03:18:26.105Z", "")
			for range history {
				check(b, mail.Post(b.Context(), at, m))
			}
			unread, err := mail.Unread(b.Context(), at)
			check(b, err)
			check(b, mail.MarkRead(b.Context(), at, ids(unread)))
			for n := 1; b.Loop(); n++ {
				check(b, mail.Post(b.Context(), at, m))
				<-signal
				unread, err = mail.Unread(b.Context(), at)
				check(b, err)
				if n%32 == 0 {
					check(b, mail.MarkRead(b.Context(), at, ids(unread)))
				}
			}
		})
	}
}

// BenchmarkInbox is what it costs to append to an inbox, and to take from it
// (list what is new, and mark it read), by how much was read before.
func BenchmarkInbox(b *testing.B) {
	for _, history := range []int{10, 100_000} {
		root := layout.Root(b.TempDir())
		writeHistory(b, root, history)
		// Two stores, as the sender's process and the reader's have them.
		sender, reader := open(b, root).Mail(), open(b, root).Mail()
		takeMail(b, reader)
		m := ordinary(1)
		b.Run(fmt.Sprintf("append/history=%d", history), func(b *testing.B) {
			for n := 1; b.Loop(); n++ {
				check(b, sender.Post(b.Context(), faultBox, m))
				if n%32 == 0 && history == 10 { // so that it stays as short as it is
					b.StopTimer()
					writeHistory(b, root, history)
					b.StartTimer()
				}
			}
		})
		writeHistory(b, root, history)
		takeMail(b, reader)
		b.Run(fmt.Sprintf("take/history=%d", history), func(b *testing.B) {
			for n := 1; b.Loop(); n++ {
				b.StopTimer()
				if n%32 == 0 && history == 10 {
					writeHistory(b, root, history)
				}
				check(b, sender.Post(b.Context(), faultBox, m))
				b.StartTimer()
				if got := takeMail(b, reader); len(got) != 1 {
					b.Fatalf("took %d messages", len(got))
				}
			}
		})
	}
}

// BenchmarkColdInbox is the first look at a long inbox.
func BenchmarkColdInbox(b *testing.B) {
	root := layout.Root(b.TempDir())
	writeHistory(b, root, 100_000)
	for b.Loop() {
		s := filestore.New(root)
		_, err := s.Mail().Unread(b.Context(), faultBox)
		check(b, err)
		check(b, s.Close())
	}
}

func ids(messages []mailbox.Message) []mailbox.ID {
	list := make([]mailbox.ID, len(messages))
	for i, m := range messages {
		list[i] = m.ID
	}
	return list
}

// BenchmarkAppend is one entry, kept.
func BenchmarkAppend(b *testing.B) {
	s := filestore.New(layout.Root(b.TempDir()))
	log, err := s.Transcripts().Open(b.Context(), transcript.Ref{Project: "/p", Session: "s"})
	if err != nil {
		b.Fatal(err)
	}
	e := transcript.Entry{UUID: "u", Kind: transcript.KindUser, Message: transcript.UserText("a message of ordinary length"), Receipts: []string{"r"}}
	for b.Loop() {
		if err := log.Append(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpen is a new session up to its first kept entry.
func BenchmarkOpen(b *testing.B) {
	s := filestore.New(layout.Root(b.TempDir()))
	e := transcript.Entry{UUID: "u", Kind: transcript.KindUser, Message: transcript.UserText("hello")}
	n := 0
	for b.Loop() {
		n++
		log, err := s.Transcripts().Open(b.Context(), transcript.Ref{Project: "/p", Session: fmt.Sprint("s", n)})
		if err == nil {
			err = log.Append(b.Context(), e)
		}
		if err == nil {
			err = log.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClaim is one claim and its way back, in a list that is done but for
// one task in its middle.
func BenchmarkClaim(b *testing.B) {
	for _, size := range []int{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("tasks=%d", size), func(b *testing.B) {
			root := layout.Root(b.TempDir())
			writeTasks(b, root, size, func(int) []int { return nil })
			for i := 1; i <= size; i++ {
				if i != size/2 {
					edit(b, root.Task("t", fmt.Sprint(i)), `"pending"`, `"completed"`)
				}
			}
			tasks := open(b, root).Tasks()
			pending, nobody := task.Pending, ""
			for b.Loop() {
				t, ok, err := tasks.Claim(b.Context(), "t", "w1")
				if err != nil || !ok {
					b.Fatal(ok, err)
				}
				if _, err := tasks.Update(b.Context(), "t", t.ID, task.Change{Status: &pending, Owner: &nobody}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

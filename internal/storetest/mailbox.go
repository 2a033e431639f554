package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
)

var objects = cmp.Transformer("object", func(o jsonx.Object) string { return string(jsonx.MustMarshal(o)) })

// mailboxSuite checks an implementation of [mailbox.Store].
func mailboxSuite(t *testing.T, open Open[mailbox.Store]) {
	tests := map[string]func(*testing.T, mailbox.Store, mailbox.Store){
		"an absent inbox is empty":          absentInbox,
		"what is posted is read":            postAndRead,
		"equal messages have their own ids": equalMessages,
		"marking read":                      markRead,
		"two handles see each other":        twoHandles,
		"concurrent senders lose nothing":   concurrentSenders,
		"watches":                           watchMail,
		"a cancelled post leaves nothing":   cancelledPost,
		"odd names":                         oddNames,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			test(t, a, b)
		})
	}
}

var (
	worker = mailbox.Address{Team: "My Team!", Agent: "w1"}
	lead   = mailbox.Address{Team: "My Team!", Agent: "team-lead"}
)

func note(from, text string) mailbox.Message {
	return mailbox.Message{From: from, Text: text, Timestamp: "2026-11-21T03:18:26.105Z"}
}

func texts(messages []mailbox.Message) []string {
	list := []string{}
	for _, m := range messages {
		list = append(list, m.Text)
	}
	return list
}

func unreadTexts(t *testing.T, s mailbox.Store, at mailbox.Address) []string {
	t.Helper()
	messages, err := s.Unread(t.Context(), at)
	check(t, err)
	return texts(messages)
}

func absentInbox(t *testing.T, a, _ mailbox.Store) {
	equal(t, "unread", unreadTexts(t, a, worker), []string{})
	all, err := a.All(t.Context(), worker)
	check(t, err)
	equal(t, "all", texts(all), []string{})
	check(t, a.MarkRead(t.Context(), worker, []mailbox.ID{"nothing"}))
}

func postAndRead(t *testing.T, a, b mailbox.Store) {
	var extra jsonx.Object
	extra.Set("x-foreign", map[string]int{"n": 1})
	sent := []mailbox.Message{
		{From: "team-lead", Text: "hi <w1> & \"all\"\nline 2", Summary: "greet", Timestamp: "2026-11-21T03:18:26.105Z", Color: "blue"},
		{From: "w2", Text: "", Timestamp: "2026-11-21T03:18:26.911Z"},
		{From: "w2", Text: "日本語 \u2028 😀 \\ \t", Timestamp: "2026-11-21T03:18:27.000Z", Extra: extra},
	}
	for _, m := range sent {
		check(t, a.Post(t.Context(), worker, m))
	}
	want := append([]mailbox.Message(nil), sent...)
	mailbox.Identify(want)
	for name, s := range map[string]mailbox.Store{"a": a, "b": b} {
		got, err := s.Unread(t.Context(), worker)
		check(t, err)
		equal(t, "unread by "+name, got, want, objects)
		got, err = s.All(t.Context(), worker)
		check(t, err)
		equal(t, "all by "+name, got, want, objects)
	}
	equal(t, "somebody else's mail", unreadTexts(t, b, lead), []string{})
}

func equalMessages(t *testing.T, a, b mailbox.Store) {
	for range 3 {
		check(t, a.Post(t.Context(), worker, note("w2", "again")))
	}
	first, err := b.Unread(t.Context(), worker)
	check(t, err)
	check(t, b.MarkRead(t.Context(), worker, []mailbox.ID{first[1].ID}))
	left, err := a.Unread(t.Context(), worker)
	check(t, err)
	equal(t, "ids left", ids(left), []mailbox.ID{first[0].ID, first[2].ID})
	check(t, a.Post(t.Context(), worker, note("w2", "again")))
	all, err := b.All(t.Context(), worker)
	check(t, err)
	seen := make(map[mailbox.ID]bool)
	for _, id := range ids(all) {
		seen[id] = true
	}
	equal(t, "different ids", len(seen), 4)
}

func ids(messages []mailbox.Message) []mailbox.ID {
	var list []mailbox.ID
	for _, m := range messages {
		list = append(list, m.ID)
	}
	return list
}

func markRead(t *testing.T, a, b mailbox.Store) {
	for i := range 5 {
		check(t, a.Post(t.Context(), worker, note("w2", fmt.Sprint(i))))
	}
	before, err := a.Unread(t.Context(), worker)
	check(t, err)
	check(t, a.MarkRead(t.Context(), worker, []mailbox.ID{before[3].ID, before[0].ID, "unknown"}))
	equal(t, "unread", unreadTexts(t, a, worker), []string{"1", "2", "4"})
	equal(t, "unread by the other", unreadTexts(t, b, worker), []string{"1", "2", "4"})
	check(t, b.MarkRead(t.Context(), worker, []mailbox.ID{before[3].ID, before[4].ID}))
	check(t, a.Post(t.Context(), worker, note("w2", "5")))
	equal(t, "unread", unreadTexts(t, b, worker), []string{"1", "2", "5"})
	all, err := a.All(t.Context(), worker)
	check(t, err)
	var read []bool
	for _, m := range all {
		read = append(read, m.Read)
	}
	equal(t, "read", read, []bool{true, false, false, true, true, false})
	equal(t, "ids", ids(all)[:5], ids(before))
}

func twoHandles(t *testing.T, a, b mailbox.Store) {
	want := []string{}
	for i := range 10 {
		from := []mailbox.Store{a, b}[i%2]
		check(t, from.Post(t.Context(), worker, note("w2", fmt.Sprint(i))))
		want = append(want, fmt.Sprint(i))
		equal(t, "unread by a", unreadTexts(t, a, worker), want)
		equal(t, "unread by b", unreadTexts(t, b, worker), want)
	}
}

func concurrentSenders(t *testing.T, a, b mailbox.Store) {
	const senders, each = 6, 15
	var wg sync.WaitGroup
	for n := range senders {
		s := []mailbox.Store{a, b}[n%2]
		wg.Go(func() {
			for i := range each {
				if err := s.Post(t.Context(), worker, note(fmt.Sprint("w", n), fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
				if i%5 != 0 {
					continue
				}
				unread, err := s.Unread(t.Context(), worker)
				if err == nil && len(unread) > 0 {
					err = s.MarkRead(t.Context(), worker, ids(unread[:1]))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := a.All(t.Context(), worker)
	check(t, err)
	next := make(map[string]int)
	for _, m := range all {
		if m.Text != fmt.Sprint(next[m.From]) {
			t.Errorf("of %s: message %s instead of %d", m.From, m.Text, next[m.From])
		}
		next[m.From]++
	}
	for n := range senders {
		equal(t, "messages of one sender", next[fmt.Sprint("w", n)], each)
	}
}

func watchMail(t *testing.T, a, b mailbox.Store) {
	signal, stop := a.Watch(worker)
	defer stop()
	other, stopOther := a.Watch(lead)
	defer stopOther()
	check(t, a.Post(t.Context(), worker, note("w2", "local")))
	select {
	case <-signal: // when Post returns, not later
	default:
		t.Error("no signal right after a local post")
	}
	for i := range 3 {
		check(t, b.Post(t.Context(), worker, note("w2", "remote")))
		for len(unreadTexts(t, a, worker)) < i+2 {
			signalled(t, signal, "a post by another process")
		}
	}
	select {
	case <-other:
		t.Error("signal for somebody else's mail")
	default:
	}
	again, stopAgain := a.Watch(worker)
	drain(again)
	stopAgain()
	drain(again)
	check(t, a.Post(t.Context(), worker, note("w2", "after")))
	select {
	case <-again:
		t.Error("signal after stop")
	default:
	}
}

func cancelledPost(t *testing.T, a, b mailbox.Store) {
	if err := a.Post(ended(), worker, note("w2", "never")); err == nil {
		t.Error("a post under a cancelled context succeeded")
	}
	equal(t, "unread", unreadTexts(t, b, worker), []string{})
}

func oddNames(t *testing.T, a, b mailbox.Store) {
	if err := a.Post(t.Context(), mailbox.Address{Team: "t"}, note("w2", "nobody")); err == nil {
		t.Error("a post to nobody succeeded")
	}
	for _, agent := range []string{"../../up", "a/b", ".", "CON", "Bad Name-x!", "日本"} {
		at := mailbox.Address{Team: "../../evil", Agent: agent}
		check(t, a.Post(t.Context(), at, note("w2", agent)))
		equal(t, "mail of "+agent, unreadTexts(t, b, at), []string{agent})
	}
	// Without a team it is the team "default".
	check(t, a.Post(t.Context(), mailbox.Address{Agent: "w1"}, note("w2", "x")))
	equal(t, "mail of default", unreadTexts(t, b, mailbox.Address{Team: "default", Agent: "w1"}), []string{"x"})
}

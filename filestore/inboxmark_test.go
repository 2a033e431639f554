package filestore_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// longHistory is enough to be marked in place.
const longHistory = 500

func inboxPath(root layout.Root) string { return root.Inbox(faultBox.Team, faultBox.Agent) }

func inboxInfo(t *testing.T, root layout.Root) os.FileInfo {
	t.Helper()
	info, err := os.Stat(inboxPath(root))
	check(t, err)
	return info
}

// replaced reports whether do put another file in the inbox's place.
func replaced(t *testing.T, root layout.Root, do func()) bool {
	t.Helper()
	before := inboxInfo(t, root)
	do()
	return !os.SameFile(before, inboxInfo(t, root))
}

// plainInbox is the inbox as any JSON program reads it.
func plainInbox(t *testing.T, root layout.Root) (list []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(inboxPath(root))
	check(t, err)
	check(t, json.Unmarshal(data, &list))
	return list
}

func texts(messages []mailbox.Message) []string {
	list := make([]string, len(messages))
	for i, m := range messages {
		list[i] = m.Text
	}
	return list
}

func unreadTexts(t *testing.T, s *filestore.Store) []string {
	t.Helper()
	unread, err := s.Mail().Unread(t.Context(), faultBox)
	check(t, err)
	return texts(unread)
}

// markTexts marks the unread messages with these texts.
func markTexts(t *testing.T, s *filestore.Store, wanted ...string) {
	t.Helper()
	unread, err := s.Mail().Unread(t.Context(), faultBox)
	check(t, err)
	unread = slices.DeleteFunc(unread, func(m mailbox.Message) bool { return !slices.Contains(wanted, m.Text) })
	check(t, s.Mail().MarkRead(t.Context(), faultBox, ids(unread)))
}

// Every message that we add to a long inbox can be marked in place, wherever it
// comes to stand, and only its flag changes.
func TestLongInboxIsMarkedInPlace(t *testing.T) {
	root, s := quiet(t)
	writeHistory(t, root, longHistory)
	const more = 300
	for i := range more {
		m := ordinary(i)
		m.Summary = strings.Repeat("s", i%41) // so that the flags come to stand everywhere
		check(t, s.Mail().Post(t.Context(), faultBox, m))
	}
	before, err := s.Mail().All(t.Context(), faultBox)
	check(t, err)
	var unread []mailbox.Message
	if replaced(t, root, func() {
		for i := range more {
			if i%50 == 0 {
				unread, err = s.Mail().Unread(t.Context(), faultBox)
				check(t, err)
				check(t, s.Mail().MarkRead(t.Context(), faultBox, ids(unread[:50])))
			}
		}
	}) {
		t.Error("a long inbox was written anew to mark it")
	}
	after, err := s.Mail().All(t.Context(), faultBox)
	check(t, err)
	for i := range before {
		before[i].Read = true
	}
	if diff := cmp.Diff(before, after, modelOptions...); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := unreadTexts(t, s); len(got) != 0 {
		t.Errorf("unread: %q", got)
	}
	for i, m := range plainInbox(t, root) {
		if m["read"] != true {
			t.Errorf("message %d is unread in the file", i)
		}
	}
}

func TestShortInboxIsWrittenAnew(t *testing.T) {
	root, s := quiet(t)
	writeHistory(t, root, 5)
	check(t, s.Mail().Post(t.Context(), faultBox, ordinary(1)))
	if !replaced(t, root, func() { takeMail(t, s.Mail()) }) {
		t.Error("a short inbox was marked in place: its spelling is not that of Claude Code")
	}
}

// A process learns what another marked in place, also when a third one made the
// file longer meanwhile, and however long the file.
func TestMarksOfOthersAreSeen(t *testing.T) {
	root, owner := quiet(t)
	writeHistory(t, root, longHistory)
	watcher, third := open(t, root), open(t, root)
	for _, text := range []string{"1", "2", "3", "4"} {
		check(t, owner.Mail().Post(t.Context(), faultBox, post("w1", text, "", "2026-11-21T03:18:57.981Z", "")))
	}
	see := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, unreadTexts(t, watcher)); diff != "" {
			t.Errorf("seen (-want +got)\n%s", diff)
		}
	}
	see("1", "2", "3", "4")
	markTexts(t, owner, "2")
	see("1", "3", "4")
	markTexts(t, owner, "4")
	check(t, third.Mail().Post(t.Context(), faultBox, post("w1", "5", "", "2026-11-21T03:18:57.981Z", "")))
	see("1", "3", "5")
	// Also when the clock says nothing new.
	future := time.Now().Add(time.Hour)
	check(t, os.Chtimes(inboxPath(root), future, future))
	see("1", "3", "5")
	markTexts(t, owner, "1")
	see("3", "5")
	markTexts(t, owner, "3")
	see("5")
	markTexts(t, watcher, "5")
	if got := unreadTexts(t, owner); len(got) != 0 {
		t.Errorf("the owner still has %q", got)
	}
}

// What another program spelled in its own way is marked too, by a new file
// where it must be.
func TestMarkingWhatOthersSpelled(t *testing.T) {
	entry := func(fields string) string {
		return "  {\n    \"from\": \"w1\",\n    \"text\": \"x\",\n    \"timestamp\": \"t\"" + fields + "\n  }"
	}
	padding := strings.Repeat(entry(",\n    \"read\": true")+",\n", 1200)
	for name, test := range map[string]struct {
		text    string
		inPlace bool
	}{
		"as we do":               {"[\n" + padding + entry(",\n    \"read\": false") + "\n]", true},
		"with fields of theirs":  {"[\n" + padding + entry(",\n    \"read\": false,\n    \"x-foreign\": {\n      \"read\": false\n    }") + "\n]", true},
		"the key twice":          {"[\n" + padding + entry(",\n    \"read\": false,\n    \"read\": false") + "\n]", false},
		"the key twice, escaped": {"[\n" + padding + entry(",\n    \"read\": false,\n    \"re\\u0061d\": false") + "\n]", false},
		"without the key":        {"[\n" + padding + entry("") + "\n]", false},
		"another type":           {"[\n" + padding + entry(",\n    \"read\": \"no\"") + "\n]", false},
		"tabs":                   {"[\n" + padding + strings.ReplaceAll(entry(",\n    \"read\": false"), "  ", "\t") + "\n]", false},
		"on one line":            {"[" + strings.ReplaceAll(padding, "\n", "") + `{"from":"w1","text":"x","timestamp":"t","read":false}` + "]", false},
		"a last line":            {"[\n" + padding + entry(",\n    \"read\": false") + "\n]\n", false},
		"windows lines":          {"[\r\n" + padding + entry(",\r\n    \"read\": false") + "\r\n]", false},
	} {
		for _, warm := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/warm=%v", name, warm), func(t *testing.T) {
				root, s := quiet(t)
				// The flag must not lie across two blocks, for this test.
				text := test.text
				if at := strings.LastIndex(text, `"read": false`) + len(`"read": `); test.inPlace && at%512 > 500 {
					text = strings.Replace(text, `"x"`, `"x123456789012345"`, 1)
				}
				write(t, inboxPath(root), text)
				unread, err := open(t, root).Mail().Unread(t.Context(), faultBox)
				check(t, err)
				if warm {
					check(t, readMail(t.Context(), s))
				}
				if len(unread) != 1 {
					t.Fatalf("%d unread", len(unread))
				}
				anew := replaced(t, root, func() { check(t, s.Mail().MarkRead(t.Context(), faultBox, ids(unread))) })
				if anew == test.inPlace {
					t.Errorf("written anew: %v", anew)
				}
				for _, m := range plainInbox(t, root) {
					if m["read"] != true {
						t.Errorf("unread: %v", m)
					}
				}
				if got := unreadTexts(t, open(t, root)); len(got) != 0 {
					t.Errorf("unread: %q", got)
				}
			})
		}
	}
}

// A flag that lies across two blocks is not patched: a kill could tear it.
func TestTornFlagsAreNotRisked(t *testing.T) {
	root, s := quiet(t)
	writeHistory(t, root, longHistory)
	whole, err := os.ReadFile(inboxPath(root))
	check(t, err)
	last := "{\n    \"from\": \"w9\",\n    \"text\": \"%s\",\n    \"timestamp\": \"t\",\n    \"read\": "
	text := strings.TrimSuffix(string(whole), "\n]") + ",\n  " + last
	fill := 512 - 2 - (len(text)-len("%s"))%512 // false begins two bytes before a block's end
	text = fmt.Sprintf(text, strings.Repeat("x", fill)) + "false\n  }\n]"
	write(t, inboxPath(root), text)
	if !replaced(t, root, func() { takeMail(t, s.Mail()) }) {
		t.Error("a flag across two blocks was patched")
	}
	// Nor one that another program wrote between our reading and our marking.
	check(t, s.Mail().Post(t.Context(), faultBox, ordinary(1)))
	unread, err := s.Mail().Unread(t.Context(), faultBox)
	check(t, err)
	data, err := os.ReadFile(inboxPath(root))
	check(t, err)
	other := strings.Replace(string(data), `"from": "w9"`, `"from": "w99"`, 1)
	write(t, inboxPath(root), other)
	check(t, s.Mail().MarkRead(t.Context(), faultBox, ids(unread)))
	if got := plainInbox(t, root); got[longHistory]["from"] != "w99" || got[len(got)-1]["read"] != true {
		t.Errorf("the inbox ends with %v", got[longHistory:])
	}
}

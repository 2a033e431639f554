package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// setAside lists what is kept of a damaged file.
func setAside(t *testing.T, root layout.Root, path string) []string {
	t.Helper()
	_, aside := root.Damaged(path)
	found, err := filepath.Glob(aside + "-*")
	check(t, err)
	return found
}

// Whoever reads an inbox that is damaged gets what is whole of it, and loses
// nothing: a copy of the file is kept (facts: reliability-security R13).
func TestR13RepairingAnInbox(t *testing.T) {
	at := mailbox.Address{Team: "t", Agent: "w1"}
	whole := strings.TrimSuffix(inboxText(t), "\n]")
	for name, text := range map[string]string{
		"torn": whole + ",\n  {\n    \"from\": \"w", "garbage": inboxText(t) + "}", "NaN": whole + `,{"text":NaN}]`,
		"no array": `{"from":"a"}`, "binary": "\x00\x01",
	} {
		t.Run(name, func(t *testing.T) {
			root, s, w := warned(t)
			path := root.Inbox("t", "w1")
			write(t, path, text)
			unread, err := s.Mail().Unread(t.Context(), at)
			check(t, err)
			if want := strings.Count(text, `"read": false`); len(unread) != want {
				t.Errorf("%d messages are unread, want %d", len(unread), want)
			}
			w.say(t, path+" is unfinished or damaged")
			aside := setAside(t, root, path)
			if len(aside) != 1 {
				t.Fatalf("set aside: %v", aside)
			}
			same(t, aside[0], text)
			repaired, err := os.ReadFile(path)
			check(t, err)
			_, err = s.Mail().All(t.Context(), at) // it is sound now
			check(t, err)
			same(t, path, string(repaired))
			if again := setAside(t, root, path); len(again) != 1 {
				t.Errorf("set aside again: %v", again)
			}
		})
	}
}

// Another program's inboxes are looked at, and never changed.
func TestReadingWithoutRepair(t *testing.T) {
	root, s, w := warned(t, filestore.WithoutRepair())
	text := strings.TrimSuffix(inboxText(t), "]") + ", torn"
	path, at := root.Inbox("t", "w1"), mailbox.Address{Team: "t", Agent: "w1"}
	write(t, path, text)
	for range 2 {
		unread, err := s.Mail().Unread(t.Context(), at)
		check(t, err)
		if want := strings.Count(text, `"read": false`); len(unread) != want {
			t.Errorf("%d messages are unread, want %d", len(unread), want)
		}
	}
	w.say(t, path)
	same(t, path, text)
	if aside := setAside(t, root, path); len(aside) > 0 {
		t.Errorf("set aside: %q", aside)
	}
}

func TestReadingLeavesSoundInboxesAlone(t *testing.T) {
	root, s := quiet(t)
	path := root.Inbox("t", "w1")
	at := mailbox.Address{Team: "t", Agent: "w1"}
	_, err := s.Mail().Unread(t.Context(), at)
	check(t, err)
	if _, err := os.Lstat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing inbox was made: %v", err)
	}
	for _, text := range []string{inboxText(t), `[{"from":"a",  "text":"x"}]`, ""} {
		write(t, path, text)
		_, err := s.Mail().Unread(t.Context(), at)
		check(t, err)
		same(t, path, text)
	}
}

// A link in the place of a team's folder leads our writes nowhere (facts:
// reliability-security N02).
func TestN02NothingIsWrittenThroughALink(t *testing.T) {
	root, s := quiet(t)
	elsewhere := t.TempDir()
	check(t, s.Teams().Create(t.Context(), alphaTeam()))
	at := mailbox.Address{Team: "alpha-team", Agent: "w1"}
	check(t, s.Mail().Post(t.Context(), at, post("a", "x", "", "2026-11-21T03:18:26.309Z", "")))
	unread, err := s.Mail().Unread(t.Context(), at)
	check(t, err)
	folder := root.TeamDir("alpha-team")
	check(t, os.Rename(folder, filepath.Join(elsewhere, "team")))
	if err := os.Symlink(filepath.Join(elsewhere, "team"), folder); err != nil {
		t.Skip(err)
	}
	before := dump(t, layout.Root(elsewhere))
	for what, try := range map[string]func(*filestore.Store) error{
		"roster": func(s *filestore.Store) error {
			_, err := s.Teams().Update(t.Context(), "alpha-team", func(c *roster.Roster) error { c.Description = "x"; return nil })
			return err
		},
		"post": func(s *filestore.Store) error { return s.Mail().Post(t.Context(), at, post("a", "y", "", "", "")) },
		"mark": func(s *filestore.Store) error { return s.Mail().MarkRead(t.Context(), at, ids(unread)) },
		"seal": func(s *filestore.Store) error {
			return s.Seals().Seal(t.Context(), at, post("a", "y", "", "", ""), "")
		},
		"record": func(s *filestore.Store) error {
			return s.Records().Put(t.Context(), "alpha-team", "agent", "w1", []byte("{}"))
		},
		"place": func(s *filestore.Store) error {
			_, err := s.Presence().Enter(t.Context(), at)
			return err
		},
	} {
		if err := try(s); !errors.Is(err, fsx.ErrNotFolder) {
			t.Errorf("%s: %v", what, err)
		}
	}
	after := dump(t, layout.Root(elsewhere))
	if len(after) != len(before) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s was written", path)
		}
	}
}

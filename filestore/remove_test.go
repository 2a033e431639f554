package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// TestMarkReadDoesNotBringATeamBack: mail is marked read by whoever shows it, at
// the same time as somebody else removes the team.
func TestMarkReadDoesNotBringATeamBack(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	at := mailbox.Address{Team: "alpha", Agent: "w1"}
	for range 50 {
		check(t, s.Teams().Create(t.Context(), roster.Roster{Name: "alpha"}))
		check(t, s.Mail().Post(t.Context(), at, mailbox.Message{From: "w2", Text: "hi", Timestamp: "2026-11-21T03:18:26.309Z"}))
		unread, err := s.Mail().Unread(t.Context(), at)
		check(t, err)
		var both sync.WaitGroup
		both.Go(func() {
			if err := s.Mail().MarkRead(t.Context(), at, []mailbox.ID{unread[0].ID}); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := s.Teams().Remove(t.Context(), "alpha"); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if _, err := os.Lstat(root.TeamDir("alpha")); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the team's folder after its removal: %v", err)
		}
	}
}

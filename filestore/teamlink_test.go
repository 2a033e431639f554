package filestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// shownWorld is a team of ours, and the root of a program that is to find it.
func shownWorld(t *testing.T, options ...filestore.Option) (s *filestore.Store, root, other layout.Root) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	root = layout.Root(t.TempDir())
	s = filestore.New(root, options...)
	t.Cleanup(func() { s.Close() })
	if err := s.Teams().Create(t.Context(), roster.Roster{Name: "My Team!"}); err != nil {
		t.Fatal(err)
	}
	return s, root, layout.Root(filepath.Join(t.TempDir(), ".claude"))
}

func TestShowTeam(t *testing.T) {
	s, _, other := shownWorld(t)
	for range 2 {
		if err := s.ShowTeam(t.Context(), "My Team!", other); err != nil {
			t.Fatal(err)
		}
	}
	who := mailbox.Address{Team: "My Team!", Agent: "ann"}
	if err := s.Mail().Post(t.Context(), who, mailbox.Message{From: "bob", Text: "hello", Timestamp: "2026-11-21T03:17:35.846Z"}); err != nil {
		t.Fatal(err)
	}
	theirs := filestore.New(other)
	defer theirs.Close()
	if mail, err := theirs.Mail().Unread(t.Context(), who); err != nil || len(mail) != 1 {
		t.Errorf("they read %v, %v", mail, err)
	}
	if err := os.WriteFile(filepath.Join(other.TaskList("My Team!"), ".lock"), nil, 0o600); err != nil {
		t.Errorf("they cannot write to the task list: %v", err)
	}
	if seen, err := theirs.Teams().List(t.Context()); err != nil || len(seen) > 0 {
		t.Errorf("the team is listed twice: %v, %v", seen, err)
	}

	if err := s.Teams().Remove(t.Context(), "My Team!"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{other.TeamDir("My Team!"), other.TaskList("My Team!")} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after the team %s is there: %v", path, err)
		}
	}
}

// What stands there of the other program stays, also when the team goes.
func TestShowTeamBesideAnother(t *testing.T) {
	s, _, other := shownWorld(t)
	if err := os.MkdirAll(other.TeamDir("My Team!"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.ShowTeam(t.Context(), "My Team!", other); !errors.Is(err, filestore.ErrOccupied) {
		t.Errorf("shown over another team: %v", err)
	}
	if err := s.Teams().Remove(t.Context(), "My Team!"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(other.TeamDir("My Team!")); err != nil {
		t.Errorf("their team is gone: %v", err)
	}
}

// The link of a team that was removed by hand gives way; the own root by another
// path needs none.
func TestShowTeamInOddRoots(t *testing.T) {
	s, root, other := shownWorld(t)
	if err := os.MkdirAll(other.TeamsDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "gone"), other.TeamDir("My Team!")); err != nil {
		t.Fatal(err)
	}
	if err := s.ShowTeam(t.Context(), "My Team!", other); err != nil {
		t.Error(err)
	}
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(string(root), alias); err != nil {
		t.Fatal(err)
	}
	if err := s.ShowTeam(t.Context(), "My Team!", layout.Root(alias)); err != nil {
		t.Error(err)
	}
	if err := s.Teams().Remove(t.Context(), "My Team!"); err != nil {
		t.Fatal(err)
	}
}

// Whatever call fails: after another try and the removal nothing is left.
func TestShowTeamFails(t *testing.T) {
	faulty := &fsx.Faulty{FS: fsx.OS}
	for n := 1; ; n++ {
		faulty.Decide = nil
		s, _, other := shownWorld(t, filestore.WithFS(faulty))
		calls := faulty.Calls()
		faulty.Decide = fsx.FailNth(calls+n, fsx.Fault{Err: errors.New("no")})
		failed := s.ShowTeam(t.Context(), "My Team!", other)
		through := faulty.Calls() < calls+n
		faulty.Decide = nil
		if failed == nil && !through {
			if _, err := os.Stat(other.TeamConfig("My Team!")); err != nil {
				t.Errorf("call %d failed in silence: %v", n, err)
			}
		}
		if err := s.ShowTeam(t.Context(), "My Team!", other); err != nil {
			t.Errorf("after a failure of call %d: %v", n, err)
		}
		if err := s.Teams().Remove(t.Context(), "My Team!"); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(string(other) + "/*/*"); len(left) > 0 {
			t.Errorf("after a failure of call %d these are left: %q", n, left)
		}
		if through {
			return
		}
	}
}

//go:build unix

package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// leaveLock leaves the lock of target as who is killed under it does; mode is that of
// the lock folder, which says whose it is.
func leaveLock(t *testing.T, root layout.Root, target string, mode fs.FileMode) {
	t.Helper()
	check(t, os.Mkdir(target+dirlock.Suffix, mode))
	host, err := os.Hostname()
	check(t, err)
	_, queue := root.LockQueue(target)
	check(t, os.MkdirAll(filepath.Dir(queue), 0o700))
	check(t, os.WriteFile(queue, []byte(host), 0o600))
}

// Whoever comes into a team gives back the locks that a dead process of ours has left
// there: another program would wait for them. It leaves alone what is not ours.
func TestWhoEntersGivesBackTheLocksOfTheDead(t *testing.T) {
	const ours, others = 0o600, 0o755
	root, s := quiet(t)
	check(t, makeTeam(t.Context(), s))
	check(t, makeTasks(t.Context(), s))
	check(t, postNumber(t.Context(), s, 1))
	other := mailbox.Address{Team: faultBox.Team, Agent: "other"}
	check(t, s.Mail().Post(t.Context(), other, ordinary(1)))
	left := []string{root.TeamConfig("t"), inboxPath(root), filepath.Join(root.TaskList("t"), ".lock"), filepath.Join(root.TaskList("t"), "1.json")}
	for _, target := range left {
		leaveLock(t, root, target, ours)
	}
	leaveLock(t, root, root.Inbox(other.Team, other.Agent), others)

	leave, err := s.Presence().Enter(t.Context(), mailbox.Address{Team: "t", Agent: "team-lead"})
	check(t, err)
	check(t, leave())
	for _, target := range left {
		if _, err := os.Lstat(target + dirlock.Suffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the lock of %s is still there: %v", target, err)
		}
	}
	if _, err := os.Lstat(root.Inbox(other.Team, other.Agent) + dirlock.Suffix); err != nil {
		t.Errorf("the lock of another program: %v", err)
	}
	if unread, err := s.Mail().Unread(t.Context(), faultBox); err != nil || len(unread) != 1 {
		t.Errorf("unread %+v, %v", unread, err)
	}
}

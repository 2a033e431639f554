package filestore_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

// shared says what may stand in the folders that other programs list (golden: 02,
// 03, 05, 09); a folder is named by a pattern below the root. What is ours alone lies
// in folders called cadre.
var shared = map[string]*regexp.Regexp{
	".":               regexp.MustCompile(`^(teams|tasks|projects|cadre)$`),
	"teams":           regexp.MustCompile(`^[a-z0-9-]+$`),
	"teams/*":         regexp.MustCompile(`^(config\.json|inboxes|cadre)$`),
	"teams/*/inboxes": regexp.MustCompile(`^[A-Za-z0-9_-]+\.json$`),
	"tasks":           regexp.MustCompile(`^[a-z0-9-]+$`),
	"tasks/*":         regexp.MustCompile(`^(\.lock|\.highwatermark|[0-9]+\.json)$`),
}

// noLitter checks that nothing else stands there, hidden or not.
func noLitter(t *testing.T, root layout.Root, where string) {
	t.Helper()
	for pattern, allowed := range shared {
		folders, err := filepath.Glob(filepath.Join(string(root), filepath.FromSlash(pattern)))
		check(t, err)
		for _, folder := range folders {
			if path.Base(pattern) != "inboxes" && filepath.Base(folder) == "cadre" {
				continue
			}
			entries, err := os.ReadDir(folder)
			if err != nil {
				continue // a file
			}
			for _, e := range entries {
				if !allowed.MatchString(e.Name()) {
					t.Errorf("%s: litter: %s", where, filepath.Join(folder, e.Name()))
				}
			}
		}
	}
}

// A team lives from its first task to its end: at no step does anything of ours stand
// in a folder that other programs list.
func TestNoLitterInAWholeLife(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	var leave func() error
	steps := []struct {
		what string
		do   func(context.Context, *filestore.Store) error
	}{
		{"create the team", makeTeam},
		{"enter", func(ctx context.Context, s *filestore.Store) (err error) {
			leave, err = s.Presence().Enter(ctx, faultBox)
			return err
		}},
		{"reset the list", func(ctx context.Context, s *filestore.Store) error { return s.Tasks().Reset(ctx, "t") }},
		{"create tasks", makeFreeTasks},
		{"claim", func(ctx context.Context, s *filestore.Store) error {
			_, _, err := s.Tasks().Claim(ctx, "t", "w1")
			return err
		}},
		{"update", update("2", task.Change{Subject: ptr("new"), AddBlocks: []string{"3"}})},
		{"delete", update("2", task.Change{Status: ptr(task.Deleted)})},
		{"release", func(ctx context.Context, s *filestore.Store) error {
			_, err := s.Tasks().Release(ctx, "t", "w1")
			return err
		}},
		{"post", func(ctx context.Context, s *filestore.Store) error { return postNumber(ctx, s, 1) }},
		{"post to nobody's team", func(ctx context.Context, s *filestore.Store) error {
			return s.Mail().Post(ctx, mailbox.Address{Agent: "w1"}, ordinary(1))
		}},
		{"mark read", func(ctx context.Context, s *filestore.Store) error {
			unread, err := s.Mail().Unread(ctx, faultBox)
			if err != nil {
				return err
			}
			return s.Mail().MarkRead(ctx, faultBox, ids(unread))
		}},
		{"seal", func(ctx context.Context, s *filestore.Store) error {
			return s.Seals().Seal(ctx, faultBox, ordinary(1), "")
		}},
		{"record", func(ctx context.Context, s *filestore.Store) error {
			return s.Records().Put(ctx, "t", roster.RecordAgent, "w1", []byte("{}"))
		}},
		{"ask", layAsk("q1")},
		{"leave", func(context.Context, *filestore.Store) error { return leave() }},
		{"remove the list", func(ctx context.Context, s *filestore.Store) error { return s.Tasks().Remove(ctx, "t") }},
		{"remove the team", func(ctx context.Context, s *filestore.Store) error { return s.Teams().Remove(ctx, "t") }},
	}
	for _, step := range steps {
		if err := step.do(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		noLitter(t, root, step.what)
	}
	for _, folder := range []string{root.TaskList("t"), root.TeamDir("t"), filepath.Join(root.OwnDir(), "locks", "tasks", "t")} {
		if _, err := os.Lstat(folder); err == nil {
			t.Errorf("%s is left", folder)
		}
	}
}

// killRounds is how often a child that is to be killed does its action, and how many
// tasks it finds.
const killRounds = 3

func makeFreeTasks(ctx context.Context, s *filestore.Store) error {
	for range killRounds {
		if _, err := s.Tasks().Create(ctx, "t", task.Task{Subject: "free"}); err != nil {
			return err
		}
	}
	return nil
}

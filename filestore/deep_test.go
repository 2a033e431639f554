package filestore_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
)

// What somebody nested deeply in a field that we only keep must not grow when we
// write the file.
func TestDeepFieldsDoNotGrow(t *testing.T) {
	deep := `"x-deep": ` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	at := mailbox.Address{Team: "t", Agent: "w1"}
	for what, tt := range map[string]struct {
		path   func(layout.Root) string
		text   string
		change func(*testing.T, *filestore.Store) error
	}{
		"inbox": {
			func(r layout.Root) string { return r.Inbox("t", "w1") }, `[{"from":"a","text":"b","read":false,` + deep + `}]`,
			func(t *testing.T, s *filestore.Store) error {
				unread, err := s.Mail().Unread(t.Context(), at)
				check(t, err)
				return s.Mail().MarkRead(t.Context(), at, ids(unread))
			},
		},
		"task": {
			func(r layout.Root) string { return r.Task("t", "1") },
			`{"id":"1","subject":"s","description":"","status":"pending","blocks":[],"blockedBy":[],` + deep + `}`,
			func(t *testing.T, s *filestore.Store) error {
				_, err := s.Tasks().Update(t.Context(), "t", "1", task.Change{Subject: ptr("other")})
				return err
			},
		},
		"roster": {
			func(r layout.Root) string { return r.TeamConfig("t") }, `{"name":"t","members":[{"agentId":"a@t",` + deep + `}],` + deep + `}`,
			func(t *testing.T, s *filestore.Store) error {
				_, err := s.Teams().Update(t.Context(), "t", func(c *roster.Roster) error {
					c.Members[0].Model = "m"
					return nil
				})
				return err
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			root, s := quiet(t)
			path := tt.path(root)
			write(t, path, tt.text)
			check(t, tt.change(t, s))
			info, err := os.Stat(path)
			check(t, err)
			if info.Size() > 2*int64(len(tt.text)) {
				t.Errorf("%d bytes became %d", len(tt.text), info.Size())
			}
		})
	}
}

package filestore_test

import (
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/storetest"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runAsChild()
	goleak.VerifyTestMain(m)
}

// open makes a store that is closed with the test, and fails it on a warning
// unless the test expects one.
func open(t testing.TB, root layout.Root, options ...filestore.Option) *filestore.Store {
	t.Helper()
	s := filestore.New(root, options...)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func pair(t *testing.T) (a, b *filestore.Store) {
	root := layout.Root(t.TempDir())
	quiet := filestore.WithWarn(func(err error) { t.Errorf("warning: %v", err) })
	return open(t, root, quiet), open(t, root, quiet, filestore.WithSync(true), filestore.WithPoll(50*time.Millisecond))
}

func TestConformance(t *testing.T) {
	t.Run("mailbox", func(t *testing.T) {
		storetest.Mailbox(t, func(t *testing.T) (mailbox.Store, mailbox.Store) {
			a, b := pair(t)
			return a.Mail(), b.Mail()
		})
	})
	t.Run("task", func(t *testing.T) {
		storetest.Tasks(t, func(t *testing.T) (task.Store, task.Store) {
			a, b := pair(t)
			return a.Tasks(), b.Tasks()
		})
	})
	t.Run("team", func(t *testing.T) {
		storetest.Teams(t, func(t *testing.T) (roster.Store, roster.Store) {
			a, b := pair(t)
			return a.Teams(), b.Teams()
		})
	})
	t.Run("transcript", func(t *testing.T) {
		storetest.Transcripts(t, func(t *testing.T) (transcript.Store, transcript.Store) {
			a, b := pair(t)
			return a.Transcripts(), b.Transcripts()
		})
	})
	t.Run("ask", func(t *testing.T) {
		storetest.Asks(t, func(t *testing.T) (ask.Store, func() ask.Store) {
			a, b := pair(t)
			ref := transcript.Ref{Project: "/p", Session: "s"}
			return a.Asks(ref), func() ask.Store { return b.Asks(ref) }
		})
	})
	t.Run("job", func(t *testing.T) {
		storetest.Jobs(t, func(t *testing.T) (first, second func(transcript.Ref) job.Store) {
			a, b := pair(t)
			return a.Jobs, b.Jobs
		})
	})
	states := func(t *testing.T) (storetest.State, storetest.State) { return pair(t) }
	t.Run("seals", func(t *testing.T) { storetest.Seals(t, states) })
	t.Run("records", func(t *testing.T) { storetest.Records(t, states) })
	t.Run("presence", func(t *testing.T) { storetest.Presence(t, states) })
	t.Run("desk", func(t *testing.T) {
		storetest.Desk(t, func(t *testing.T) (storetest.State, storetest.State) {
			root := layout.Root(t.TempDir()) // an answer to another question is warned of
			return open(t, root), open(t, root, filestore.WithSync(true), filestore.WithPoll(50*time.Millisecond))
		})
	})
}

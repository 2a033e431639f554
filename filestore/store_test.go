package filestore_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/race"
	"github.com/cadre-dev/cadre/internal/storetest"
)

func TestMain(m *testing.M) {
	runAsChild()
	if race.Enabled { // it finds nothing in what one goroutine does; all checks run without it
		if err := flag.Set("rapid.checks", "20"); err != nil {
			panic(err)
		}
	}
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

// pair opens a root twice, as two processes do. Neither has anything to warn of, but of
// an answer that was sealed for another question.
func pair(t *testing.T) (a, b *filestore.Store) {
	root := layout.Root(t.TempDir())
	quiet := filestore.WithWarn(func(err error) {
		if !strings.Contains(err.Error(), "has no seal of ours for this question") {
			t.Errorf("warning: %v", err)
		}
	})
	return open(t, root, quiet), open(t, root, quiet, filestore.WithSync(true), filestore.WithPoll(50*time.Millisecond))
}

func TestConformance(t *testing.T) { storetest.All(t, pair) }

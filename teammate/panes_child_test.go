//go:build unix

package teammate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// mateVariable makes the test binary a teammate in a pane: "mode root".
const mateVariable = "CADRE_TEST_MATE"

// mateSeen is what a teammate found when it began.
type mateSeen struct {
	Args   []string
	Env    map[string][]byte
	Cwd    string
	Unread []mailbox.Message
	PaneID string // on the roster
}

func init() {
	if os.Getenv(mateVariable) == "" {
		return
	}
	if err := runAsMate(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runAsMate is a teammate: it writes down what it sees, checks in, and ends when
// a line is typed into its pane: "exit 3" with that code.
func runAsMate() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mode, root, _ := strings.Cut(os.Getenv(mateVariable), " ")
	s := filestore.New(layout.Root(root))
	who := mailbox.Address{Team: flagValue("--team-name"), Agent: flagValue("--agent-name")}
	if err := writeSeen(ctx, s, who, root); err != nil {
		return err
	}
	switch mode {
	case "silent":
		fmt.Println("I say nothing to my lead.")
		<-ctx.Done()
	case "foreign":
		unread, err := s.Mail().Unread(ctx, who)
		if err != nil {
			return err
		}
		for _, m := range unread {
			if err := s.Mail().MarkRead(ctx, who, []mailbox.ID{m.ID}); err != nil {
				return err
			}
		}
	case "deaf":
		signal.Ignore(syscall.SIGHUP)
		fallthrough
	default:
		leave, err := s.Presence().Enter(ctx, who)
		if err != nil {
			return err
		}
		defer leave()
	}
	var code int
	if _, err := fmt.Scanf("exit %d\n", &code); err != nil && mode == "deaf" {
		<-ctx.Done() // the terminal is gone, and that is ignored as well
	}
	os.Exit(code)
	return nil
}

func flagValue(name string) string {
	if at := slices.Index(os.Args, name); at >= 0 && at+1 < len(os.Args) {
		return os.Args[at+1]
	}
	return ""
}

func writeSeen(ctx context.Context, s *filestore.Store, who mailbox.Address, root string) error {
	seen := mateSeen{Args: os.Args[1:], Env: make(map[string][]byte)}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		seen.Env[name] = []byte(value)
	}
	var err error
	if seen.Cwd, err = os.Getwd(); err != nil {
		return err
	}
	if seen.Unread, err = s.Mail().Unread(ctx, who); err != nil {
		return err
	}
	config, err := s.Teams().Load(ctx, who.Team)
	if err != nil {
		return err
	}
	if m := config.Find(who.Agent); m != nil {
		seen.PaneID = m.PaneID
	}
	data, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, who.Agent+".seen"), data, 0o600)
}

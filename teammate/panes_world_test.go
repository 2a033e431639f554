//go:build unix

package teammate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
	"github.com/cadre-dev/cadre/tool"
)

// paneWorld is a team that is led from a pane of a tmux server of the test's own,
// over files. Its teammates are this test binary.
type paneWorld struct {
	*team.Teams
	files  *filestore.Store
	panes  *teammate.Panes
	cfg    teammate.PanesConfig
	root   string
	socket string
	lead   string // the lead's pane
	vars   []string
	by     tool.Caller // the lead
	gone   chan string // "who: why"
	told   []string
}

func newPaneWorld(t *testing.T, mode string, change ...func(*teammate.PanesConfig)) *paneWorld {
	t.Helper()
	w := &paneWorld{root: t.TempDir(), gone: make(chan string, 10)}
	w.by = tool.Caller{SessionID: "session-1", Model: "model-1"}
	w.by.Cwd = w.root
	w.startTmux(t)
	w.files = filestore.New(layout.Root(w.root))
	t.Cleanup(func() { w.files.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.cfg = teammate.PanesConfig{
		Dir: filepath.Join(w.root, "start"),
		Program: teammate.Program{
			Command: []string{self},
			Env:     append(os.Environ(), mateVariable+"="+mode+" "+w.root, "TMUX=of the lead", "TMUX_PANE=%lead"),
		},
		PaneStores: teammate.PaneStores{Mail: w.files.Mail(), Records: w.files.Records(), Presence: w.files.Presence()},
		PaneTiming: teammate.PaneTiming{Poll: 10 * time.Millisecond, Check: 20 * time.Millisecond},
		Gone: func(ctx context.Context, who mailbox.Address, why string) error {
			if err := w.Teams.Gone(ctx, who, why); err != nil {
				return err
			}
			w.gone <- who.Agent + ": " + why
			return nil
		},
		Notify: func(text string) { w.told = append(w.told, text) },
	}
	for _, f := range change {
		f(&w.cfg)
	}
	if w.cfg.Terminal == nil {
		w.cfg.Terminal = w.terminal(t)
	}
	w.restart(t)
	if _, err := w.Create(t.Context(), w.by, "alpha", "", ""); err != nil {
		t.Fatal(err)
	}
	return w
}

// restart makes the lead anew, as another process would be.
func (w *paneWorld) restart(t *testing.T) {
	t.Helper()
	w.cfg.Rosters = roster.NewRepairingStore(w.files.Teams(), w.files.Records())
	w.panes = teammate.NewPanes(w.cfg)
	w.Teams = team.New(team.Options{
		Store: w.cfg.Rosters, Mail: w.files.Mail(), Tasks: w.files.Tasks(), Backend: w.panes,
		Seals: w.files.Seals(), Records: w.files.Records(), Presence: w.files.Presence(),
	})
	panes := w.panes
	t.Cleanup(func() {
		if err := panes.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func (w *paneWorld) startTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CADRE_TEST_ALL") != "" {
			t.Fatal(err)
		}
		t.Skip("no tmux: ", err)
	}
	dir, err := os.MkdirTemp("", "panes") // short: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMUX_TMPDIR", dir)
	t.Setenv("TMUX", "")
	name := "cadre-test-" + ids.Hex(8)
	start := exec.Command("tmux", "-L", name, "-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "50",
		"-P", "-F", "#{pane_id} #{socket_path} #{pid}", "cat")
	start.Env = append(os.Environ(), "OF_ANOTHER_DAY=1")
	out, err := start.Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", name, "kill-server").Run() })
	fields := strings.Fields(string(out))
	w.lead, w.socket = fields[0], fields[1]
	w.vars = append(os.Environ(), "TMUX="+w.socket+","+fields[2]+",0", "TMUX_PANE="+w.lead)
}

func (w *paneWorld) terminal(t *testing.T) pane.Terminal {
	t.Helper()
	choice, err := pane.NewDetector(pane.Environment{Vars: w.vars}).Choose(t.Context(), pane.Tmux)
	if err != nil {
		t.Fatal(err)
	}
	return choice.Terminal
}

func (w *paneWorld) tmux(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("tmux", append([]string{"-S", w.socket}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tmux %q: %v: %s", args, err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// open lists the panes of the server other than the lead's.
func (w *paneWorld) open(t *testing.T) []string {
	t.Helper()
	var panes []string
	for id := range strings.FieldsSeq(w.tmux(t, "list-panes", "-a", "-F", "#{pane_id}")) {
		if id != w.lead {
			panes = append(panes, id)
		}
	}
	return panes
}

func (w *paneWorld) spawn(t *testing.T, name string) roster.Member {
	t.Helper()
	spawned, err := w.Spawn(t.Context(), w.by, team.SpawnRequest{
		Name: name, AgentType: "general-purpose", Prompt: "Do it.", Description: "the work",
	})
	if err != nil {
		t.Fatal(err)
	}
	return w.member(t, spawned.Member.Name)
}

// member is a member of alpha as the roster has it.
func (w *paneWorld) member(t *testing.T, name string) roster.Member {
	t.Helper()
	config, err := w.files.Teams().Load(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	m := config.Find(name)
	if m == nil {
		t.Fatalf("%s is not on the roster", name)
	}
	return *m
}

func (w *paneWorld) seen(t *testing.T, name string) mateSeen {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, name+".seen"))
	var seen mateSeen
	if err == nil {
		err = json.Unmarshal(data, &seen)
	}
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// recorded reports whether a pane of an agent is on record.
func (w *paneWorld) recorded(t *testing.T, name string) bool {
	t.Helper()
	_, err := w.files.Records().Get(t.Context(), "alpha", roster.RecordPane, name)
	if err != nil && !errors.Is(err, roster.ErrNoRecord) {
		t.Fatal(err)
	}
	return err == nil
}

// startFiles lists what is left of start files.
func (w *paneWorld) startFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.cfg.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func at(name string) mailbox.Address { return mailbox.Address{Team: "alpha", Agent: name} }

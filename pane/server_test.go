//go:build unix

package pane_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/pane"
)

// server is a tmux server of the test's own, with the pane that a lead would run
// in.
type server struct {
	name, socket, lead string
	vars               []string // the environment of a program in that pane
}

// needTmux skips a test where there is no tmux, unless everything has to run.
func needTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CADRE_TEST_ALL") != "" {
			t.Fatal(err)
		}
		t.Skip("no tmux: ", err)
	}
}

func startServer(t *testing.T) *server {
	t.Helper()
	needTmux(t)
	t.Setenv("TMUX_TMPDIR", shortDir(t))
	t.Setenv("TMUX", "")
	s := &server{name: "cadre-test-" + ids.Hex(8)}
	s.restart(t)
	return s
}

// shortDir is a folder whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pane")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// restart starts the server, again when it was killed.
func (s *server) restart(t *testing.T) {
	t.Helper()
	out := tmux(t, "-L", s.name, "-f", "/dev/null", "new-session", "-d", "-s", "user", "-x", "200", "-y", "50",
		"-P", "-F", "#{pane_id} #{socket_path} #{pid}", "cat")
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", s.name, "kill-server").Run() })
	fields := strings.Fields(out)
	s.lead, s.socket = fields[0], fields[1]
	s.vars = append(os.Environ(), "TMUX="+s.socket+","+fields[2]+",0", "TMUX_PANE="+s.lead)
}

func (s *server) tmux(t *testing.T, args ...string) string {
	t.Helper()
	return tmux(t, append([]string{"-S", s.socket}, args...)...)
}

func tmux(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("tmux", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tmux %q: %v: %s", args, err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// terminal is the terminal that a program in the lead's pane gets.
func (s *server) terminal(t *testing.T) pane.Terminal {
	t.Helper()
	choice, err := pane.NewDetector(pane.Environment{Vars: s.vars}).Choose(t.Context(), pane.Auto)
	if err != nil || choice.Terminal == nil {
		t.Fatalf("auto inside tmux: %+v, %v", choice, err)
	}
	return choice.Terminal
}

// wait blocks until a script says the word.
func (s *server) wait(t *testing.T, word string) {
	t.Helper()
	s.tmux(t, "wait-for", word)
}

// script writes a shell script.
func script(t *testing.T, format string, args ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's a; script")
	if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, terminal pane.Terminal, s pane.Spec) pane.Place {
	t.Helper()
	if s.Script == "" {
		s.Script = script(t, "exec cat")
	}
	p, err := terminal.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func alive(t *testing.T, terminal pane.Terminal, places ...pane.Place) []bool {
	t.Helper()
	found, err := terminal.Alive(t.Context(), places)
	if err != nil {
		t.Fatal(err)
	}
	var list []bool
	for _, p := range places {
		list = append(list, found[p])
	}
	return list
}

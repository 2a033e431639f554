//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/internal/layout"
)

const (
	watchedRoster = `{"name": "gamma", "createdAt": 1770000000000, "leadAgentId": "team-lead@gamma", "leadSessionId": "x", "members": [
		{"agentId": "team-lead@gamma", "name": "team-lead", "agentType": "team-lead", "model": "m", "joinedAt": 1, "tmuxPaneId": "", "cwd": "/w", "subscriptions": []}]}`
	watchedTask = `{"id": "1", "subject": "parse", "description": "d", "status": "pending", "blocks": [], "blockedBy": [], "metadata": {"check": "go test ./x",
		"checked": {"command": "go test ./x", "passed": false, "exitCode": 2, "output": "FAIL two\n", "by": "ann", "at": "2026-01-02T03:04:05Z"}}}`
	watchedMail = `[{"from": "team-lead", "text": "hello\u001b[2J", "timestamp": "2026-01-02T03:04:05.678Z", "read": true}]`
)

// watchedTeam writes a team, with mail of somebody who has left, into an
// environment of its own.
func watchedTeam(t *testing.T, extra ...string) (env []string) {
	t.Helper()
	env = environment(t, extra...)
	var root layout.Root
	for _, entry := range env {
		if home, ok := strings.CutPrefix(entry, "CADRE_HOME="); ok {
			root = layout.Root(home)
		}
	}
	for path, text := range map[string]string{
		root.TeamConfig("gamma"): watchedRoster, root.Inbox("gamma", "bob"): watchedMail, filepath.Join(root.TasksDir(), "gamma", "1.json"): watchedTask,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return env
}

// What is no terminal gets a line for each change, until the team is gone.
func TestWatchTellsLines(t *testing.T) {
	env := watchedTeam(t)
	watch, _, stderr := command(t, env, "team", "watch", "gamma")
	watch.Stdout = nil
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	for _, want := range []string{
		" ● team-lead closed", " ☐ #1 parse  ✗ not proved, exit code 2 at ", " ✉ team-lead → bob: hello",
	} {
		if line := within(t, want, lines); !strings.Contains(line, want) || strings.Contains(line, "\x1b") {
			t.Errorf("%q, want %q", line, want)
		}
	}
	send, _, _ := command(t, env, "team", "send", "gamma", "team-lead", "go on")
	if err := send.Run(); err != nil {
		t.Fatal(err)
	}
	if line := within(t, "mail", lines); !strings.HasSuffix(line, " ✉ user → team-lead: go on") {
		t.Errorf("after a message: %q", line)
	}
	remove, _, _ := command(t, env, "team", "rm", "gamma", "--yes")
	if err := remove.Run(); err != nil {
		t.Fatal(err)
	}
	last := ""
	for line := range lines {
		last = line
	}
	if code := exitCode(t, watch); code != exitDone || last != "The team is gone." {
		t.Errorf("exit code %d after %q; stderr:\n%s", code, last, stderr)
	}
}

// On a terminal the picture is drawn anew where it stands, and stays when the
// person leaves.
func TestWatchDraws(t *testing.T) {
	env := watchedTeam(t)
	x := openTerminal(t, env, "team", "watch", "gamma")
	x.wait("gamma  closed  0/1 done")
	x.wait("☐ #1 parse  ✗ not proved, exit code 2 at ")
	x.wait("✉ team-lead → bob: hello")
	x.wait("Ctrl+C leaves")
	send, _, _ := command(t, env, "team", "send", "gamma", "team-lead", "go on")
	if err := send.Run(); err != nil {
		t.Fatal(err)
	}
	x.wait("\x1b[9A")
	x.wait("✉ user → team-lead: go on")
	x.wait("Ctrl+C leaves")
	x.enter(ctrlC)
	if code := exitCode(t, x.cmd); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	if shown := x.shown(); strings.Contains(shown, "\x1b[2J") || strings.Contains(shown, "\x1b[3J") {
		t.Errorf("it clears the terminal: %q", shown)
	}
}

// Whoever read the lines has left: the watch ends at the next one.
func TestWatchWithoutAReader(t *testing.T) {
	env := watchedTeam(t)
	watch, _, stderr := command(t, env, "team", "watch", "gamma")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	watch.Stdout = w
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := io.ReadAtLeast(r, make([]byte, 1), 1); err != nil {
		t.Fatal(err)
	}
	r.Close()
	send, _, _ := command(t, env, "team", "send", "gamma", "team-lead", "go on")
	if err := send.Run(); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, watch); code != exitNoReader || stderr.Len() > 0 {
		t.Errorf("exit code %d; stderr:\n%s", code, stderr)
	}
}

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// startWatch starts a watch whose lines can be received; the channel is closed at its end.
func startWatch(t *testing.T, env []string, flags ...string) (watch *exec.Cmd, lines <-chan string, stderr *bytes.Buffer) {
	t.Helper()
	watch, _, stderr = command(t, env, append([]string{"team", "watch", "gamma"}, flags...)...)
	watch.Stdout = nil
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	all := make(chan string, 100)
	go func() {
		defer close(all)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			all <- scan.Text()
		}
	}()
	return watch, all, stderr
}

// What is no terminal gets a line for each change, until the team is gone.
func TestWatchTellsLines(t *testing.T) {
	env := watchedTeam(t)
	watch, lines, stderr := startWatch(t, env)
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

// A person at the terminal leaves with q as well.
func TestQLeavesAWatch(t *testing.T) {
	x := openTerminal(t, watchedTeam(t), "team", "watch", "gamma")
	x.wait("q or Ctrl+C leaves")
	x.enter("q")
	if code := exitCode(t, x.cmd); code != exitDone {
		t.Errorf("exit code %d", code)
	}
}

// A script can wait for the end of a run whose team stays on disk.
func TestWatchUntilClosed(t *testing.T) {
	env := watchedTeam(t)
	for _, flags := range [][]string{{"--until-closed"}, {"--until-closed", "--json"}} {
		watch, lines, stderr := startWatch(t, env, flags...)
		last := ""
		for line := range lines {
			last = line
		}
		if code := exitCode(t, watch); code != exitDone || stderr.Len() > 0 {
			t.Errorf("%q: exit code %d after %q; stderr:\n%s", flags, code, last, stderr)
		}
		if len(flags) == 1 && last != "The team is closed: no process leads it." {
			t.Errorf("the last line is %q", last)
		}
	}
}

// Programs get everything there is, then each change, an object a line.
func TestWatchTellsPrograms(t *testing.T) {
	env := watchedTeam(t)
	watch, lines, stderr := startWatch(t, env, "--json")
	next := func() (c teamChange) {
		t.Helper()
		line := within(t, "a change", lines)
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.At.IsZero() {
			t.Fatalf("%v: %s", err, line)
		}
		return c
	}
	if c := next(); c.Kind != teamChanged || c.Team.Name != "gamma" || len(c.Team.Members) != 1 {
		t.Errorf("the team is %+v", c.Team)
	}
	if c := next(); c.Kind != taskChanged || c.Task.ID != "1" || c.Task.Status != "pending" {
		t.Errorf("the task is %+v", c.Task)
	}
	if c := next(); c.Kind != mailArrived || c.Mail.To != "bob" || c.Mail.Text != "hello\x1b[2J" {
		t.Errorf("the mail is %+v", c.Mail)
	}
	send, _, _ := command(t, env, "team", "send", "gamma", "team-lead", "go on")
	if err := send.Run(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []teamChange{next(), next()} { // in either order: they are read one after the other
		switch {
		case c.Kind == teamChanged && c.Team.Members[0].Unread == 1:
		case c.Kind == mailArrived && c.Mail.From == "user" && !c.Mail.Read:
		default:
			t.Errorf("after a message: %+v", c)
		}
	}
	remove, _, _ := command(t, env, "team", "rm", "gamma", "--yes")
	if err := remove.Run(); err != nil {
		t.Fatal(err)
	}
	last := ""
	for line := range lines {
		last = line
	}
	if code := exitCode(t, watch); code != exitDone || !strings.Contains(last, `"kind":"teamRemoved"`) {
		t.Errorf("exit code %d after %q; stderr:\n%s", code, last, stderr)
	}
}

// A person leaves a watch with Ctrl+C; what a supervisor sends is an end like any other.
func TestSignalsEndAWatch(t *testing.T) {
	env := watchedTeam(t)
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: exitDone, syscall.SIGTERM: exitTerminated} {
		watch, lines, stderr := startWatch(t, env, "--json")
		within(t, "the first line", lines)
		if err := watch.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		for line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("%v: not a whole line: %q", signal, line)
			}
		}
		if code := exitCode(t, watch); code != want || stderr.Len() > 0 {
			t.Errorf("%v: exit code %d, want %d; stderr:\n%s", signal, code, want, stderr)
		}
	}
}

// Whoever read the lines has left: the watch ends, also when nothing changes any more.
func TestWatchWithoutAReader(t *testing.T) {
	for _, flags := range [][]string{nil, {"--json"}} {
		watch, _, stderr := command(t, watchedTeam(t), append([]string{"team", "watch", "gamma"}, flags...)...)
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
		if code := exitCode(t, watch); code != exitNoReader || stderr.Len() > 0 {
			t.Errorf("%q: exit code %d; stderr:\n%s", flags, code, stderr)
		}
	}
}

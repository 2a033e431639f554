//go:build unix

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// deafTeam is a lead with a teammate of this process that is at work and answers to
// nothing, also not to the request to end.
const deafTeam = `{"rules": [
	{"when": {"role": "teammate"}, "calls": [{"tool": "Bash", "input": {"command": "trap '' TERM; echo up > up.fifo; sleep 1000"}}]},
	{"when": {"not": {"done": {"tool": "TeamCreate"}}}, "calls": [{"tool": "TeamCreate", "input": {"team_name": "deaf"}}]},
	{"when": {"not": {"done": {"tool": "Agent"}}}, "calls": [{"tool": "Agent", "input": {
		"name": "ann", "description": "d", "prompt": "Work.", "subagent_type": "general-purpose"}}]},
	{"say": "I wait."}
]}`

// A supervisor that sends SIGTERM kills soon after: nobody is asked to end, whatever
// the team does.
func TestATerminatedTeamIsNotAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deaf.jsonc")
	if err := os.WriteFile(path, []byte(deafTeam), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment(t)
	cmd, _, stderr := command(t, env, "-p", "go", "--model", "scripted:"+path, "--dangerously-skip-permissions")
	fifo := filepath.Join(cmd.Dir, "up.fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(fifo)
		up <- err
	}()
	if err := within(t, "the teammate's command", up); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := exitCode(t, cmd); got != exitTerminated {
		t.Errorf("exit code %d; stderr:\n%s", got, stderr)
	}
	inbox, err := os.ReadFile(filepath.Join(homeOf(env), "teams", "deaf", "inboxes", "ann.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if strings.Contains(string(inbox), "shutdown_request") {
		t.Errorf("the teammate was asked to end: %s", inbox)
	}
	if text := rosterOf(t, env, "deaf"); !strings.Contains(text, `"ann"`) {
		t.Errorf("the team is not there to be resumed: %s", text)
	}
}

// silentTeam is a lead with a teammate that never answers the request to end.
const silentTeam = `{"rules": [
	{"when": {"role": "teammate"}, "say": "no answer"},
	{"when": {"not": {"done": {"tool": "TeamCreate"}}}, "calls": [{"tool": "TeamCreate", "input": {"team_name": "silent"}}]},
	{"when": {"not": {"done": {"tool": "Agent"}}}, "calls": [{"tool": "Agent", "input": {
		"name": "ann", "description": "d", "prompt": "Work.", "subagent_type": "general-purpose"}}]},
	{"say": "Done."}
]}`

// A run that waits for its team to end is ended by a signal too: at once, and the team
// stays to be resumed.
func TestASignalEndsTheWaitForATeam(t *testing.T) {
	path := filepath.Join(t.TempDir(), "silent.jsonc")
	if err := os.WriteFile(path, []byte(silentTeam), 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment(t)
	const id = "22222222-2222-4222-8222-222222222222"
	cmd, _, _ := command(t, env, "-p", "go", "--model", "scripted:"+path, "--session-id", id)
	cmd.Stderr = nil
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asked, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		tell := sync.OnceFunc(func() { close(asked) })
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.Contains(lines.Text(), "asks ann to shut down") {
				tell()
			}
		}
	}()
	within(t, "the request to end", asked)
	rm, _, refusal := command(t, env, "sessions", "rm", id, "--yes")
	if err := rm.Run(); err == nil || !strings.Contains(refusal.String(), "team-lead of team silent runs in process") {
		t.Errorf("the session was removed under its process: %v, %s", err, refusal)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of stderr", read)
	if got := exitCode(t, cmd); got != exitTerminated {
		t.Errorf("exit code %d", got)
	}
	if text := rosterOf(t, env, "silent"); !strings.Contains(text, `"ann"`) {
		t.Errorf("the team is not there to be resumed: %s", text)
	}
}

// rosterOf is the file of a team's roster.
func rosterOf(t *testing.T, env []string, team string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(homeOf(env), "teams", team, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// homeOf is the state root of an environment.
func homeOf(env []string) (home string) {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "CADRE_HOME="); ok {
			home = value
		}
	}
	return home
}

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
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
	var home string
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "CADRE_HOME="); ok {
			home = value
		}
	}
	inbox, err := os.ReadFile(filepath.Join(home, "teams", "deaf", "inboxes", "ann.json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if strings.Contains(string(inbox), "shutdown_request") {
		t.Errorf("the teammate was asked to end: %s", inbox)
	}
	roster, err := os.ReadFile(filepath.Join(home, "teams", "deaf", "config.json"))
	if err != nil || !strings.Contains(string(roster), `"ann"`) {
		t.Errorf("the team is not there to be resumed: %s, %v", roster, err)
	}
}

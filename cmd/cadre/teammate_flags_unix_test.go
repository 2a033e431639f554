//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// paneEnvironment is the environment of a lead outside tmux, whose teammates get a
// tmux server of their own.
func paneEnvironment(t *testing.T, extra ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CADRE_TEST_ALL") != "" {
			t.Fatal(err)
		}
		t.Skip("no tmux: ", err)
	}
	sockets, err := os.MkdirTemp("", "cadre") // short: a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		names, _ := filepath.Glob(filepath.Join(sockets, "tmux-*", "*"))
		for _, name := range names {
			_ = exec.Command("tmux", "-S", name, "kill-server").Run()
		}
		os.RemoveAll(sockets)
	})
	return environment(t, append(extra, "TMUX_TMPDIR="+sockets)...)
}

func writeFile(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// oneMate makes a lead that starts one teammate, says what the call gave when it
// fails, and what the teammate reports.
const oneMate = `
	{"when": {"heard": "REPORT (?P<text>.*) END"}, "say": "${text}"},
	{"when": {"done": {"tool": "Agent", "outcome": "failed"}}, "say": "It did not start."},
	{"when": {"done": {"tool": "Agent"}}, "say": "I wait."},
	{"when": {"done": {"tool": "TeamCreate"}}, "calls": [{"tool": "Agent", "input":
		{"name": "ann", "description": "d", "prompt": "Work.", "subagent_type": "general-purpose"}}]},
	{"calls": [{"tool": "TeamCreate", "input": {"team_name": "t"}}]}`

// What a lead was started with is what its teammates are started with, as far as
// their program knows it.
func TestTeammatesGetTheLeadsFlags(t *testing.T) {
	dir := t.TempDir()
	script := "scripted:" + writeFile(t, dir, "lead.jsonc", `{"rules": [`+oneMate+`]}`, 0o600)
	seen := filepath.Join(dir, "seen")
	program := writeFile(t, dir, "pro'gram", fmt.Sprintf("#!/bin/sh\nprintf '%%s\\0' \"$@\" >'%s'\nexit 3\n", seen), 0o700)
	const settings, prompt = `{"planApproval": "lead"}`, "it's \"one\";\n$HOME ü"
	file := writeFile(t, dir, "settings.json", settings, 0o600)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		variable, settings, given string
		ours                      []string
	}{
		{"CADRE_TEAMMATE_COMMAND", settings, settings, []string{"--trust", "--no-session-persistence", "--model", script}},
		{"CLAUDE_CODE_TEAMMATE_COMMAND", file, file, nil},
		{"CLAUDE_CODE_TEAMMATE_COMMAND", pipe, settings, nil},
	} {
		writing := make(chan error, 1)
		go func() {
			if c.settings != pipe {
				writing <- nil
				return
			}
			writing <- os.WriteFile(pipe, []byte(settings), 0o600) // blocks until it is read
		}()
		cmd, stdout, stderr := command(t, paneEnvironment(t, c.variable+"="+program), "-p", "go", "--teammate-mode", "tmux", "--model", script,
			"--tools", "TeamCreate,Agent", "--allowedTools", "Read", "--allowedTools", "Bash(git log *)", "--disallowedTools", "Bash(rm *),Edit",
			"--add-dir", "more", "--add-dir", "/usr", "--settings", c.settings, "--setting-sources", "user", "--system-prompt", prompt,
			"--append-system-prompt", "-x", "--trust", "--no-session-persistence", "--permission-mode", "acceptEdits")
		if err := os.Mkdir(filepath.Join(cmd.Dir, "more"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, stdout, stderr)
		}
		if err := within(t, "the settings to be read", writing); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(seen)
		os.Remove(seen)
		if err != nil {
			t.Fatalf("%v\n%s%s", err, stdout, stderr)
		}
		args := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		for i, arg := range args {
			if arg == "--agent-type" {
				args = args[i+2:]
				break
			}
		}
		want := append([]string{
			"--permission-mode", "acceptEdits", "--allowedTools", "Read,Bash(git log *)", "--disallowedTools", "Bash(rm *),Edit",
			"--tools", "TeamCreate,Agent", "--add-dir", filepath.Join(cmd.Dir, "more"), "--add-dir", "/usr", "--settings", c.given,
			"--setting-sources", "user", "--system-prompt", prompt, "--append-system-prompt", "-x",
		}, c.ours...)
		if diff := cmp.Diff(want, args); diff != "" {
			t.Errorf("flags by %s (-want +got):\n%s", c.variable, diff)
		}
	}
}

// A teammate may do the same in a pane as inside its lead's process.
func TestTeammatesWorkUnderTheLeadsFlags(t *testing.T) {
	dir, more := t.TempDir(), t.TempDir()
	writeFile(t, more, "a.txt", "added", 0o600)
	script := "scripted:" + writeFile(t, dir, "team.jsonc", `{"rules": [
	{"when": {"role": "teammate", "input": "shutdown_request.*?requestId[^a-z]+(?P<id>[a-z0-9@-]+)"},
	 "calls": [{"tool": "SendMessage", "input": {"type": "shutdown_response", "request_id": "${id}", "approve": true}}]},
	{"when": {"role": "teammate", "done": {"tool": "SendMessage"}}, "say": "I wait."},
	{"when": {"role": "teammate", "done": [
		{"tool": "Bash", "outcome": "either", "result": "(?P<bash>[^\n]*)"},
		{"tool": "Read", "input": {"file_path": "secret.txt"}, "outcome": "either", "result": "(?P<secret>[^\n]*)"},
		{"tool": "Read", "input": {"file_path": ".*a.txt"}, "outcome": "either", "result": "(?P<added>[^\n]*)"},
		{"tool": "Glob", "outcome": "either", "result": "(?P<glob>[^\n]*)"}]},
	 "calls": [{"tool": "SendMessage", "input": {"recipient": "team-lead", "summary": "s", "content": "REPORT ${bash} | ${secret} | ${added} | ${glob} END"}}]},
	{"when": {"role": "teammate"}, "calls": [
		{"tool": "Bash", "input": {"command": "echo ran", "description": "d"}}, {"tool": "Read", "input": {"file_path": "secret.txt"}},
		{"tool": "Read", "input": {"file_path": "`+more+`/a.txt"}}, {"tool": "Glob", "input": {"pattern": "*"}}]},
	`+oneMate+`]}`, 0o600)
	answers := make(map[string]string)
	for _, mode := range []string{"in-process", "tmux"} {
		cmd, stdout, stderr := command(t, paneEnvironment(t), "-p", "go", "--teammate-mode", mode, "--model", script, "--add-dir", more,
			"--tools", "TeamCreate,Agent,Bash,Read,SendMessage", "--allowedTools", "Bash", "--disallowedTools", "Bash(echo *)",
			"--settings", `{"permissions": {"deny": ["Read(secret.txt)"]}}`)
		writeFile(t, cmd.Dir, "secret.txt", "secret", 0o600)
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, stdout, stderr)
		}
		answers[mode] = strings.ReplaceAll(stdout.String(), cmd.Dir, "")
	}
	said := strings.Split(answers["in-process"], " | ")
	if len(said) != 4 || !strings.Contains(said[0], "Bash(echo *)") || !strings.Contains(said[1], "Read(secret.txt)") ||
		!strings.Contains(said[2], "added") || !strings.Contains(said[3], "No such tool") {
		t.Errorf("inside the lead's process: %q", said)
	}
	if diff := cmp.Diff(answers["in-process"], answers["tmux"]); diff != "" {
		t.Errorf("in a pane it is different (-in-process +tmux):\n%s", diff)
	}
}

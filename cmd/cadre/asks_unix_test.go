//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// askingScript makes one call that has to be asked about, and says what came of it.
const askingScript = `{"rules": [
	{"when": {"done": {"tool": "Bash", "outcome": "failed", "result": "(?P<said>use .*)"}}, "say": "I was told: ${said}"},
	{"when": {"done": {"tool": "Bash", "result": "(?P<said>made of .*)"}}, "say": "It said ${said}"},
	{"calls": [{"tool": "Bash", "input": {"command": "echo made of $((1 + 1))"}}]}
]}`

// A run that nobody sits in front of waits for an answer from outside when its
// questions have a deadline.
func TestAnsweringFromOutside(t *testing.T) {
	for _, tc := range []struct{ name, verdict, message, want string }{
		{"allow", "allow", "", "It said made of 2"},
		{"deny", "deny", "use another way", "I was told: use another way"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "ask.jsonc")
			if err := os.WriteFile(script, []byte(askingScript), 0o600); err != nil {
				t.Fatal(err)
			}
			env := environment(t)
			run, stdout, stderr := command(t, env, "-p", "go", "--model", "scripted:"+script, "--settings", `{"askDeadlineMs": 600000}`)
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			asked := awaitAsk(t, env)
			listing, listed, _ := command(t, env, "asks")
			if err := listing.Run(); err != nil || !strings.Contains(listed.String(), "May Bash run?") ||
				!strings.Contains(listed.String(), "echo made of $((1 + 1))") || !strings.Contains(listed.String(), "until ") {
				t.Errorf("cadre asks: %v, %s", err, listed)
			}
			answer, said, complaint := command(t, env, "answer", asked[:9], tc.verdict, "--message", tc.message)
			if err := answer.Run(); err != nil || said.String() != "Answered.\n" {
				t.Fatalf("cadre answer: %v, %s%s", err, said, complaint)
			}
			if code := exitCode(t, run); code != exitDone || !strings.Contains(stdout.String(), tc.want) {
				t.Errorf("exit code %d, %s%s", code, stdout, stderr)
			}
			for _, want := range []string{"? waits for your answer until ", "May Bash run?", "cadre answer " + asked + " allow", "the question about Bash was answered: "} {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("no %q in %s", want, stderr)
				}
			}
			if left, text, _ := command(t, env, "asks"); left.Run() != nil || text.String() != "There are no open questions.\n" {
				t.Errorf("what is left: %s", text)
			}
		})
	}
}

// awaitAsk waits until a question lies on the desk, and returns its id.
func awaitAsk(t *testing.T, env []string) string {
	t.Helper()
	ticks, over := time.NewTicker(20*time.Millisecond), time.NewTimer(patience)
	defer ticks.Stop()
	defer over.Stop()
	for {
		list, out, _ := command(t, env, "asks", "--json")
		var asks []struct {
			ID   string `json:"id"`
			Open bool   `json:"open"`
		}
		if err := list.Run(); err == nil && json.Unmarshal(out.Bytes(), &asks) == nil && len(asks) == 1 {
			if !asks[0].Open {
				t.Error("its process is said to be gone")
			}
			return asks[0].ID
		}
		select {
		case <-ticks.C:
		case <-over.C:
			t.Fatal("nobody asked anything")
		}
	}
}

// stoppedScript is a lead with a teammate that has to ask before it does anything.
const stoppedScript = `{"rules": [
	{"when": {"role": "teammate", "heard": "shutdown_request[^}]*requestId\":\"(?P<id>[^\"]+)"},
	 "calls": [{"tool": "SendMessage", "input": {"type": "shutdown_response", "request_id": "${id}", "approve": true}}]},
	{"when": {"role": "teammate", "done": {"tool": "Bash", "outcome": "either"}}, "say": "done"},
	{"when": {"role": "teammate"}, "calls": [{"tool": "Bash", "input": {"command": "touch made"}}]},
	{"when": {"done": {"tool": "Agent"}}, "say": "I wait."},
	{"when": {"done": {"tool": "TeamCreate"}}, "calls": [{"tool": "Agent", "input": {"name": "ann", "description": "d", "prompt": "p", "subagent_type": "general-purpose"}}]},
	{"calls": [{"tool": "TeamCreate", "input": {"team_name": "crew"}}]}
]}`

// Stopping a teammate that waits for an answer says so at once, and an answer that adds
// rules says which, and where.
func TestStoppingATeammateThatAsks(t *testing.T) {
	script, env := filepath.Join(t.TempDir(), "stop.jsonc"), environment(t)
	if err := os.WriteFile(script, []byte(stoppedScript), 0o600); err != nil {
		t.Fatal(err)
	}
	run, stdout, stderr := command(t, env, "-p", "go", "--model", "scripted:"+script, "--settings", `{"askDeadlineMs": 600000}`)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	asked := awaitAsk(t, env)
	stop, _, _ := command(t, env, "team", "stop", "crew", "ann")
	stop.Stderr = nil
	notes, err := stop.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stop.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(notes)
	for _, want := range []string{"Asked ann@crew to end", "It is waiting for an answer first: cadre answer " + asked} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Errorf("%q, want %q", lines.Text(), want)
		}
	}
	answer, said, complaint := command(t, env, "answer", asked, "allow", "--always")
	if err := answer.Run(); err != nil || !strings.Contains(said.String(), "Answered. From now on: allow Bash(touch made) (in .claude/settings.local.json).") {
		t.Errorf("cadre answer: %v, %s%s", err, said, complaint)
	}
	if code := exitCode(t, stop); code != exitDone {
		t.Errorf("team stop: exit code %d", code)
	}
	if code := exitCode(t, run); code != exitDone {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

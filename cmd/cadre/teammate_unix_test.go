//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mateScript answers the prompt and agrees to end. It ends with a report.
const mateScript = `{"rules": [
	{"when": {"input": "shutdown_request.*?requestId[^a-z]+(?P<id>[a-z0-9@-]+)"},
	 "calls": [{"tool": "SendMessage", "input": {"type": "shutdown_response", "request_id": "${id}", "approve": true}}]},
	{"when": {"done": {"tool": "SendMessage", "after": "input"}}, "say": "I wait."},
	{"when": {"task": "."}, "calls": [{"tool": "TaskUpdate", "input": {"taskId": "${task}", "status": "completed"}}]},
	{"calls": [{"tool": "SendMessage", "input": {"recipient": "team-lead", "content": "I am ${me} of ${team}", "summary": "here"}}]}
]}`

// Another program leads: it has written the roster, a task and a message by hand, as
// Claude Code does (facts: claude-code §4.3, §4.4), seals nothing, and starts cadre
// with the flags of its own teammates.
func TestATeammateOfAnotherLead(t *testing.T) {
	env := environment(t)
	home := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "HOME="); ok {
			home = value
		}
	}
	var plain []string // without CADRE_HOME: such a lead does not know it
	for _, entry := range env {
		if !strings.HasPrefix(entry, "CADRE_HOME=") {
			plain = append(plain, entry)
		}
	}
	root := filepath.Join(home, ".claude")
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("teams/omega/config.json", `{
  "name": "omega", "createdAt": 1, "leadAgentId": "team-lead@omega", "leadSessionId": "62c88335-268d-4933-83f4-81bc04a35760",
  "theirs": {"kept": true},
  "members": [
    {"agentId": "team-lead@omega", "name": "team-lead", "agentType": "team-lead", "model": "m", "joinedAt": 1, "tmuxPaneId": "", "cwd": "/w", "subscriptions": []},
    {"agentId": "w1@omega", "name": "w1", "agentType": "general-purpose", "model": "m", "prompt": "p", "color": "blue", "planModeRequired": false, "joinedAt": 1, "tmuxPaneId": "%7", "cwd": "/w", "subscriptions": [], "backendType": "tmux", "theirs": 1}
  ]
}`)
	write("teams/omega/inboxes/w1.json", `[{"from":"team-lead","text":"Say who you are.","timestamp":"2026-11-21T03:17:35.846Z","read":false,"theirs":"x"}]`)
	write("tasks/omega/1.json", `{"id": "1", "subject": "s", "description": "d", "status": "pending", "blocks": [], "blockedBy": []}`)
	model := filepath.Join(t.TempDir(), "mate.jsonc")
	if err := os.WriteFile(model, []byte(mateScript), 0o600); err != nil {
		t.Fatal(err)
	}
	x := openTerminal(t, plain, "--agent-id", "w1@omega", "--agent-name", "w1", "--team-name", "omega", "--agent-color", "blue",
		"--parent-session-id", "62c88335-268d-4933-83f4-81bc04a35760", "--agent-type", "general-purpose", "--model", "scripted:"+model)
	x.wait("w1 is idle")

	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	lead := read("teams/omega/inboxes/team-lead.json")
	for _, want := range []string{`"I am w1 of omega"`, `"color": "blue"`, `idle_notification`} {
		if !strings.Contains(lead, want) {
			t.Errorf("the lead's inbox has no %s:\n%s", want, lead)
		}
	}
	if inbox := read("teams/omega/inboxes/w1.json"); !strings.Contains(inbox, `"read": true`) || !strings.Contains(inbox, `"theirs"`) {
		t.Errorf("the teammate's inbox: %s", inbox)
	}
	if item := read("tasks/omega/1.json"); !strings.Contains(item, `"owner": "w1"`) || !strings.Contains(item, "completed") {
		t.Errorf("the task: %s", item)
	}
	saidIdle := func() string { // the lead is told first, the roster says so afterwards
		t.Helper()
		again, over := time.NewTicker(10*time.Millisecond), time.After(patience)
		defer again.Stop()
		for {
			config := read("teams/omega/config.json")
			if strings.Contains(config, `"isActive": false`) {
				return config
			}
			select {
			case <-again.C:
			case <-over:
				t.Fatalf("the roster says that it is at work:\n%s", config)
			}
		}
	}
	config := saidIdle()
	if strings.Count(config, "theirs") != 2 {
		t.Errorf("the roster: %s", config)
	}
	// Another teammate writes back what it had read before: that does not stand for long.
	write("teams/omega/config.json", strings.Replace(config, `"isActive": false`, `"isActive": true`, 1))
	saidIdle()

	var inbox []json.RawMessage
	if err := json.Unmarshal([]byte(read("teams/omega/inboxes/w1.json")), &inbox); err != nil {
		t.Fatal(err)
	}
	inbox = append(inbox, json.RawMessage(`{"from":"team-lead","text":"{\"type\":\"shutdown_request\",\"requestId\":\"shutdown-1795231138813@w1\",\"from\":\"team-lead\",\"timestamp\":\"2026-11-21T03:20:00.000Z\"}","timestamp":"2026-11-21T03:20:00.000Z","read":false}`))
	text, _ := json.MarshalIndent(inbox, "", "  ")
	lock := filepath.Join(root, "teams/omega/inboxes/w1.json.lock")
	for start := time.Now(); os.Mkdir(lock, 0o755) != nil; { // as such a program locks
		if time.Since(start) > patience {
			t.Fatal("the inbox stays locked")
		}
	}
	write("teams/omega/inboxes/w1.json", string(text))
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, x.cmd); code != exitDone {
		t.Errorf("exit code %d:\n%s", code, x.shown())
	}
	for _, want := range []string{`shutdown_approved`, `shutdown-1795231138813@w1`, `\"paneId\":\"%7\"`, `\"backendType\":\"tmux\"`} {
		if lead := read("teams/omega/inboxes/team-lead.json"); !strings.Contains(lead, want) {
			t.Errorf("the lead's inbox has no %s:\n%s", want, lead)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".cadre", "teams")); err == nil {
		t.Error("a second root was written to")
	}
}

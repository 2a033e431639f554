//go:build unix

package cadre_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
)

func init() {
	maps.Copy(scripts, map[string]func(*scripted.Conversation) scripted.Reply{
		"delegate": delegateScript, "touch": touchTeamScript, "order": orderScript, "again": againScript, "claude": claudeScript,
		"one": oneScript, "hold": holdScript, "stale": staleScript,
	})
	standIns["claude"] = runClaude
}

// paneWorld is a world whose teammates run in panes of a private tmux server.
type paneWorld struct {
	*world
	script string
}

// openPanes opens a runtime whose teammates run in panes.
func openPanes(t *testing.T, script string, change func(*cadre.Config)) *paneWorld {
	t.Helper()
	w := newPaneWorld(t, script)
	w.reopen(t, scripts[script], func(c *cadre.Config) {
		w.inPanes(c)
		if change != nil {
			change(c)
		}
	})
	return w
}

func (w *paneWorld) inPanes(c *cadre.Config) { c.TeammateMode, c.Getenv = "tmux", os.Getenv }

// newPaneWorld makes the folders and the environment of a team in panes.
func newPaneWorld(t *testing.T, script string) *paneWorld {
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
	w := &paneWorld{world: &world{home: layout.Root(t.TempDir()), dir: t.TempDir()}, script: script}
	for name, value := range map[string]string{
		"TMUX": "", "TMUX_TMPDIR": sockets, "HOME": string(w.home), "CADRE_HOME": string(w.home),
		"CADRE_TEAMMATE_COMMAND": program(t, "teammate"), scriptVariable: script,
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() {
		names, _ := filepath.Glob(filepath.Join(sockets, "tmux-*", "*"))
		for _, name := range names {
			_ = exec.Command("tmux", "-S", name, "kill-server").Run()
		}
		os.RemoveAll(sockets)
		w.awaitEnds()
	})
	return w
}

// awaitEnds waits until no teammate writes below the world's folders any more.
func (w *paneWorld) awaitEnds() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	state := cadre.OpenState(w.home)
	defer state.Close()
	configs, _ := state.Rosters().List(ctx)
	for _, c := range configs {
		for _, m := range c.Teammates() {
			for runs := true; runs && ctx.Err() == nil; {
				_, runs, _ = state.Presence().Find(ctx, mailbox.Address{Team: c.Name, Agent: m.Name})
			}
		}
	}
}

// program is the path of a program that is this test binary in a role.
func program(t *testing.T, role string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), role)
	text := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", roleVariable, role, self)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// idleMate makes a teammate that does nothing but agree to end.
func idleMate(c *scripted.Conversation) scripted.Reply {
	last := c.Inputs[len(c.Inputs)-1].Text
	if strings.Contains(last, `"requestId":"shutdown-`) {
		id, _, _ := strings.Cut(after(last, `"requestId":"`), `"`)
		return use("SendMessage", map[string]any{"type": "shutdown_response", "request_id": id, "approve": true})
	}
	return say("Ready.")
}

// did reports whether a call with this in its input was made.
func did(c *scripted.Conversation, tool, text string) bool {
	for _, m := range c.Made {
		if m.Tool == tool && strings.Contains(string(m.Input), text) {
			return true
		}
	}
	return false
}

// tried reports whether a call of this tool, or with this in its input, was made,
// whatever came of it.
func tried(c *scripted.Conversation, text string) bool {
	for _, m := range c.Made {
		if m.Tool == text || strings.Contains(string(m.Input), text) {
			return true
		}
	}
	return false
}

// result is what the newest call of a tool gave.
func result(c *scripted.Conversation, tool string) (text string) {
	for _, m := range c.Made {
		if m.Tool == tool {
			text = m.Result
		}
	}
	return text
}

// delegateScript makes a lead that tries to write by itself and then has a teammate
// do it.
func delegateScript(c *scripted.Conversation) scripted.Reply {
	write := func(name string) scripted.Reply {
		return use("Write", map[string]any{"file_path": name, "content": "by " + c.Agent.Name})
	}
	switch {
	case c.Role() == scripted.Teammate && made(c, "Write") == 0:
		return write("done.txt")
	case c.Role() == scripted.Teammate:
		return say("Done.")
	case !did(c, "Write", "own.txt"):
		return write("own.txt")
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "deputies"})
	case made(c, "Agent") == 0:
		return use("Agent", map[string]any{"name": "ann", "description": "write", "prompt": "Write it.", "subagent_type": "general-purpose"})
	}
	return say("I wait.")
}

// A lead in delegate mode does nothing itself, and those whom it starts can work,
// wherever they run: by its rules, not in its mode.
func TestADelegatingLeadsTeammatesWork(t *testing.T) {
	for _, mode := range []string{"tmux", "in-process"} {
		t.Run(mode, func(t *testing.T) {
			w := openPanes(t, "delegate", func(c *cadre.Config) {
				c.TeammateMode, c.Mode, c.SkipPermissions = mode, "delegate", false
				c.Settings = `{"permissions": {"allow": ["Edit(./*.txt)"]}}`
			})
			if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the teammate has written", func() bool {
				_, err := os.Stat(filepath.Join(w.dir, "done.txt"))
				return err == nil
			})
			if _, err := os.Stat(filepath.Join(w.dir, "own.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the lead has written in delegate mode: %v", err)
			}
		})
	}
}

// touchTeamScript makes a lead with two teammates that run the same command, the
// second when the first is done.
func touchTeamScript(c *scripted.Conversation) scripted.Reply {
	start := func(name string) scripted.Reply {
		return use("Agent", map[string]any{"name": name, "description": "touch", "prompt": "Touch.", "subagent_type": "general-purpose"})
	}
	switch {
	case c.Role() == scripted.Teammate && made(c, "Bash") == 0:
		return use("Bash", map[string]any{"command": "touch made"})
	case c.Role() == scripted.Teammate:
		return say("Done.")
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "touch"})
	case made(c, "Agent") == 0:
		return start("ann")
	case made(c, "Agent") == 1 && heard(c, `"from":"ann"`):
		return start("bob")
	case heard(c, `"from":"bob"`):
		return say("Both are done.")
	}
	return say("I wait.")
}

// What a person accepts for a teammate in another process is kept by the lead, and
// answers the next teammate.
func TestAlwaysForATeammateInAPane(t *testing.T) {
	w := openPanes(t, "touch", func(c *cadre.Config) { c.SkipPermissions = false })
	asked := w.answering(t, func(a ask.Ask) ask.Answer { return ask.Answer{Allow: true, By: "person", Updates: a.Suggestions} })
	w.settle(t, "Begin.")
	w.Kill()
	if last := lastWords(w.world); last != "Both are done." {
		t.Errorf("the last words are %q", last)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, ".claude", "settings.local.json"))
	if err != nil || strings.Count(string(text), "Bash(touch made)") != 1 {
		t.Errorf("kept %s, %v", text, err)
	}
	if all := asked(); len(all) != 1 {
		t.Errorf("asked %d times, want once: %+v", len(all), all)
	}
}

// Where nobody can be asked, a teammate's question is answered at once, its model
// is told what to do, and whoever looks on what would have allowed the call.
func TestNobodyToAskForATeammateInAPane(t *testing.T) {
	w := openPanes(t, "touch", func(c *cadre.Config) { c.SkipPermissions = false })
	if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
		t.Fatal(err)
	}
	var denied event.ToolDenied
	var told string
	for ev := range w.Session().Events(t.Context(), 0) {
		switch body := ev.Body.(type) {
		case event.ToolDenied:
			denied = body
		case event.MailSent:
			told = body.Message.Text
		}
		if denied.Tool != "" && strings.Contains(told, "permission_response") {
			break
		}
	}
	if denied.Tool != "Bash" || denied.Remedy != "--allowedTools 'Bash(touch made)'" {
		t.Errorf("denied %+v", denied)
	}
	if !strings.Contains(told, "No rule allows running touch here. Nobody can be asked") || !strings.Contains(told, "say what you would need") {
		t.Errorf("told %s", told)
	}
}

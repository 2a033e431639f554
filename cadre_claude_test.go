//go:build unix

package cadre_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/transcript"
)

// openWithClaude opens a lead that starts Claude Code as its teammates, which has
// its state elsewhere.
func openWithClaude(t *testing.T, script string) *paneWorld {
	t.Helper()
	return openPanes(t, script, func(*cadre.Config) { withClaude(t) })
}

func withClaude(t *testing.T) {
	t.Helper()
	t.Setenv("CADRE_TEAMMATE_COMMAND", "")
	t.Setenv("CLAUDE_CODE_TEAMMATE_COMMAND", program(t, "claude"))
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("HOME", t.TempDir())
}

// claudeScript makes a lead that has a task done, then talks, then ends its team.
func claudeScript(c *scripted.Conversation) scripted.Reply {
	switch {
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "Mixed!"})
	case made(c, "TaskCreate") == 0:
		return use("TaskCreate", map[string]any{"subject": "Do it", "description": "all of it"})
	case made(c, "Agent") == 0:
		return use("Agent", map[string]any{"name": "ann", "description": "help", "prompt": "Please do #1", "subagent_type": "general-purpose"})
	case heard(c, "done with #1") && made(c, "TaskList") == 0:
		return use("TaskList", map[string]any{})
	case tried(c, "TaskList") && !strings.Contains(result(c, "TaskList"), "#1 [completed] Do it (ann)"):
		return say("The list says " + result(c, "TaskList"))
	case tried(c, "TaskList") && made(c, "SendMessage") == 0:
		return use("SendMessage", map[string]any{"type": "message", "recipient": "ann", "content": "thank \"you\", ü", "summary": "thanks"})
	case heard(c, `heard: thank "you", ü`) && made(c, "SendMessage") == 1:
		return use("SendMessage", map[string]any{"type": "shutdown_request", "recipient": "ann"})
	case heard(c, "ann has shut down") && made(c, "TeamDelete") == 0:
		return use("TeamDelete", map[string]any{})
	case made(c, "TeamDelete") > 0:
		return say("All have ended.")
	}
	return say("I wait.")
}

// Claude Code is a teammate of ours: it finds its team although its state lies
// elsewhere, works, talks, and ends when it is asked to. Nothing stays behind.
func TestClaudeCodeIsATeammate(t *testing.T) {
	w := openWithClaude(t, "claude")
	w.settle(t, "Begin.")
	state := cadre.OpenState(w.home)
	defer state.Close()
	eventually(t, "the team is gone", func() bool {
		_, err := state.Rosters().Load(t.Context(), "Mixed!")
		return errors.Is(err, roster.ErrNotFound)
	})
	w.settle(t, "And?")
	w.end(t)
	if last := lastWords(w.world); last != "All have ended." {
		t.Errorf("the last words are %q", last)
	}
	for _, dir := range []string{os.Getenv("HOME") + "/.claude", string(w.home)} {
		for _, kind := range []string{"teams", "tasks"} {
			if left, _ := filepath.Glob(filepath.Join(dir, kind, "[^.]*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		}
	}
	if panes, err := exec.Command("tmux", "-L", "cadre-"+w.Info().SessionID[:8], "list-panes", "-a").CombinedOutput(); err == nil {
		t.Errorf("panes stay open: %s", strings.TrimSpace(string(panes)))
	}
}

// holdScript makes a lead whose teammate stays at a task until "finish" is said.
func holdScript(c *scripted.Conversation) scripted.Reply {
	switch {
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "life"})
	case made(c, "TaskCreate") == 0:
		return use("TaskCreate", map[string]any{"subject": "Guard", "description": "stay at it"})
	case made(c, "Agent") == 0:
		return use("Agent", map[string]any{"name": "ann", "description": "help", "prompt": "Please hold #1", "subagent_type": "general-purpose"})
	case heard(c, "finish") && made(c, "SendMessage") == 0:
		return use("SendMessage", map[string]any{"type": "shutdown_request", "recipient": "ann"})
	case heard(c, "ann has shut down") && made(c, "TeamDelete") == 0:
		return use("TeamDelete", map[string]any{})
	case made(c, "TeamDelete") > 0:
		return say("All have ended.")
	}
	return say("I wait.")
}

// guards waits until the task is somebody's; "" is nobody's.
func guards(t *testing.T, state *cadre.State, owner string) {
	t.Helper()
	eventually(t, "the task is in the hands of "+owner, func() bool {
		item, err := state.Tasks().Get(t.Context(), "life", "1")
		return err == nil && item.Owner == owner
	})
}

// hasSaid reports whether the transcript of the team's lead has this reply.
func hasSaid(t *testing.T, state *cadre.State, dir, text string) bool {
	t.Helper()
	config, err := state.Rosters().Load(t.Context(), "life")
	if err != nil {
		return false
	}
	entries, err := state.Transcripts().Read(t.Context(), transcript.Ref{Project: dir, Session: config.LeadSessionID})
	return err == nil && slices.ContainsFunc(entries, func(e transcript.Entry) bool {
		return e.Kind == transcript.KindAssistant && transcript.JoinText(e.Message.Content) == text
	})
}

// A pane of Claude Code that is closed by hand is noticed: it says nothing itself.
func TestClaudeCodeInAClosedPane(t *testing.T) {
	w := openWithClaude(t, "hold")
	if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
		t.Fatal(err)
	}
	state := cadre.OpenState(w.home)
	defer state.Close()
	guards(t, state, "ann")
	eventually(t, "the lead knows that it has started ann", func() bool { return hasSaid(t, state, w.dir, "I wait.") })
	config, err := state.Rosters().Load(t.Context(), "life")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tmux", "-L", "cadre-"+w.Info().SessionID[:8], "kill-pane", "-t", config.Find("ann").PaneID).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	guards(t, state, "")
	eventually(t, "ann is off the roster", func() bool {
		config, err := state.Rosters().Load(t.Context(), "life")
		return err == nil && config.Find("ann") == nil
	})
}

// Claude Code lives on when its lead is killed, and is the resumed lead's.
func TestClaudeCodeOutlivesItsLead(t *testing.T) {
	w := newPaneWorld(t, "hold")
	withClaude(t)
	kill := startLead(t, leadConfig{Home: w.home, Dir: w.dir, Backend: "tmux", Prompt: "Begin.", Script: w.script})
	state := cadre.OpenState(w.home)
	defer state.Close()
	guards(t, state, "ann")
	eventually(t, "the lead knows that it has started ann", func() bool { return hasSaid(t, state, w.dir, "I wait.") })
	kill()
	config, err := state.Rosters().Load(t.Context(), "life")
	if err != nil {
		t.Fatal(err)
	}
	w.reopen(t, holdScript, func(c *cadre.Config) {
		w.inPanes(c)
		c.Resume = config.LeadSessionID
	})
	guards(t, state, "ann")
	w.settle(t, "finish")
	eventually(t, "the team is gone", func() bool {
		_, err := state.Rosters().Load(t.Context(), "life")
		return errors.Is(err, roster.ErrNotFound)
	})
	w.end(t)
	if panes, err := exec.Command("tmux", "-L", "cadre-"+config.LeadSessionID[:8], "list-panes", "-a").CombinedOutput(); err == nil {
		t.Errorf("panes stay open: %s", strings.TrimSpace(string(panes)))
	}
}

// A program that is to be a teammate and cannot be run, ends at once, or does not know
// its flags is an error that says so, and leaves nobody behind.
func TestAnotherProgramThatDoesNotStart(t *testing.T) {
	for name, want := range map[string]string{
		"no-such-program": "CLAUDE_CODE_TEAMMATE_COMMAND names \"no-such-program\", which cannot be run",
		"false":           "its program has ended with exit code 1",
		"true":            "its program has ended with exit code 0",
	} {
		t.Run(name, func(t *testing.T) {
			w := openWithClaude(t, "one")
			t.Setenv("CLAUDE_CODE_TEAMMATE_COMMAND", name)
			w.settle(t, "Begin.")
			state := cadre.OpenState(w.home)
			defer state.Close()
			config, err := state.Rosters().Load(t.Context(), "one")
			if err != nil || len(config.Teammates()) > 0 {
				t.Errorf("the roster has %v, %v", config.Teammates(), err)
			}
			w.end(t)
			if last := lastWords(w.world); !strings.Contains(last, want) {
				t.Errorf("the model was told %q, want %q", last, want)
			}
		})
	}
}

// oneScript makes a lead that starts one teammate and says what came of it.
func oneScript(c *scripted.Conversation) scripted.Reply {
	switch {
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "one"})
	case !tried(c, "Agent"):
		return use("Agent", map[string]any{"name": "ann", "description": "help", "prompt": "Help.", "subagent_type": "general-purpose"})
	}
	return say(result(c, "Agent"))
}

// A program that opens its runtime under a root of its choice has teammates that find
// it there.
func TestTeammatesFindTheRootOfTheirLead(t *testing.T) {
	w := openPanes(t, "again", func(*cadre.Config) { t.Setenv("CADRE_HOME", t.TempDir()) })
	w.settle(t, "Begin.")
	w.end(t)
	if last := lastWords(w.world); !strings.HasPrefix(last, "Spawned successfully.") {
		t.Errorf("the model was told %q", last)
	}
}

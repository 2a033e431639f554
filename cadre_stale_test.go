//go:build unix

package cadre_test

import (
	"errors"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
)

// staleScript makes a lead of two teammates, of which the first writes older rosters:
// one without the second, and one in which it is itself still at work.
func staleScript(c *scripted.Conversation) scripted.Reply {
	message := func(to, text string) scripted.Reply {
		return use("SendMessage", map[string]any{"type": "message", "recipient": to, "content": text, "summary": "s"})
	}
	end := func(name string) scripted.Reply {
		return use("SendMessage", map[string]any{"type": "shutdown_request", "recipient": name})
	}
	spawn := func(name, prompt string) scripted.Reply {
		return use("Agent", map[string]any{"name": name, "description": "help", "prompt": prompt, "subagent_type": "general-purpose"})
	}
	sent := made(c, "SendMessage")
	switch {
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "stale"})
	case made(c, "Agent") == 0:
		return spawn("ann", "Please remember.")
	case heard(c, "heard: Please remember.") && made(c, "Agent") == 1:
		return spawn("bob", "Please be there.")
	case heard(c, "heard: Please be there.") && sent == 0:
		return message("ann", "write back")
	case heard(c, "heard: write back") && sent == 1:
		return message("bob", "still there?")
	case heard(c, "heard: still there?") && sent == 2:
		return message("ann", "remember and undo")
	case heard(c, "finish") && sent == 3:
		return end("ann")
	case heard(c, "finish") && sent == 4:
		return end("bob")
	case heard(c, "ann has shut down") && heard(c, "bob has shut down") && made(c, "TeamDelete") == 0:
		return use("TeamDelete", map[string]any{})
	case made(c, "TeamDelete") > 0:
		return say("All have ended.")
	}
	return say("I wait.")
}

// A teammate that another program has written off the roster gets its mail and is
// heard all the same; one whose rest it has undone is not waited for.
func TestClaudeCodeWritesOlderRosters(t *testing.T) {
	w := openWithClaude(t, "stale")
	w.settle(t, "Begin.")
	state := cadre.OpenState(w.home)
	defer state.Close()
	config, err := state.Rosters().Load(t.Context(), "stale")
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := config.Find("ann"), config.Find("bob")
	if ann == nil || bob == nil || ann.IsActive == nil || !*ann.IsActive || bob.PaneID == "" {
		t.Errorf("the roster has %+v", config.Members)
	}
	states, err := state.Teams().States(t.Context(), "stale")
	if err != nil || states["ann"] != team.AgentIdle || states["bob"] != team.AgentIdle {
		t.Errorf("seen from outside they are %v, %v", states, err)
	}
	w.settle(t, "finish")
	eventually(t, "the team is gone", func() bool {
		_, err := state.Rosters().Load(t.Context(), "stale")
		return errors.Is(err, roster.ErrNotFound)
	})
	w.settle(t, "And?")
	w.end(t)
	if last := lastWords(w.world); last != "All have ended." {
		t.Errorf("the last words are %q", last)
	}
}

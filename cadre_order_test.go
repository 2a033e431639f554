//go:build unix

package cadre_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// orderScript makes a lead that starts five teammates in one reply.
func orderScript(c *scripted.Conversation) scripted.Reply {
	switch {
	case c.Role() == scripted.Teammate:
		return say("Ready.")
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "life"})
	case made(c, "Agent") > 0:
		return say("I wait.")
	}
	var reply scripted.Reply
	for i := range 5 {
		reply.Calls = append(reply.Calls, use("Agent", map[string]any{
			"name": fmt.Sprint("w", i+1), "description": "help", "prompt": "Help.", "subagent_type": "general-purpose",
		}).Calls...)
	}
	return reply
}

// Teammates that are started in one reply get colours and places in the order of the
// calls, although they start beside each other.
func TestTeammatesOfOneReplyHaveTheirOrder(t *testing.T) {
	for _, mode := range []string{"tmux", "in-process"} {
		t.Run(mode, func(t *testing.T) {
			w := openPanes(t, "order", func(c *cadre.Config) { c.TeammateMode = mode })
			w.settle(t, "Begin.")
			state := cadre.OpenState(w.home)
			defer state.Close()
			config, err := state.Rosters().Load(t.Context(), "life")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, m := range config.Teammates() {
				pane := ""
				if mode == "tmux" {
					pane = strings.TrimPrefix(m.PaneID, fmt.Sprint("%", i))
				}
				got = append(got, m.Name+" "+m.Color+pane)
			}
			want := []string{"w1 blue", "w2 green", "w3 yellow", "w4 purple", "w5 orange"}
			if !slices.Equal(got, want) {
				t.Errorf("the team is %q", got)
			}
		})
	}
}

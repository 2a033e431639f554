//go:build unix

package cadre_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// againScript makes a lead that starts a teammate, and once more when it is told to.
func againScript(c *scripted.Conversation) scripted.Reply {
	switch {
	case c.Role() == scripted.Teammate:
		return idleMate(c)
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "again"})
	case !tried(c, "Agent") || heard(c, "again") && made(c, "Agent") == 0:
		return use("Agent", map[string]any{"name": "ann", "description": "help", "prompt": "Help.", "subagent_type": "general-purpose"})
	}
	return say(result(c, "Agent"))
}

// A terminal that was asked for and is not there is an error, told to the model and
// once to the person; the next teammate is started when it is there.
func TestAMissingTerminalIsLookedForAgain(t *testing.T) {
	w := openPanes(t, "again", nil)
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	w.settle(t, "Begin.")
	t.Setenv("PATH", path)
	w.settle(t, "Try again.")
	w.end(t)
	if last := lastWords(w.world); !strings.HasPrefix(last, "Spawned successfully.") {
		t.Errorf("with tmux the model was told %q", last)
	}
	if told := w.noticed("install tmux"); told != 1 {
		t.Errorf("the person was told %d times", told)
	}
}

// noticed counts the notices to the person with a text.
func (w *world) noticed(text string) (n int) {
	for _, notice := range bodies[event.Noticed](w) {
		if strings.Contains(notice.Text, text) {
			n++
		}
	}
	return n
}

// Without a person in front, auto looks for a terminal only for those who say it
// with the command.
func TestAutoWithoutAPerson(t *testing.T) {
	for mode, hints := range map[string]int{"": 0, "auto": 1} {
		w := openPanes(t, "again", func(c *cadre.Config) {
			t.Setenv("TERM_PROGRAM", "iTerm.app")
			t.Setenv("PATH", "/usr/bin:/bin") // where it2 is not
			c.TeammateMode = mode
		})
		w.settle(t, "Begin.")
		w.end(t)
		if last := lastWords(w.world); !strings.HasPrefix(last, "Spawned successfully.") {
			t.Errorf("mode %q: the model was told %q", mode, last)
		}
		if told := w.noticed("pip install it2"); told != hints {
			t.Errorf("mode %q: the person was told %d times", mode, told)
		}
	}
}

package cadre_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// touchScript makes a sub-agent and then the lead run the same command.
func touchScript(c *scripted.Conversation) scripted.Reply {
	switch {
	case c.Role() == scripted.Lead && made(c, "Agent") == 0:
		return use("Agent", map[string]any{"description": "run", "prompt": "Run it.", "subagent_type": "general-purpose"})
	case made(c, "Bash") == 0:
		return use("Bash", map[string]any{"command": "touch made"})
	}
	return say("Done.")
}

// answering answers each question of the world by f, until the world has ended.
// asked waits for that, and returns the questions.
func (w *world) answering(t *testing.T, f func(ask.Ask) ask.Answer) (asked func() []ask.Ask) {
	t.Helper()
	var all []ask.Ask
	leave := w.Session().Attend()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ev := range w.Session().Events(context.Background(), 0) {
			if body, ok := ev.Body.(event.Asked); ok {
				all = append(all, body.Ask)
				if err := w.Session().Answer(context.Background(), body.Ask.ID, f(body.Ask)); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	t.Cleanup(func() {
		w.Kill()
		leave()
		<-over
	})
	return func() []ask.Ask { <-over; return all }
}

// "Always" is kept where it is meant to be, counts at once for every agent of the
// process, and after a restart without trust in the project.
func TestAlwaysIsKept(t *testing.T) {
	asking := func(c *cadre.Config) { c.SkipPermissions = false }
	w := open(t, touchScript, asking)
	asked := w.answering(t, func(a ask.Ask) ask.Answer { return ask.Answer{Allow: true, By: "person", Updates: a.Suggestions} })
	w.settle(t, "go")
	w.end(t)
	if all := asked(); len(all) != 1 {
		t.Errorf("asked %d times, want once: %+v", len(all), all)
	}
	file := filepath.Join(w.dir, ".claude", "settings.local.json")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"Bash(touch made)"`) {
		t.Errorf("kept %s, %v", text, err)
	}
	told := false
	for _, n := range bodies[event.Noticed](w) {
		told = told || n.Level == "info" && n.Text == "changed "+file
	}
	if !told {
		t.Error("nobody was told which file was changed")
	}
	w.reopen(t, touchScript, asking)
	if again := w.Info().Warnings; len(again) > 0 {
		t.Errorf("warnings %q", again)
	}
	w.settle(t, "go again")
	w.end(t)
	for _, end := range bodies[event.TurnEnded](w) {
		if len(end.Outcome.Denied) > 0 {
			t.Errorf("denied after a restart: %+v", end.Outcome.Denied)
		}
	}
}

func TestWhatIsForTheSessionIsNotKept(t *testing.T) {
	w := open(t, touchScript, func(c *cadre.Config) { c.SkipPermissions = false })
	w.answering(t, func(a ask.Ask) ask.Answer {
		a.Suggestions[0].Destination = ask.Session
		hostile := ask.Suggestion{Type: ask.SetMode, Mode: "bypassPermissions", Destination: ask.UserSettings}
		return ask.Answer{Allow: true, By: "person", Updates: append(a.Suggestions, hostile)}
	})
	w.settle(t, "go")
	w.end(t)
	for _, file := range []string{filepath.Join(w.dir, ".claude"), w.home.Settings(), w.home.Accepted(w.dir)} {
		if _, err := os.Lstat(file); !os.IsNotExist(err) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What comes by the mail of a team changes no file in the teammate's process.
func TestAnswersByMailChangeNoFile(t *testing.T) {
	w := open(t, touchScript, func(c *cadre.Config) { c.SkipPermissions = false })
	w.answering(t, func(a ask.Ask) ask.Answer {
		return ask.Answer{Allow: true, By: "team-lead", Updates: a.Suggestions, Kept: true}
	})
	w.settle(t, "go")
	w.end(t)
	if _, err := os.Lstat(filepath.Join(w.dir, ".claude")); !os.IsNotExist(err) {
		t.Errorf("a file was made: %v", err)
	}
}

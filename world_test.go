package cadre_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/provider/scripted"
)

// world is a runtime in folders of its own.
type world struct {
	*cadre.Runtime
	home layout.Root
	dir  string
}

// open opens a runtime whose model answers by f. It is killed with the test.
func open(t *testing.T, f func(*scripted.Conversation) scripted.Reply, change func(*cadre.Config)) *world {
	t.Helper()
	w := &world{home: layout.Root(t.TempDir()), dir: t.TempDir()}
	w.reopen(t, f, change)
	return w
}

// reopen opens another runtime in the same folders.
func (w *world) reopen(t *testing.T, f func(*scripted.Conversation) scripted.Reply, change func(*cadre.Config)) {
	t.Helper()
	cfg := cadre.Config{
		Root: w.home, Cwd: w.dir, Version: "test", Model: "script", SkipPermissions: true,
		Getenv:   func(name string) string { return map[string]string{"HOME": string(w.home)}[name] },
		Provider: scripted.New(scripted.Rule{Answer: f}),
	}
	w.Runtime = start(t, cfg, change)
}

// start opens a runtime, which ends with the test at the latest.
func start(t *testing.T, cfg cadre.Config, change func(*cadre.Config)) *cadre.Runtime {
	t.Helper()
	if change != nil {
		change(&cfg)
	}
	rt, err := cadre.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.Kill)
	return rt
}

// settle prompts and waits until nothing is at work any more.
func (w *world) settle(t *testing.T, prompt string) {
	t.Helper()
	if err := w.Session().Prompt(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Settled(ctx); err != nil {
		t.Fatalf("%v; what is kept of teams:\n%s", err, w.kept())
	}
}

// kept is all that lies in the folders of teams, locks included, for who wonders what
// somebody waits for.
func (w *world) kept() string {
	var b strings.Builder
	_ = filepath.WalkDir(filepath.Join(string(w.home), "teams"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went meanwhile
		}
		text, _ := os.ReadFile(path) // a folder has none
		fmt.Fprintf(&b, "%s\t%s\n", path, text)
		return nil
	})
	return b.String()
}

// end shuts the runtime down in order.
func (w *world) end(t *testing.T) {
	t.Helper()
	if err := w.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// bodies collects the events of one type; the runtime must have ended.
func bodies[B event.Body](w *world) (out []B) {
	for ev := range w.Session().Events(context.Background(), 0) {
		if b, ok := ev.Body.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

// lastWords is what the main session said last; the runtime must have ended.
func lastWords(w *world) (text string) {
	for ev := range w.Session().Events(context.Background(), 0) {
		if end, ok := ev.Body.(event.TurnEnded); ok && ev.Agent.ID == "" && end.Outcome.Text != "" {
			text = end.Outcome.Text
		}
	}
	return text
}

func say(text string) scripted.Reply { return scripted.Reply{Say: text} }

func use(tool string, input map[string]any) scripted.Reply {
	return scripted.Reply{Calls: []scripted.Call{scripted.Use(tool, input)}}
}

// made counts the calls of a tool that have succeeded.
func made(c *scripted.Conversation, tool string) (n int) {
	for _, m := range c.Made {
		if m.Tool == tool && !m.Failed {
			n++
		}
	}
	return n
}

func heard(c *scripted.Conversation, text string) bool {
	for _, in := range c.Inputs {
		if strings.Contains(in.Text, text) {
			return true
		}
	}
	return false
}

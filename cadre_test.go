package cadre_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/transcript"
)

func TestASubAgentAnswersItsCaller(t *testing.T) {
	w := open(t, func(c *scripted.Conversation) scripted.Reply {
		switch {
		case c.Role() == scripted.SubAgent && made(c, "Glob") == 0:
			return use("Glob", map[string]any{"pattern": "*"})
		case c.Role() == scripted.SubAgent:
			return say("there is nothing here")
		case made(c, "Agent") == 0:
			return use("Agent", map[string]any{"description": "look", "prompt": "What is here?", "subagent_type": "Explore"})
		}
		return say("It says: " + c.Made[0].Result)
	}, nil)
	w.settle(t, "look around")
	w.end(t)
	text := lastWords(w)
	if !strings.HasPrefix(text, "It says: there is nothing here\nagentId: a") || !strings.Contains(text, "tool_uses: 1") {
		t.Errorf("the caller was told %q", text)
	}
}

func TestABackgroundCommandBecomesANotice(t *testing.T) {
	w := open(t, func(c *scripted.Conversation) scripted.Reply {
		switch {
		case made(c, "Bash") == 0:
			return use("Bash", map[string]any{"command": "echo from behind", "run_in_background": true})
		case heard(c, "<task-notification>"):
			return say("It has ended.")
		}
		return say("It runs.")
	}, nil)
	w.settle(t, "go")
	w.end(t)
	if text := lastWords(w); text != "It has ended." {
		t.Errorf("the last words are %q", text)
	}
	if n := len(bodies[event.JobEnded](w)); n != 1 {
		t.Errorf("%d ends of jobs", n)
	}
}

func TestAnInterruptedSubAgentCanBeResumed(t *testing.T) {
	inside := make(chan struct{})
	gate := make(chan struct{})
	w := open(t, func(c *scripted.Conversation) scripted.Reply {
		switch {
		case c.Role() == scripted.SubAgent && heard(c, "Go on."):
			return say("I go on with: " + c.Inputs[0].Text)
		case c.Role() == scripted.SubAgent:
			close(inside)
			return scripted.Reply{Say: "never", Fault: scripted.Fault{Gate: gate}}
		case heard(c, "now the rest") && len(c.Made) < 2:
			id := after(c.Made[0].Result, "agentId: ")[:7]
			return use("Agent", map[string]any{"description": "more", "prompt": "Go on.", "subagent_type": "general-purpose", "resume": id})
		case len(c.Made) == 0:
			return use("Agent", map[string]any{"description": "d", "prompt": "the first half", "subagent_type": "general-purpose"})
		}
		return say(c.Made[len(c.Made)-1].Result)
	}, nil)
	defer close(gate)
	if err := w.Session().Prompt(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	<-inside
	if err := w.Session().Interrupt(t.Context(), errors.New("enough")); err != nil {
		t.Fatal(err)
	}
	w.settle(t, "now the rest")
	w.end(t)
	if text := lastWords(w); !strings.Contains(text, "I go on with: the first half") {
		t.Errorf("the last words are %q", text)
	}
}

func after(s, mark string) string {
	_, rest, _ := strings.Cut(s, mark)
	return rest
}

func TestASecondOpenerIsToldWhoHoldsTheSession(t *testing.T) {
	w := open(t, func(*scripted.Conversation) scripted.Reply { return say("hello") }, nil)
	w.settle(t, "hi")
	cfg := cadre.Config{
		Root: w.home, Cwd: w.dir, Resume: w.Info().SessionID, Model: "script",
		Getenv:   func(string) string { return "" },
		Provider: scripted.Func(func(provider.Request) scripted.Reply { return say("second") }),
	}
	_, err := cadre.Open(t.Context(), cfg)
	var held *transcript.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Fatalf("second opener: %v", err)
	}
	cfg.Fork = true
	fork, err := cadre.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer fork.Kill()
	if fork.Info().SessionID == w.Info().SessionID {
		t.Error("the fork has the same id")
	}
	entries, err := os.ReadFile(w.home.Transcript(w.dir, fork.Info().SessionID, ""))
	if err != nil || !strings.Contains(string(entries), `"hi"`) {
		t.Errorf("the fork holds %s, %v", entries, err)
	}
}

func TestResumeGoesOnWithWhatWasSaid(t *testing.T) {
	script := func(c *scripted.Conversation) scripted.Reply {
		var all []string
		for _, in := range c.Inputs {
			all = append(all, in.Text)
		}
		return say(strings.Join(all, "+"))
	}
	w := open(t, script, nil)
	w.settle(t, "one")
	w.Kill()
	w.reopen(t, script, func(c *cadre.Config) { c.Continue = true })
	w.settle(t, "two")
	w.end(t)
	if text := lastWords(w); text != "one+two" {
		t.Errorf("the model saw %q", text)
	}
}

func TestUnknownSessionsAreAnError(t *testing.T) {
	_, err := cadre.Open(t.Context(), cadre.Config{
		Root: layout.Root(t.TempDir()), Cwd: t.TempDir(), Resume: "../../etc/passwd", Getenv: func(string) string { return "" },
		Provider: scripted.Func(func(provider.Request) scripted.Reply { return say("x") }),
	})
	if !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("resume of nothing: %v", err)
	}
}

func TestNoModelIsAnError(t *testing.T) {
	_, err := cadre.Open(t.Context(), cadre.Config{
		Root: layout.Root(t.TempDir()), Cwd: t.TempDir(), Getenv: func(string) string { return "" },
	})
	if !errors.Is(err, provider.ErrNoModel) {
		t.Errorf("open without a model: %v", err)
	}
}

func TestNoPersistenceLeavesNoTranscript(t *testing.T) {
	w := open(t, func(*scripted.Conversation) scripted.Reply { return say("hello") }, func(c *cadre.Config) { c.NoPersistence = true })
	w.settle(t, "hi")
	w.end(t)
	if _, err := os.Stat(w.home.Project(w.dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat of the project's folder: %v", err)
	}
}

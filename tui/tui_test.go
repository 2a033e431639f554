package tui

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says answers every request with text.
func says(text string) *scripted.Model {
	return scripted.Func(func(provider.Request) scripted.Reply { return scripted.Reply{Say: text} })
}

// calls answers the first request with a call, and what follows with text.
func calls(tool string, input any, then string) *scripted.Model {
	return scripted.Func(func(req provider.Request) scripted.Reply {
		if len(req.Messages) == 1 {
			return scripted.Reply{Say: "Let me see.", Calls: []scripted.Call{scripted.Use(tool, input)}}
		}
		last := req.Messages[len(req.Messages)-1].Content
		return scripted.Reply{Say: then + " after " + last[0].ResultText()}
	})
}

func TestAnswerIsStreamedAndPromptReturns(t *testing.T) {
	k := open(t, says("Two lines\nof text."), nil)
	k.wait("> ")
	k.enter("hello")
	k.wait("Two lines\nof text.\n")
	k.wait("> ")
	k.enter("again")
	k.wait("Two lines\nof text.\n")
	if n := strings.Count(k.out.String(), "of text."); n != 2 {
		t.Errorf("the answers are shown %d times, want 2:\n%s", n, k.out)
	}
	k.wait("> ")
	k.in.Close() // Ctrl+D
	if err := k.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestCallIsOneLineWithItsResult(t *testing.T) {
	k := open(t, calls("Look", map[string]string{"path": "lib/x.go"}, "Done"), nil)
	k.enter("go")
	k.wait("Let me see.\n")
	k.wait("● Look(lib/x.go)\n")
	k.wait("  ⎿ first line of Look …\n")
	k.wait("Done after first line of Look\nsecond line\n")
}

func TestPermissionAnswers(t *testing.T) {
	for _, tc := range []struct{ entered, says, rejects string }{
		{"y", "Done after first line of Shell", ""},
		{"always", "Done after first line of Shell", ""},
		{"no", "Done after The person said no", ""},
		{"use make test instead", "Done after use make test instead", ""},
	} {
		t.Run(tc.entered, func(t *testing.T) {
			k := open(t, calls("Shell", map[string]string{"command": "make all"}, "Done"), nil)
			k.enter("go")
			k.wait("? May Shell run?\n    make all\n")
			k.wait("y(es), ")
			k.enter("") // is asked again
			k.wait("y(es), ")
			k.enter("/help") // a command stays one
			k.wait("show this list")
			k.wait("y(es), ")
			k.enter(tc.entered)
			k.wait(tc.says)
			ran := len(k.ran) == 1
			if want := strings.Contains(tc.says, "first line"); ran != want {
				t.Errorf("the command ran: %v, want %v", ran, want)
			}
		})
	}
}

func TestPlanIsShownWholeAndAnswered(t *testing.T) {
	for _, tc := range []struct{ entered, says string }{
		{"y", "Done after first line of ExitPlanMode"},
		{"n", "Done after The plan was not approved."},
		{"test it first", "Done after test it first"},
	} {
		t.Run(tc.entered, func(t *testing.T) {
			plan := strings.Repeat("step\n", 2*maxDetails) + "the last step"
			k := open(t, calls("ExitPlanMode", map[string]string{"plan": plan}, "Done"), nil)
			k.enter("go")
			k.wait("? Is this plan good?\n    step\n")
			k.wait("    the last step\n")
			k.wait("y(es), n(o), or what to change: ")
			k.enter(tc.entered)
			k.wait(tc.says)
		})
	}
}

func TestAlwaysMeansNoSecondQuestion(t *testing.T) {
	m := scripted.Func(func(req provider.Request) scripted.Reply {
		if len(req.Messages) < 5 {
			return scripted.Reply{Calls: []scripted.Call{scripted.Use("Shell", map[string]string{"command": "make all"})}}
		}
		return scripted.Reply{Say: "Both ran."}
	})
	k := open(t, m, nil)
	k.enter("go")
	k.wait("a(lways: ")
	k.enter("a")
	k.wait("Both ran.")
	if n := strings.Count(k.out.String(), "? May Shell run?"); n != 1 {
		t.Errorf("asked %d times, want once:\n%s", n, k.out)
	}
}

func TestQuestionShowsWhatIsHidden(t *testing.T) {
	k := open(t, calls("Shell", map[string]string{"command": "echo ok\x1b[2K\rrm -rf .\u202e"}, "Done"), nil)
	k.enter("go")
	k.wait(`    echo ok\x1b[2K\x0drm -rf .\u202e` + "\n")
	k.enter("n")
	k.wait("Done")
}

func TestChoices(t *testing.T) {
	input := map[string]any{"questions": []any{
		map[string]any{"question": "Which one?", "header": "One", "options": []any{
			map[string]any{"label": "Red", "description": "warm"}, map[string]any{"label": "Blue", "description": "cold"},
		}},
		map[string]any{"question": "Which ones?", "header": "Many", "multiSelect": true, "options": []any{
			map[string]any{"label": "A", "description": ""}, map[string]any{"label": "B", "description": ""}, map[string]any{"label": "C", "description": ""},
		}},
	}}
	for _, tc := range []struct {
		name    string
		entered []string
		want    map[string]string
	}{
		{"numbers", []string{"2", "1,3"}, map[string]string{"Which one?": "Blue", "Which ones?": "A, C"}},
		{"own words", []string{"green, please", "none"}, map[string]string{"Which one?": "green, please", "Which ones?": "none"}},
		{"a number too large is asked again", []string{"3", "1", "2 3"}, map[string]string{"Which one?": "Red", "Which ones?": "B, C"}},
		{"skipped", []string{"/skip"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := open(t, calls("AskUserQuestion", input, "Done"), nil)
			k.enter("go")
			k.wait("? Which one?\n    1  Red  warm\n    2  Blue  cold\n")
			for _, entry := range tc.entered {
				k.wait("/skip: ")
				k.enter(entry)
			}
			k.wait("Done after")
			if tc.want == nil {
				if len(k.ran) != 0 {
					t.Errorf("the tool ran though the question was skipped")
				}
				return
			}
			var got struct {
				Questions []any             `json:"questions"`
				Answers   map[string]string `json:"answers"`
			}
			if err := json.Unmarshal([]byte(<-k.ran), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if len(got.Questions) != 2 {
				t.Errorf("the questions are gone from the input")
			}
		})
	}
}

func TestNoticeWaitsForTheLineBeingStreamed(t *testing.T) {
	midway := make(chan struct{})
	m := scripted.Func(func(provider.Request) scripted.Reply {
		return scripted.Reply{Say: "a line that is not finished", Fault: scripted.Fault{Midway: midway}}
	})
	k := open(t, m, nil)
	k.enter("go")
	k.wait("a line that is")
	k.tree.Stream.Publish(event.Agent{ID: "t1", Name: "bob"}, event.MailSent{
		To: mailbox.Address{Team: "x", Agent: "team-lead"}, Message: mailbox.Message{From: "bob", Text: "I am \x1b[31mdone"},
	})
	close(midway)
	k.wait(" finished\n✉ bob → team-lead: I am done\n")
}

func TestInterruptThenLeaveThenKill(t *testing.T) {
	closing, closed := make(chan struct{}), make(chan struct{})
	m := scripted.Func(func(provider.Request) scripted.Reply {
		return scripted.Reply{Say: "never said", Fault: scripted.Fault{Gate: make(chan struct{})}}
	})
	k := open(t, m, func(c *Config) {
		c.Close = func(context.Context) error { close(closing); <-closed; return nil }
	})
	kill := make(chan struct{})
	go func() { // what a runtime does when it is killed
		<-k.killed
		k.session.Close(nil)
		k.tree.Stream.End()
		close(closed)
		close(kill)
	}()
	k.enter("go")
	for ev := range k.session.Events(t.Context(), 0) {
		if _, ok := ev.Body.(event.TurnStarted); ok {
			break
		}
	}
	k.interrupt <- struct{}{}
	k.wait("! interrupted\n")
	k.wait("> ")
	k.interrupt <- struct{}{}
	<-closing
	k.interrupt <- struct{}{}
	<-kill
	if err := k.end(); !errors.Is(err, ErrKilled) {
		t.Errorf("Run: %v, want ErrKilled", err)
	}
}

func TestInterruptWhenIdle(t *testing.T) {
	k := open(t, says("x"), nil)
	k.wait("> ")
	k.interrupt <- struct{}{}
	k.wait("Press Ctrl+C again to leave")
	k.enter("/cost") // something was entered: the count begins again
	k.wait("cost so far")
	k.interrupt <- struct{}{}
	k.wait("Press Ctrl+C again to leave")
	k.interrupt <- struct{}{}
	if err := k.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestPipeIsAnsweredLineByLine(t *testing.T) {
	m := scripted.Func(func(req provider.Request) scripted.Reply {
		last := req.Messages[len(req.Messages)-1].Content
		return scripted.Reply{Say: "answer to " + last[len(last)-1].Text}
	})
	k := open(t, m, func(c *Config) {
		c.In, c.Terminal = strings.NewReader("one\n\ntwo\nthree"), false
	})
	close(k.settled)
	if err := k.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
	want := "answer to one\nanswer to two\nanswer to three\n"
	if diff := cmp.Diff(want, k.out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestPipeWithoutAnybodyToAsk(t *testing.T) {
	k := open(t, calls("Shell", map[string]string{"command": "make all"}, "Done"), func(c *Config) {
		c.In, c.Terminal = strings.NewReader("go\n"), false
		settled := c.Settled
		c.Settled = func(ctx context.Context) error {
			for ev := range c.Session.Events(ctx, 0) {
				if _, idle := ev.Body.(event.Idle); idle {
					return settled(ctx)
				}
			}
			return nil
		}
	})
	close(k.settled)
	if err := k.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if len(k.ran) != 0 {
		t.Error("a command ran without permission")
	}
	if !strings.Contains(k.out.String(), "Done after") {
		t.Errorf("the turn did not go on after the denial:\n%s", k.out)
	}
}

func TestWelcomeHasFiveLines(t *testing.T) {
	k := open(t, says("x"), func(c *Config) {
		c.Welcome = &Welcome{Model: "m-1", Sent: "api.example.com", Root: "/home/x/.cadre", Folders: "/home/x/p"}
	})
	k.wait("> ")
	before, _, _ := strings.Cut(k.out.String(), "Ctrl+C interrupts")
	if n := strings.Count(before, "\n"); n != 5 {
		t.Errorf("%d lines, want 5:\n%s", n, before)
	}
	for _, want := range []string{"m-1", "api.example.com", "/home/x/.cadre", "/home/x/p"} {
		if !strings.Contains(before, want) {
			t.Errorf("the welcome does not tell %s:\n%s", want, before)
		}
	}
}

// Nothing is sent anywhere when a script answers.
func TestWelcomeOfAScript(t *testing.T) {
	k := open(t, says("x"), func(c *Config) {
		c.Welcome = &Welcome{Model: "scripted:x.jsonc", Root: "/home/x/.cadre", Folders: "/home/x/p"}
	})
	k.wait("Sent:    nothing: a script answers, scripted:x.jsonc.")
}

func TestCommands(t *testing.T) {
	k := open(t, says("heard"), nil)
	k.enter("/mode")
	k.wait("mode default\n")
	k.enter("/mode plan")
	k.wait("mode plan\n")
	k.wait("plan> ")
	k.enter("/mode bypassPermissions")
	k.wait("--dangerously-skip-permissions")
	k.enter("/mode nonsense")
	k.wait(`"nonsense" is not a permission mode`)
	k.enter("/nope")
	k.wait("There is no command /nope")
	k.enter("/quit now")
	k.wait("/quit is a command only when nothing else follows.")
	k.enter("/help")
	k.wait("/quit")
	k.enter("/usr/bin/x is broken") // a path is no command
	k.wait("heard")
	k.enter("/quit")
	if err := k.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestEndOfContextEndsInOrder(t *testing.T) {
	cause := errors.New("terminated")
	ctx, cancel := context.WithCancelCause(t.Context())
	k := open(t, says("x"), nil)
	k.wait("> ")
	second := make(chan error, 1)
	cancel(cause)
	go func() {
		second <- Run(ctx, Config{
			Session: k.session, In: strings.NewReader(""), Out: newTape(t),
			Close: func(context.Context) error { k.session.Close(nil); k.tree.Stream.End(); return nil },
			Kill:  func() {}, Settled: func(context.Context) error { return nil },
		})
	}()
	if err := <-second; !errors.Is(err, cause) {
		t.Errorf("Run: %v, want %v", err, cause)
	}
	if err := k.end(); err != nil { // the session is gone: the first one leaves as well
		t.Errorf("first Run: %v", err)
	}
}

func TestEntries(t *testing.T) {
	for _, tc := range []struct {
		name     string
		terminal bool
		reads    []string
		want     []string
	}{
		{"lines of a pipe", false, []string{"a\nb\r\n", "c"}, []string{"a", "b", "c"}},
		{"a paste is one entry", true, []string{"a\nb\nc\n", "d\n"}, []string{"a\nb\nc", "d"}},
		{"a line in two reads", true, []string{"hal", "f\n"}, []string{"half"}},
		{"a continued line", true, []string{"a \\\n", "b\n"}, []string{"a \nb"}},
		{"typed ahead of a command", true, []string{"do it\nand this\n/quit\n"}, []string{"do it\nand this", "/quit"}},
		{"commands before and between", true, []string{"/mode plan\na\n/cost\nb\n"}, []string{"/mode plan", "a", "/cost", "b"}},
		{"what only looks like a command", true, []string{"see\n/quit it\n /quit\n/mode a b\n/nosuch\n/usr/bin\n"}, []string{"see\n/quit it\n /quit\n/mode a b\n/nosuch\n/usr/bin"}},
		{"a command word on a continued line", true, []string{"type \\\n/quit\nto leave\n"}, []string{"type \\\n/quit\nto leave"}},
		{"a paste with continued lines", true, []string{"make \\\n  all\n"}, []string{"make \\\n  all"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			err := entries(&chunks{tc.reads}, tc.terminal, func(s string) bool { got = append(got, s); return true })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// A person reads everything that "always" changes, and where it is kept.
func TestWhatAlwaysChanges(t *testing.T) {
	rules := []ask.Rule{{ToolName: "Bash", RuleContent: "make\nrm"}, {ToolName: "Read"}}
	got := Suggested([]ask.Suggestion{
		{Type: "addRules", Behavior: "allow", Destination: "localSettings", Rules: rules},
		{Type: "replaceRules", Behavior: "ask", Destination: "userSettings", Rules: rules[1:]},
		{Type: "removeRules", Behavior: "deny", Destination: "projectSettings", Rules: rules[1:]},
		{Type: "setMode", Mode: "plan", Destination: "session"},
		{Type: "addDirectories", Directories: []string{"/a", "/b"}},
		{Type: "removeDirectories", Directories: []string{"/c"}},
		{Type: "unknown"},
	})
	want := "allow Bash(make rm), Read (in .claude/settings.local.json), ask only Read (in your own settings.json), no longer deny Read (in .claude/settings.json), " +
		"mode plan, work in /a, /b, no longer work in /c"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

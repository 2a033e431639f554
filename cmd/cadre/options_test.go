package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/transcript"
)

// parse reads a command line as run does, without running it.
func parse(t *testing.T, args ...string) (options, []string, error) {
	t.Helper()
	var o options
	cmd := newRootCommand(args)
	cmd.ResetFlags()
	addFlags(cmd, o.flags())
	err := cmd.ParseFlags(spreadLists(args))
	if err == nil {
		err = o.check()
	}
	return o, cmd.Flags().Args(), err
}

func TestFlags(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tc := range []struct {
		name   string
		args   []string
		want   options
		prompt []string
	}{
		{"two words", []string{"-p", "--model", "sonnet", "do it"}, options{print: true, model: "sonnet"}, []string{"do it"}},
		{"with an equals sign", []string{"--print", "--model=sonnet", "do it"}, options{print: true, model: "sonnet"}, []string{"do it"}},
		{"prompt right behind -p", []string{"-p", "do it", "--max-turns", "3"}, options{print: true, maxTurns: 3}, []string{"do it"}},
		{"camelCase", []string{"--outputFormat=json", "--maxTurns=3", "--systemPrompt", "x", "--addDir", "/a"},
			options{outputFormat: "json", maxTurns: 3, systemPrompt: text("x"), addDirs: []string{"/a"}}, nil},
		{"empty values", []string{"--system-prompt", "", "--tools=", "--setting-sources="},
			options{systemPrompt: text(""), tools: []string{}, settingSources: text("")}, nil},
		{"lists by comma and by space", []string{"--allowedTools", "Bash(git log *), Read Edit", "--disallowed-tools=Bash(rm *),WebFetch"},
			options{allowed: []string{"Bash(git log *)", "Read", "Edit"}, disallowed: []string{"Bash(rm *)", "WebFetch"}}, nil},
		{"lists of several arguments", []string{"-p", "--allowedTools", "Bash(git diff *)", "Read", "mcp__x__y", "say Read", "--tools", "Read", "Grep"},
			options{print: true, allowed: []string{"Bash(git diff *)", "Read", "mcp__x__y"}, tools: []string{"Read", "Grep"}}, []string{"say Read"}},
		{"a list twice", []string{"--allowed-tools=Read", "--allowedTools=Edit"}, options{allowed: []string{"Read", "Edit"}}, nil},
		{"default tools", []string{"--tools", "default"}, options{}, nil},
		{"folders", []string{"--add-dir", "/a,b", "--add-dir=/c"}, options{addDirs: []string{"/a,b", "/c"}}, nil},
		{"going on", []string{"-c", "--fork-session"}, options{cont: true, fork: true}, nil},
		{"going on with a session", []string{"-r", "abc"}, options{resume: "abc"}, nil},
		{"a prompt like a flag", []string{"-p", "--", "--model"}, options{print: true}, []string{"--model"}},
		{"the stream", []string{"-p", "--output-format", "stream-json", "--verbose"}, options{print: true, outputFormat: "stream-json", verbose: true}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, prompt, err := parse(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.prompt, prompt, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("prompt (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongFlags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--output-format", "xml"}, "want text, json or stream-json"},
		{[]string{"--output-format", "stream-json"}, "needs --verbose"},
		{[]string{"--input-format", "stream-json"}, "not supported yet"},
		{[]string{"--permission-mode", "yolo"}, "yolo"},
		{[]string{"--max-turns", "0"}, "above 0"},
		{[]string{"--max-turns", "many"}, "above 0"},
		{[]string{"--session-id", "1"}, "want a UUID"},
		{[]string{"-c", "-r", "x"}, "exclude each other"},
		{[]string{"--fork-session"}, "needs --continue or --resume"},
		{[]string{"-c", "--no-session-persistence"}, "excludes --continue"},
		{[]string{"--allowedTools", "Bash(git"}, "no closing parenthesis"},
	} {
		if _, _, err := parse(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want an error with %q", tc.args, err, tc.want)
		}
	}
}

func TestVerbsAreFirstWords(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want bool
	}{
		{[]string{"team", "ls"}, true},
		{[]string{"--help"}, true},
		{[]string{"-p", "team"}, false},
		{[]string{"fix the team page"}, false},
		{[]string{"-p", "--", "--help"}, false},
	} {
		if got := wantsVerbs(tc.args); got != tc.want {
			t.Errorf("wantsVerbs(%q) = %v", tc.args, got)
		}
	}
}

func TestMistypedVerb(t *testing.T) {
	for _, tc := range []struct {
		prompt []string
		want   string
	}{
		{[]string{"taem", "ls"}, "team"},
		{[]string{"session"}, "sessions"},
		{[]string{"refactor"}, ""},
		{[]string{"teams are broken, mend them"}, ""},
		{nil, ""},
	} {
		if got := mistyped(tc.prompt); got != tc.want {
			t.Errorf("mistyped(%q) = %q, want %q", tc.prompt, got, tc.want)
		}
	}
}

func TestRedaction(t *testing.T) {
	var out strings.Builder
	r := &redactor{&out, secretsOf([]string{"MY_API_KEY=hunter2-hunter2", "SHORT_TOKEN=abc", "HOME=/home/someone"})}
	for _, line := range []string{
		"value hunter2-hunter2 in the middle", "key sk-ant-api03-AbC_123456789", "Authorization: Bearer abcdef.ghijkl",
		"https://user:secret@proxy.local/x", "/home/someone abc stays",
	} {
		if _, err := r.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, secret := range []string{"hunter2", "AbC_123", "abcdef", "user:secret"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, out.String())
		}
	}
	if !strings.Contains(out.String(), "/home/someone abc stays") {
		t.Errorf("ordinary words are gone:\n%s", out.String())
	}
}

func TestCostLine(t *testing.T) {
	used := func(id, name string, tokens int, usd float64, known bool) event.AgentTally {
		return event.AgentTally{Agent: event.Agent{ID: id, Name: name}, Rounds: 2, Models: map[string]event.Spending{
			"a": {Usage: transcript.Usage{InputTokens: tokens}, CostUSD: usd, Unpriced: !known},
		}}
	}
	for _, tc := range []struct {
		name  string
		usage []event.AgentTally
		want  string
	}{
		{"nobody asked a model", []event.AgentTally{{}}, ""},
		{"alone", []event.AgentTally{used("", "", 1234, 0.5, true)}, "cost: $0.5000, 2 rounds, 1,234 tokens"},
		{"a team, the lead not first", []event.AgentTally{used("t1", "ann", 1_000_000, 0.25, true), used("", "team-lead", 1000, 0.5, true)},
			"cost: $0.7500 (own $0.5000, 1 other agent $0.2500), 4 rounds, 1,001,000 tokens"},
		{"a team, and no price at all", []event.AgentTally{used("", "", 10, 0, false), used("t1", "ann", 5, 0, false)}, "cost: unknown price, 4 rounds, 15 tokens"},
		{"no price", []event.AgentTally{used("", "", 10, 0, false)}, "cost: unknown price, 2 rounds, 10 tokens"},
	} {
		if got := costLine(tc.usage); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestExplain(t *testing.T) {
	if got := explain(&cadre.OpenWorkError{}).code; got != exitLimit {
		t.Errorf("open work: %d", got)
	}
	if got := explain(context.Canceled).code; got != exitInterrupted {
		t.Errorf("canceled: %d", got)
	}
	if got := explain(errors.New("x")).code; got != exitFailed {
		t.Errorf("anything else: %d", got)
	}
}

func TestSignalsInOrder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		signals []*stopped
		kills   []bool
		code    int
	}{
		{"the third Ctrl+C kills", []*stopped{byInterrupt, byInterrupt, byInterrupt}, []bool{false, false, true}, exitInterrupted},
		{"the second SIGTERM kills", []*stopped{byTerminate, byTerminate}, []bool{false, true}, exitTerminated},
		{"SIGTERM after Ctrl+C kills", []*stopped{byInterrupt, byTerminate}, []bool{false, true}, exitTerminated},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e ending
			for i, s := range tc.signals {
				first, kill := e.next(s)
				if first != (i == 0) || kill != tc.kills[i] {
					t.Errorf("signal %d: first %v, kill %v", i+1, first, kill)
				}
			}
			if e.cause.code != tc.code {
				t.Errorf("code %d, want %d", e.cause.code, tc.code)
			}
		})
	}
}

func TestReadPrompt(t *testing.T) {
	for _, tc := range []struct {
		name  string
		args  []string
		stdin string
		want  string
	}{
		{"the argument", []string{"do", "it"}, "", "do it"},
		{"stdin", nil, "from a pipe\n", "from a pipe"},
		{"both", []string{"review this"}, "diff\n", "review this\n\ndiff"},
		{"bytes that are no text", nil, "a\xffb", "a\uFFFDb"},
		{"nothing", nil, " \n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := w.WriteString(tc.stdin); err != nil {
				t.Fatal(err)
			}
			w.Close()
			got, err := readPrompt(tc.args, r, func(s string) { t.Errorf("warning: %s", s) })
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("prompt %q, want %q", got, tc.want)
			}
		})
	}
}

// TestSilentStdin: a pipe that is left open must not block a prompt that is
// there already.
func TestSilentStdin(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if readable(r, time.Millisecond) {
		t.Error("an empty pipe is readable")
	}
	warned := ""
	got, err := readPromptWithin([]string{"do it"}, r, time.Millisecond, func(s string) { warned = s })
	if err != nil || got != "do it" || warned == "" {
		t.Errorf("prompt %q, error %v, warning %q", got, err, warned)
	}
}

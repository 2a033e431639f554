package cadre_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
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
	if change != nil {
		change(&cfg)
	}
	rt, err := cadre.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Runtime = rt
	t.Cleanup(rt.Kill)
}

// settle prompts and waits until nothing is at work any more.
func (w *world) settle(t *testing.T, prompt string) {
	t.Helper()
	if err := w.Session().Prompt(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Settled(ctx); err != nil {
		t.Fatal(err)
	}
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

// teamScript makes a lead with two teammates who share two tasks, of which the
// second waits for the first, tell the lead, and are shut down by it.
func teamScript(c *scripted.Conversation) scripted.Reply {
	if c.Role() == scripted.Teammate {
		return mateScript(c)
	}
	switch {
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "My Team!", "description": "two files"})
	case made(c, "TaskCreate") < 2:
		n := string(rune('a' + made(c, "TaskCreate")))
		return use("TaskCreate", map[string]any{"subject": "Write " + n + ".txt", "description": "with its name in it"})
	case made(c, "TaskUpdate") == 0:
		return use("TaskUpdate", map[string]any{"taskId": "2", "addBlockedBy": []string{"1"}})
	case made(c, "Agent") < 2:
		name := []string{"ann", "bob"}[made(c, "Agent")]
		return use("Agent", map[string]any{"name": name, "description": "help", "prompt": "Take tasks.", "subagent_type": "general-purpose"})
	case !heard(c, "done with #1") || !heard(c, "done with #2"):
		return say("I wait.")
	case made(c, "SendMessage") < 2:
		name := []string{"ann", "bob"}[made(c, "SendMessage")]
		return use("SendMessage", map[string]any{"type": "shutdown_request", "recipient": name})
	case !heard(c, "ann has shut down") || !heard(c, "bob has shut down"):
		return say("I wait for them to end.")
	}
	return say("Both files are written.")
}

func mateScript(c *scripted.Conversation) scripted.Reply {
	work, ok := c.Task()
	switch {
	case !ok && heard(c, `"requestId":"shutdown-`):
		id, _, _ := strings.Cut(after(c.Inputs[len(c.Inputs)-1].Text, `"requestId":"`), `"`)
		return use("SendMessage", map[string]any{"type": "shutdown_response", "request_id": id, "approve": true})
	case !ok:
		return say("Nothing to do.")
	case !did(c, "Write", "file "+work.ID):
		return use("Write", map[string]any{"file_path": "f" + work.ID + ".txt", "content": "file " + work.ID})
	case !did(c, "SendMessage", "done with #"+work.ID):
		return use("SendMessage", map[string]any{"recipient": "team-lead", "content": "done with #" + work.ID, "summary": "done"})
	case !did(c, "TaskUpdate", `"`+work.ID+`"`):
		return use("TaskUpdate", map[string]any{"taskId": work.ID, "status": "completed"})
	}
	return say("I am free.")
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

func TestATeamWorksInOneProcess(t *testing.T) {
	w := open(t, teamScript, nil)
	w.settle(t, "Write two files.")
	config, err := os.ReadFile(filepath.Join(string(w.home), "teams", "my-team-", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(config), "{\n  \"name\": \"My Team!\",\n  \"description\": \"two files\",\n  \"createdAt\": ") {
		t.Errorf("config.json starts %.120q", config)
	}
	w.checkFiles(t)
	w.end(t)
	if last := lastWords(w); last != "Both files are written." {
		t.Errorf("the last words are %q", last)
	}
	if started, ended := bodies[event.AgentStarted](w), bodies[event.AgentEnded](w); len(started) != 2 || len(ended) != 2 {
		t.Errorf("%d agents started, %d ended", len(started), len(ended))
	}
	for _, u := range w.Usage() {
		if u.Rounds == 0 || u.Usage.OutputTokens == 0 {
			t.Errorf("usage of %q = %+v", u.Name, u)
		}
	}
}

// checkFiles looks at what the team was to do.
func (w *world) checkFiles(t *testing.T) {
	t.Helper()
	for _, id := range []string{"1", "2"} {
		if got, _ := os.ReadFile(filepath.Join(w.dir, "f"+id+".txt")); string(got) != "file "+id {
			t.Errorf("f%s.txt = %q", id, got)
		}
		var kept struct{ Owner, Status string }
		data, _ := os.ReadFile(filepath.Join(string(w.home), "tasks", "my-team-", id+".json"))
		if err := json.Unmarshal(data, &kept); err != nil || kept.Status != string(task.Completed) || kept.Owner == "" {
			t.Errorf("task %s = %s", id, data)
		}
	}
}

func TestTranscriptsOfATeamAreInTheLayout(t *testing.T) {
	w := open(t, teamScript, nil)
	w.settle(t, "Write two files.")
	w.end(t)
	project := w.home.Project(w.dir)
	main := filepath.Join(project, w.Info().SessionID+".jsonl")
	lines := readLines(t, main)
	last := lines[len(lines)-1]
	if last["teamName"] != "My Team!" || last["isSidechain"] != false || last["sessionId"] != w.Info().SessionID {
		t.Errorf("last line of the lead: %v", last)
	}
	mates, err := filepath.Glob(filepath.Join(project, w.Info().SessionID, "subagents", "agent-t*.jsonl"))
	if err != nil || len(mates) != 2 {
		t.Fatalf("transcripts of teammates: %v %v", mates, err)
	}
	parent := any(nil)
	for i, line := range readLines(t, mates[0]) {
		if line["parentUuid"] != parent || line["isSidechain"] != true || line["agentName"] == "" {
			t.Fatalf("line %d: %v", i, line)
		}
		parent = line["uuid"]
	}
}

func readLines(t *testing.T, path string) (lines []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(data)) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestSettledGivesUpAtItsCeiling(t *testing.T) {
	gate := make(chan struct{})
	w := open(t, func(c *scripted.Conversation) scripted.Reply {
		switch {
		case c.Role() == scripted.Teammate:
			return scripted.Reply{Say: "late", Fault: scripted.Fault{Gate: gate}}
		case made(c, "TeamCreate") == 0:
			return use("TeamCreate", map[string]any{"team_name": "t"})
		case made(c, "TaskCreate") == 0:
			return use("TaskCreate", map[string]any{"subject": "Endless", "description": "never ends"})
		case made(c, "Agent") == 0:
			return use("Agent", map[string]any{"name": "ann", "description": "d", "prompt": "p", "subagent_type": "general-purpose"})
		}
		return say("I wait.")
	}, func(c *cadre.Config) { c.Settings = `{"printWaitCeilingMs": 50}` })
	defer close(gate)
	if err := w.Session().Prompt(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var open *cadre.OpenWorkError
	if err := w.Settled(t.Context()); !errors.As(err, &open) {
		t.Fatalf("settled: %v", err)
	}
	if text := open.Error(); !strings.Contains(text, "ann is at work") || !strings.Contains(text, "Endless") {
		t.Errorf("what stood open: %s", text)
	}
}

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

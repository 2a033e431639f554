//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	cadre "github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// busyTeam is a lead with two teammates. Each task makes its owner write to the
// other teammate and to the lead, ask whether it may write a file, and complete
// the task. Beside that the lead has a command and a sub-agent in the background,
// which leave processes behind. Who was killed checks what became of its last calls:
// whether a teammate is there, which task it has started.
const busyTeam = `{
"vars": {"left": "setsid sleep 1000 & (sleep 1000 &) ; sleep 4"},
"rules": [
	{"when": {"role": "sub-agent", "done": {"tool": "Bash", "outcome": "either"}}, "say": "done"},
	{"when": {"role": "sub-agent"}, "calls": [{"tool": "Bash", "input": {"command": "${left}"}}]},

	{"when": {"role": "teammate", "input": "shutdown_request.*?requestId[^a-z]+(?P<id>[a-z0-9@-]+)"},
	 "calls": [{"tool": "SendMessage", "input": {"type": "shutdown_response", "request_id": "${id}", "approve": true}}]},
	{"when": {"agent": "ann", "task": ".", "not": {"done": {"tool": "SendMessage", "input": {"recipient": "^bob$"}, "outcome": "either", "after": "task"}}},
	 "calls": [{"tool": "SendMessage", "input": {"recipient": "bob", "content": "word-ann-bob-${task}.", "summary": "s"}},
	           {"tool": "SendMessage", "input": {"recipient": "team-lead", "content": "word-ann-lead-${task}.", "summary": "s"}}]},
	{"when": {"agent": "bob", "task": ".", "not": {"done": {"tool": "SendMessage", "input": {"recipient": "^ann$"}, "outcome": "either", "after": "task"}}},
	 "calls": [{"tool": "SendMessage", "input": {"recipient": "ann", "content": "word-bob-ann-${task}.", "summary": "s"}},
	           {"tool": "SendMessage", "input": {"recipient": "team-lead", "content": "word-bob-lead-${task}.", "summary": "s"}}]},
	{"when": {"role": "teammate", "task": ".", "not": [{"done": {"tool": "Write", "after": "task"}}, {"done": {"tool": "Write", "outcome": "failed", "result": "has not been read", "after": "task"}}]},
	 "calls": [{"tool": "Write", "input": {"file_path": "${me}-${task}.txt", "content": "x"}}]},
	{"when": {"role": "teammate", "task": "."}, "calls": [{"tool": "TaskUpdate", "input": {"taskId": "${task}", "status": "completed"}}]},
	{"when": {"role": "teammate", "not": {"done": {"tool": "TaskList", "outcome": "either", "after": "input"}}}, "calls": [{"tool": "TaskList", "input": {}}]},
	{"when": {"role": "teammate", "done": {"tool": "TaskList", "result": "#(?P<mine>\\d+) \\[in_progress\\] \\w+ \\(${me}\\)", "after": "input"}, "not": {"done": {"tool": "TaskUpdate", "outcome": "either", "after": "input"}}},
	 "calls": [{"tool": "TaskUpdate", "input": {"taskId": "${mine}", "status": "in_progress"}}]},
	{"when": {"role": "teammate"}, "say": "I wait."},

	{"when": {"not": [{"done": {"tool": "TeamCreate"}}, {"done": {"tool": "TeamCreate", "outcome": "failed", "result": "Already leading"}}]},
	 "calls": [{"tool": "TeamCreate", "input": {"team_name": "busy"}}]},
	{"when": {"not": {"done": {"tool": "TaskCreate", "input": {"subject": "^one$"}}}}, "calls": [
		{"tool": "TaskCreate", "input": {"subject": "one", "description": "d"}}, {"tool": "TaskCreate", "input": {"subject": "two", "description": "d"}}]},
	{"when": {"not": {"done": {"tool": "Agent", "input": {"name": "^ann$"}, "outcome": "either"}}}, "calls": [
		{"tool": "Agent", "input": {"name": "ann", "description": "d", "prompt": "word-prompt-ann.", "subagent_type": "general-purpose"}},
		{"tool": "Agent", "input": {"name": "bob", "description": "d", "prompt": "word-prompt-bob.", "subagent_type": "general-purpose"}}]},
	{"when": {"done": {"tool": "SendMessage", "input": {"recipient": "^ann$"}, "result": "no \"ann\"|has left", "outcome": "failed", "after": {"tool": "Agent", "input": {"name": "^ann$"}, "outcome": "either"}}},
	 "calls": [{"tool": "Agent", "input": {"name": "ann", "description": "d", "prompt": "word-prompt-ann.", "subagent_type": "general-purpose"}}]},
	{"when": {"done": {"tool": "Agent", "input": {"name": "^ann$"}, "outcome": "either"}, "not": [{"done": {"tool": "Agent", "input": {"name": "^ann$"}}}, {"done": {"tool": "SendMessage", "input": {"recipient": "^ann$"}, "after": {"tool": "Agent", "input": {"name": "^ann$"}, "outcome": "either"}}}]},
	 "calls": [{"tool": "SendMessage", "input": {"recipient": "ann", "content": "word-lead-ann-1.", "summary": "s"}}]},
	{"when": {"done": {"tool": "SendMessage", "input": {"recipient": "^bob$"}, "result": "no \"bob\"|has left", "outcome": "failed", "after": {"tool": "Agent", "input": {"name": "^bob$"}, "outcome": "either"}}},
	 "calls": [{"tool": "Agent", "input": {"name": "bob", "description": "d", "prompt": "word-prompt-bob.", "subagent_type": "general-purpose"}}]},
	{"when": {"done": {"tool": "Agent", "input": {"name": "^bob$"}, "outcome": "either"}, "not": [{"done": {"tool": "Agent", "input": {"name": "^bob$"}}}, {"done": {"tool": "SendMessage", "input": {"recipient": "^bob$"}, "after": {"tool": "Agent", "input": {"name": "^bob$"}, "outcome": "either"}}}]},
	 "calls": [{"tool": "SendMessage", "input": {"recipient": "bob", "content": "word-lead-bob-1.", "summary": "s"}}]},
	{"when": {"not": {"done": {"tool": "Bash", "outcome": "either"}}}, "calls": [
		{"tool": "Bash", "input": {"command": "${left}", "run_in_background": true}},
		{"tool": "Agent", "input": {"description": "sub", "prompt": "Sleep.", "subagent_type": "general-purpose", "run_in_background": true}}]},
	{"when": {"not": {"done": {"tool": "TaskCreate", "input": {"subject": "^three$"}}}}, "calls": [
		{"tool": "TaskCreate", "input": {"subject": "three", "description": "d"}}, {"tool": "TaskCreate", "input": {"subject": "four", "description": "d"}}]},
	{"when": {"not": {"done": {"tool": "SendMessage", "input": {"recipient": "^ann$", "content": "word-lead-ann-0."}, "outcome": "either"}}}, "calls": [
		{"tool": "SendMessage", "input": {"recipient": "ann", "content": "word-lead-ann-0.", "summary": "s"}},
		{"tool": "SendMessage", "input": {"recipient": "bob", "content": "word-lead-bob-0.", "summary": "s"}}]},
	{"say": "I wait."}
]}`

// killedTeam is a busy team whose processes are killed.
type killedTeam struct {
	t     *testing.T
	env   []string
	root  layout.Root
	dir   string
	model string
	state *cadre.State
}

func newKilledTeam(t *testing.T) *killedTeam {
	t.Helper()
	w := &killedTeam{t: t, env: environment(t), dir: t.TempDir()}
	for _, entry := range w.env {
		if home, ok := strings.CutPrefix(entry, "CADRE_HOME="); ok {
			w.root = layout.Root(home)
		}
	}
	w.model = filepath.Join(t.TempDir(), "busy.jsonc")
	if err := os.WriteFile(w.model, []byte(busyTeam), 0o600); err != nil {
		t.Fatal(err)
	}
	w.privateTmux()
	settings := `{"orphanGraceMs": 300, "askDeadlineMs": 60000, "printWaitCeilingMs": 20000}`
	if err := errors.Join(os.MkdirAll(string(w.root), 0o700), os.WriteFile(w.root.Settings(), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.state = cadre.OpenState(w.root)
	t.Cleanup(func() {
		if err := w.state.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// privateTmux lets tmux find no server but one of this test.
func (w *killedTeam) privateTmux() {
	w.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CADRE_TEST_ALL") != "" {
			w.t.Fatal(err)
		}
		w.t.Skip("no tmux: ", err)
	}
	sockets, err := os.MkdirTemp("", "cadre") // short: a socket's path is limited
	if err != nil {
		w.t.Fatal(err)
	}
	self, err := exec.LookPath("cadre")
	if err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "TMUX=", "TMUX_TMPDIR="+sockets, "CADRE_TEAMMATE_COMMAND="+self)
	w.t.Cleanup(func() {
		names, _ := filepath.Glob(filepath.Join(sockets, "tmux-*", "*"))
		for _, name := range names {
			_ = exec.Command("tmux", "-S", name, "kill-server").Run()
		}
		os.RemoveAll(sockets)
	})
}

// run starts cadre in the team's folder, or in another one.
func (w *killedTeam) run(dir string, args ...string) (*exec.Cmd, fmt.Stringer) {
	w.t.Helper()
	cmd, stdout, stderr := command(w.t, w.env, args...)
	cmd.Dir, cmd.Stderr = dir, stdout
	_ = stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	return cmd, stdout
}

func (w *killedTeam) flags(mode string) []string {
	return []string{"--model", "scripted:" + w.model, "--allowedTools", "Bash", "--teammate-mode", mode}
}

// answering answers every question on the desk with yes, until ctx ends.
func (w *killedTeam) answering(ctx context.Context) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticks := time.NewTicker(50 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			open, _ := w.state.Desk().Open(ctx)
			for _, a := range open {
				_ = w.state.Desk().Leave(ctx, a.ID, ask.Answer{Allow: true, By: "person"}) // the first answer counts
			}
		}
	}()
	return func() { <-done }
}

// processes are those that carry this test's state root in their environment,
// tmux aside.
func (w *killedTeam) processes() map[int]string {
	found := make(map[int]string)
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(env), "CADRE_HOME="+string(w.root)) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if text := strings.ReplaceAll(string(line), "\x00", " "); text != "" && !strings.HasPrefix(text, "tmux") {
			found[pid] = text
		}
	}
	return found
}

// mates are the processes of teammates.
func (w *killedTeam) mates() []int {
	var pids []int
	for _, name := range []string{"ann", "bob"} {
		if p, ok, err := w.state.Presence().Find(w.t.Context(), mailbox.Address{Team: "busy", Agent: name}); err == nil && ok {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

func (w *killedTeam) eventually(what string, limit time.Duration, done func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for !done() {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			w.t.Fatalf("this did not come about: %s; running: %v", what, w.processes())
		}
	}
}

// conversations are what each agent of the team said and was shown, whichever
// transcripts it stands in: that of a teammate is copied when it moves into a pane.
func (w *killedTeam) conversations() map[string][]transcript.Entry {
	w.t.Helper()
	said, seen := make(map[string][]transcript.Entry), make(map[string]bool)
	paths, _ := filepath.Glob(filepath.Join(w.root.Project(w.dir), "*.jsonl"))
	more, _ := filepath.Glob(filepath.Join(w.root.Project(w.dir), "*", "subagents", "*.jsonl"))
	for _, path := range append(paths, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e transcript.Entry
			if e.UnmarshalJSON([]byte(line)) != nil || e.Message.Role == "" || seen[e.UUID] {
				continue
			}
			seen[e.UUID] = true
			name := e.AgentName
			if name == "" && !e.Sidechain {
				name = mailbox.LeadName
			}
			said[name] = append(said[name], e)
		}
	}
	return said
}

// spoken counts the calls that sent each text: all that were made, and those that
// were acknowledged.
func spoken(entries []transcript.Entry) (tried, acked map[string]int) {
	tried, acked = make(map[string]int), make(map[string]int)
	content := make(map[string]string)
	for _, e := range entries {
		for _, b := range e.Message.Content {
			var in struct{ Content string }
			switch {
			case b.Type == transcript.ToolUse && b.Name == "SendMessage" && json.Unmarshal(b.Input, &in) == nil && in.Content != "":
				content[b.ID] = in.Content
				tried[in.Content]++
			case b.Type == transcript.ToolResult && !b.IsError && content[b.ToolUseID] != "":
				acked[content[b.ToolUseID]]++
			}
		}
	}
	return tried, acked
}

// shown counts how often an agent was shown a text.
func shown(entries []transcript.Entry, text string) int {
	n := 0
	for _, e := range entries {
		if e.Kind != transcript.KindUser {
			continue
		}
		for _, b := range e.Message.Content {
			if b.Type == transcript.Text {
				n += strings.Count(b.Text, text)
			}
		}
	}
	return n
}

// returned counts how often an agent was told that a text of its own could not be
// read any more.
func returned(entries []transcript.Entry, text string) int {
	n := 0
	for _, e := range entries {
		for _, b := range e.Message.Content {
			if e.Kind == transcript.KindUser && b.Type == transcript.Text && strings.Contains(b.Text, `"mail_returned"`) {
				n += strings.Count(b.Text, text)
			}
		}
	}
	return n
}

// check holds what is kept of a team that was killed and resumed against what was
// promised.
func (w *killedTeam) check() {
	w.t.Helper()
	said := w.conversations()
	for from, entries := range said {
		tried, acked := spoken(entries)
		for text, n := range tried {
			to := strings.Split(text, "-")[2]
			if to == "lead" {
				to = mailbox.LeadName
			}
			// What a teammate that is gone could not read goes back to its sender and the lead.
			got := shown(said[to], text) + max(returned(entries, text), returned(said[mailbox.LeadName], text))
			if got < acked[text] || got > n {
				w.t.Errorf("%s sent %q %d times, of which %d were acknowledged; %s was shown it, or it came back, %d times", from, text, n, acked[text], to, got)
			}
		}
	}
	for _, name := range []string{"ann", "bob"} {
		if n := shown(said[name], "word-prompt-"+name); n > 1 {
			w.t.Errorf("%s was shown its prompt %d times", name, n)
		}
	}
	w.checkTasks(said)
	w.checkJobs(said[mailbox.LeadName])
}

func (w *killedTeam) checkTasks(said map[string][]transcript.Entry) {
	w.t.Helper()
	list, err := w.state.Tasks().List(w.t.Context(), "busy")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, item := range list {
		if item.Internal() {
			continue
		}
		if item.Status != task.Completed {
			w.t.Errorf("task %+v is not completed", item)
		}
		var wrote []string
		for _, name := range []string{"ann", "bob"} {
			if _, err := os.Stat(filepath.Join(w.dir, name+"-"+item.ID+".txt")); err == nil {
				wrote = append(wrote, name)
			}
		}
		if len(wrote) != 1 || wrote[0] != item.Owner {
			w.t.Errorf("task #%s of %s was done by %v", item.ID, item.Owner, wrote)
		}
	}
}

// checkJobs checks that each job of the lead has an end, and that its model was
// told of it once.
func (w *killedTeam) checkJobs(said []transcript.Entry) {
	w.t.Helper()
	config, err := w.state.Rosters().Load(w.t.Context(), "busy")
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := os.ReadFile(w.root.Side(w.dir, config.LeadSessionID, "", "jobs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // killed before its first job began, it has none
		w.t.Error(err)
	}
	started, ended := make(map[string]string), make(map[string]int)
	for line := range strings.Lines(string(text)) {
		var l struct {
			Job *struct{ ID, Call string }
			ID  string
		}
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		if l.Job != nil {
			started[l.Job.ID] = l.Job.Call
		} else {
			ended[l.ID]++
		}
	}
	for id := range started {
		noticed := shown(said, "<task-id>"+id+"</task-id>")
		for _, e := range said {
			for _, b := range e.Message.Content {
				if b.Type == transcript.ToolResult && strings.Contains(b.Text, transcript.LostResult) && strings.Contains(b.Text, "ID: "+id) {
					noticed++
				}
			}
		}
		if ended[id] != 1 || noticed != 1 {
			w.t.Errorf("job %s has %d ends, and was told of %d times", id, ended[id], noticed)
		}
	}
}

// stands is the state of the team, for who wonders what went wrong.
func (w *killedTeam) stands() string {
	var b strings.Builder
	_ = filepath.WalkDir(string(w.root), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.Contains(path, "/teams/") || strings.Contains(path, "/asks/")) {
			text, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "%s: %s\n", path, text)
		}
		return nil
	})
	return b.String()
}

// TestABusyTeamSurvivesKills: processes of a team are killed at any moment, and it
// is resumed from another folder, perhaps in another backend.
func TestABusyTeamSurvivesKills(t *testing.T) {
	first, seeds := rand.Uint64N(1000), uint64(4)
	if os.Getenv("CADRE_TEST_ALL") != "" {
		first, seeds = 1, 8
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			killAndResume(t, seed)
		})
	}
}

// pass lets time pass: a kill comes at any moment.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func killAndResume(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 1))
	modes := []string{"in-process", "tmux"}
	before, after := modes[seed%2], modes[dice.IntN(2)]
	w := newKilledTeam(t)
	ctx, cancel := context.WithCancel(t.Context())
	wait := w.answering(ctx)
	defer func() { cancel(); wait() }()

	lead, out := w.run(w.dir, append(w.flags(before), "-p", "Begin.")...)
	w.eventually("a team", patience, func() bool { _, err := w.state.Rosters().Load(t.Context(), "busy"); return err == nil })
	moment := time.Duration(dice.IntN([]int{300, 2500}[dice.IntN(2)])) * time.Millisecond
	victims := []string{"lead", "all", "mate"}[dice.IntN(3)]
	t.Logf("%s, then %s: %s after %s", before, after, victims, moment)
	pass(ctx, moment)
	mates := w.mates()
	if victims == "mate" && len(mates) > 0 {
		_ = syscall.Kill(mates[dice.IntN(len(mates))], syscall.SIGKILL)
		pass(ctx, time.Duration(dice.IntN(1000))*time.Millisecond)
	}
	if victims == "all" {
		for _, pid := range mates {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = lead.Process.Kill()
	_ = lead.Wait()
	if runtime.GOOS == "linux" {
		w.eventually("nothing of it is alive", 10*time.Second, func() bool { return len(w.processes()) == 0 })
	}

	var err error
	resume, out2 := w.run(t.TempDir(), append([]string{"team", "resume", "busy", "-p", "Go on."}, w.flags(after)...)...)
	ended := make(chan error, 1)
	go func() { ended <- resume.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(40 * time.Second):
		err = errors.New("it does not end")
		_ = resume.Process.Signal(syscall.SIGABRT) // it prints its stacks
		<-ended
	}
	if err != nil {
		t.Errorf("resume ended with %v; before:\n%s\nresumed:\n%s\nstate:\n%s", err, out, out2, w.stands())
	}
	if t.Failed() {
		return
	}
	if !slices.ContainsFunc(w.conversations()[mailbox.LeadName], func(e transcript.Entry) bool {
		return e.Kind == transcript.KindUser && strings.Contains(transcript.JoinText(e.Message.Content), "You lead the team")
	}) {
		t.Error("the lead was not told of its team")
	}
	w.check()
	if t.Failed() {
		t.Logf("resumed:\n%s", out2)
	}
}

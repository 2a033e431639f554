//go:build unix

package cadre_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/transcript"
)

// scripts are what teammates in processes of their own can run: a process is told
// the name.
var scripts = map[string]func(*scripted.Conversation) scripted.Reply{
	"team": teamScript, "life": lifeScript, "plan": planScript, "busy": busyScript, "delegate": delegateScript, "touch": touchTeamScript, "order": orderScript,
	"again": againScript, "claude": claudeScript, "one": oneScript, "hold": holdScript,
}

// Variables of a process that is a teammate or a lead of a test.
const (
	scriptVar = "CADRE_TEST_SCRIPT"
	roleVar   = "CADRE_TEST_ROLE"
	askVar    = "CADRE_TEST_ASK" // set: permissions are not skipped
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "teammate":
		os.Exit(exitCode(runTeammate(os.Args[1:])))
	case "claude":
		os.Exit(exitCode(runClaude(os.Args[1:])))
	case "lead":
		os.Exit(exitCode(runLead()))
	}
	os.Exit(m.Run())
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runTeammate is what a pane runs: the flags are those that every lead gives
// (facts: claude-code §4.3).
func runTeammate(args []string) error {
	var mate cadre.Teammate
	var resume, mode, model string
	flags := flag.NewFlagSet("teammate", flag.ContinueOnError)
	flags.StringVar(&mate.AgentID, "agent-id", "", "")
	flags.StringVar(&mate.Name, "agent-name", "", "")
	flags.StringVar(&mate.Team, "team-name", "", "")
	flags.StringVar(&mate.Color, "agent-color", "", "")
	flags.StringVar(&mate.LeadSession, "parent-session-id", "", "")
	flags.StringVar(&mate.Type, "agent-type", "", "")
	flags.BoolVar(&mate.MustPlan, "plan-mode-required", false, "")
	flags.StringVar(&resume, "resume", "", "")
	flags.StringVar(&mode, "permission-mode", "", "")
	flags.StringVar(&model, "model", "", "")
	settings := flags.String("settings", "", "")
	skip := flags.Bool("dangerously-skip-permissions", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx := context.Background()
	rt, err := cadre.Open(ctx, cadre.Config{
		Version: "test", Model: "script", SkipPermissions: *skip, Mode: mode, Resume: resume, Teammate: &mate,
		Settings: cmp.Or(*settings, `{"orphanGraceMs": 1000}`), Provider: scripted.New(scripted.Rule{Answer: scripts[os.Getenv(scriptVar)]}),
	})
	if err != nil {
		return err
	}
	<-rt.Session().Done()
	return rt.Shutdown(ctx)
}

// runLead leads a team until it is killed.
func runLead() error {
	rt, err := cadre.Open(context.Background(), paneConfig(os.Getenv(scriptVar)))
	if err != nil {
		return err
	}
	if err := rt.Session().Prompt(context.Background(), "Begin."); err != nil {
		return err
	}
	<-rt.Session().Done()
	return nil
}

// paneConfig is a lead whose teammates run in panes.
func paneConfig(script string) cadre.Config {
	return cadre.Config{
		Version: "test", Model: "script", SkipPermissions: os.Getenv(askVar) == "", TeammateMode: "tmux",
		Provider: scripted.New(scripted.Rule{Answer: scripts[script]}),
	}
}

// paneWorld is a world whose teammates run in panes of a private tmux server.
type paneWorld struct {
	*world
	script string
}

// openPanes opens a runtime whose teammates run in panes.
func openPanes(t *testing.T, script string, change func(*cadre.Config)) *paneWorld {
	t.Helper()
	w := newPaneWorld(t, script)
	w.reopen(t, scripts[script], func(c *cadre.Config) {
		w.inPanes(c)
		if change != nil {
			change(c)
		}
	})
	return w
}

func (w *paneWorld) inPanes(c *cadre.Config) { c.TeammateMode, c.Getenv = "tmux", os.Getenv }

// newPaneWorld makes the folders and the environment of a team in panes.
func newPaneWorld(t *testing.T, script string) *paneWorld {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CADRE_TEST_ALL") != "" {
			t.Fatal(err)
		}
		t.Skip("no tmux: ", err)
	}
	sockets, err := os.MkdirTemp("", "cadre") // short: a socket's path is limited
	if err != nil {
		t.Fatal(err)
	}
	w := &paneWorld{world: &world{home: layout.Root(t.TempDir()), dir: t.TempDir()}, script: script}
	for name, value := range map[string]string{
		"TMUX": "", "TMUX_TMPDIR": sockets, "HOME": string(w.home), "CADRE_HOME": string(w.home),
		"CADRE_TEAMMATE_COMMAND": program(t, "teammate"), scriptVar: script,
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() {
		names, _ := filepath.Glob(filepath.Join(sockets, "tmux-*", "*"))
		for _, name := range names {
			_ = exec.Command("tmux", "-S", name, "kill-server").Run()
		}
		os.RemoveAll(sockets)
	})
	return w
}

// program is the path of a program that is this test binary in a role.
func program(t *testing.T, role string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), role)
	text := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", roleVar, role, self)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestATeamWorksInPanes(t *testing.T) {
	w := openPanes(t, "team", nil)
	w.settle(t, "Write two files.")
	w.checkFiles(t)
	w.end(t)
	if last := lastWords(w.world); last != "Both files are written." {
		t.Errorf("the last words are %q", last)
	}
	told := make(map[string]int)
	for _, m := range bodies[event.MailSent](w.world) {
		if strings.HasPrefix(m.Message.Text, "done with #") {
			told[m.Message.Text]++
		}
	}
	if told["done with #1"] != 1 || told["done with #2"] != 1 {
		t.Errorf("of the mail of other processes was told: %v", told)
	}
	if places := w.presences(t, "My Team!"); len(places) > 0 {
		t.Errorf("still there: %v", places)
	}
}

// presences lists the agents of a team that have a process.
func (w *paneWorld) presences(t *testing.T, name string) map[string]team.Process {
	t.Helper()
	state := cadre.OpenState(w.home)
	defer state.Close()
	found := make(map[string]team.Process)
	for _, agent := range []string{team.LeadName, "ann", "bob"} {
		p, ok, err := state.Presence().Find(t.Context(), mailbox.Address{Team: name, Agent: agent})
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			found[agent] = p
		}
	}
	return found
}

// lifeScript makes a lead with two teammates that write a file each when they are
// told to, and an end when "finish" is said. What each has heard before is in its
// file.
func lifeScript(c *scripted.Conversation) scripted.Reply {
	if c.Role() == scripted.Teammate {
		return lifeMate(c)
	}
	switch {
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "life"})
	case made(c, "TaskCreate") == 0:
		return use("TaskCreate", map[string]any{"subject": "Guard", "description": "stay at it"})
	case made(c, "Agent") < 2:
		name := []string{"ann", "bob"}[made(c, "Agent")]
		return use("Agent", map[string]any{"name": name, "description": "help", "prompt": "You are " + name + ".", "subagent_type": "general-purpose"})
	case heard(c, "finish") && made(c, "SendMessage") < 2:
		name := []string{"ann", "bob"}[made(c, "SendMessage")]
		return use("SendMessage", map[string]any{"type": "shutdown_request", "recipient": name})
	case heard(c, "ann has shut down") && heard(c, "bob has shut down") && made(c, "TeamDelete") == 0:
		return use("TeamDelete", map[string]any{})
	case made(c, "TeamDelete") > 0:
		return say("All have ended.")
	}
	return say("I wait.")
}

func lifeMate(c *scripted.Conversation) scripted.Reply {
	last := c.Inputs[len(c.Inputs)-1].Text
	if strings.Contains(last, `"requestId":"shutdown-`) {
		id, _, _ := strings.Cut(after(last, `"requestId":"`), `"`)
		return use("SendMessage", map[string]any{"type": "shutdown_response", "request_id": id, "approve": true})
	}
	words := after(last, "write ")
	if name, _, ok := strings.Cut(words, "."); ok && words != last && !did(c, "Write", name+".txt") {
		known := "nothing"
		if heard(c, "You are "+c.Agent.Name) {
			known = "who I am"
		}
		return use("Write", map[string]any{"file_path": name + ".txt", "content": known})
	}
	return say("Ready.")
}

// leadElsewhere starts a lead in a process of its own.
func (w *paneWorld) leadElsewhere(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lead := exec.Command(self)
	lead.Dir, lead.Env, lead.Stderr = w.dir, append(os.Environ(), roleVar+"=lead"), os.Stderr
	if err := lead.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lead.Process.Kill()
		_ = lead.Wait()
	})
	return lead
}

// eventually waits until something of other processes has come about.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("this did not come about: %s", what)
		}
	}
}

// hasSaid reports whether the transcript of the team's lead has this reply.
func hasSaid(t *testing.T, state *cadre.State, dir, text string) bool {
	t.Helper()
	config, err := state.Rosters().Load(t.Context(), "life")
	if err != nil {
		return false
	}
	entries, err := state.Transcripts().Read(t.Context(), transcript.Ref{Project: dir, Session: config.LeadSessionID})
	return err == nil && slices.ContainsFunc(entries, func(e transcript.Entry) bool {
		return e.Kind == transcript.KindAssistant && transcript.JoinText(e.Message.Content) == text
	})
}

// A killed lead leaves teammates that end by themselves, to be resumed: with their
// history, their tasks and the mail that came meanwhile, in panes or in the lead's
// own process.
func TestAKilledLeadIsResumedWithItsTeam(t *testing.T) {
	for _, mode := range []string{"tmux", "in-process"} {
		t.Run(mode, func(t *testing.T) {
			w := newPaneWorld(t, "life")
			lead := w.leadElsewhere(t)
			eventually(t, "both teammates run", func() bool { return len(w.presences(t, "life")) == 3 })
			state := cadre.OpenState(w.home)
			defer state.Close()
			eventually(t, "somebody guards", func() bool {
				item, err := state.Tasks().Get(t.Context(), "life", "1")
				return err == nil && item.Owner != ""
			})
			eventually(t, "the lead knows that it has started both", func() bool { return hasSaid(t, state, w.dir, "I wait.") })
			guard, _ := state.Tasks().Get(t.Context(), "life", "1")
			_ = lead.Process.Signal(syscall.SIGKILL)
			eventually(t, "the orphans have ended", func() bool { return len(w.presences(t, "life")) == 0 })
			for _, name := range []string{"ann", "bob"} {
				if _, err := state.Teams().Say(t.Context(), "life", name, "write "+name+"."); err != nil {
					t.Fatal(err)
				}
			}
			config, err := state.Rosters().Load(t.Context(), "life")
			if err != nil {
				t.Fatal(err)
			}
			w.reopen(t, lifeScript, func(c *cadre.Config) {
				w.inPanes(c)
				c.Resume, c.TeammateMode = config.LeadSessionID, mode
			})
			for _, name := range []string{"ann", "bob"} {
				eventually(t, name+" has read its mail and knows itself", func() bool {
					text, _ := os.ReadFile(filepath.Join(w.dir, name+".txt"))
					return string(text) == "who I am"
				})
			}
			if item, err := state.Tasks().Get(t.Context(), "life", "1"); err != nil || item.Owner != guard.Owner {
				t.Errorf("the task is %+v, %v; its owner was %s", item, err, guard.Owner)
			}
			w.settle(t, "finish")
			if _, err := state.Rosters().Load(t.Context(), "life"); !errors.Is(err, team.ErrNotFound) {
				t.Errorf("after TeamDelete: %v", err)
			}
			w.end(t)
			if last := lastWords(w.world); last != "All have ended." {
				t.Errorf("the last words are %q", last)
			}
		})
	}
}

// A teammate whose process dies is off the team within seconds, its task is
// nobody's, and the lead knows.
func TestAKilledPaneIsNoticed(t *testing.T) {
	w := openPanes(t, "life", nil)
	if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
		t.Fatal(err)
	}
	state := cadre.OpenState(w.home)
	defer state.Close()
	var owner string
	eventually(t, "somebody guards", func() bool {
		item, err := state.Tasks().Get(t.Context(), "life", "1")
		owner = item.Owner
		return err == nil && owner != "" && len(w.presences(t, "life")) == 3
	})
	if err := syscall.Kill(w.presences(t, "life")[owner].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, owner+" is off the roster", func() bool {
		config, err := state.Rosters().Load(t.Context(), "life")
		return err == nil && config.Find(owner) == nil
	})
	eventually(t, "the other guards", func() bool {
		item, err := state.Tasks().Get(t.Context(), "life", "1")
		return err == nil && item.Owner != "" && item.Owner != owner
	})
}

// planScript makes a lead with a teammate that has to plan before it writes.
func planScript(c *scripted.Conversation) scripted.Reply {
	if c.Role() != scripted.Teammate {
		switch {
		case made(c, "TeamCreate") == 0:
			return use("TeamCreate", map[string]any{"team_name": "plans"})
		case made(c, "Agent") == 0:
			return use("Agent", map[string]any{"name": "ann", "description": "plan", "prompt": "Plan, then write.", "subagent_type": "general-purpose", "mode": "plan"})
		}
		return say("I wait.")
	}
	path, known := planPath(c)
	switch {
	case !tried(c, "too early"):
		return use("Write", map[string]any{"file_path": "too early", "content": "x"})
	case !tried(c, "ExitPlanMode"):
		return use("ExitPlanMode", map[string]any{})
	case known && !did(c, "Write", path):
		return use("Write", map[string]any{"file_path": path, "content": "# Plan: write the file"})
	case made(c, "ExitPlanMode") == 0:
		return use("ExitPlanMode", map[string]any{})
	case !heard(c, "plan_approval_response"):
		return say("I wait for the approval.")
	case !did(c, "Write", "done.txt"):
		return use("Write", map[string]any{"file_path": "done.txt", "content": "planned"})
	}
	return say("Done.")
}

// tried reports whether a call of this tool, or with this in its input, was made,
// whatever came of it.
func tried(c *scripted.Conversation, text string) bool {
	for _, m := range c.Made {
		if m.Tool == text || strings.Contains(string(m.Input), text) {
			return true
		}
	}
	return false
}

// result is what the newest call of a tool gave.
func result(c *scripted.Conversation, tool string) (text string) {
	for _, m := range c.Made {
		if m.Tool == tool {
			text = m.Result
		}
	}
	return text
}

// planPath is where the agent was told that its plan belongs.
func planPath(c *scripted.Conversation) (string, bool) {
	for _, m := range c.Made {
		if path, _, ok := strings.Cut(after(m.Result, "No plan file found at "), ". Please"); ok && m.Tool == "ExitPlanMode" {
			return path, true
		}
	}
	return "", false
}

// A teammate in plan mode changes nothing before its plan is approved, wherever it
// runs.
func TestATeammatePlansFirst(t *testing.T) {
	for _, mode := range []string{"tmux", "in-process"} {
		t.Run(mode, func(t *testing.T) {
			w := openPanes(t, "plan", func(c *cadre.Config) { c.TeammateMode = mode })
			if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the plan is carried out", func() bool {
				text, _ := os.ReadFile(filepath.Join(w.dir, "done.txt"))
				return string(text) == "planned"
			})
			if _, err := os.Stat(filepath.Join(w.dir, "too early")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file was written in plan mode: %v", err)
			}
		})
	}
}

// delegateScript makes a lead that tries to write by itself and then has a teammate
// do it.
func delegateScript(c *scripted.Conversation) scripted.Reply {
	write := func(name string) scripted.Reply {
		return use("Write", map[string]any{"file_path": name, "content": "by " + c.Agent.Name})
	}
	switch {
	case c.Role() == scripted.Teammate && made(c, "Write") == 0:
		return write("done.txt")
	case c.Role() == scripted.Teammate:
		return say("Done.")
	case !did(c, "Write", "own.txt"):
		return write("own.txt")
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "deputies"})
	case made(c, "Agent") == 0:
		return use("Agent", map[string]any{"name": "ann", "description": "write", "prompt": "Write it.", "subagent_type": "general-purpose"})
	}
	return say("I wait.")
}

// A lead in delegate mode does nothing itself, and those whom it starts can work,
// wherever they run: by its rules, not in its mode.
func TestADelegatingLeadsTeammatesWork(t *testing.T) {
	for _, mode := range []string{"tmux", "in-process"} {
		t.Run(mode, func(t *testing.T) {
			w := openPanes(t, "delegate", func(c *cadre.Config) {
				c.TeammateMode, c.Mode, c.SkipPermissions = mode, "delegate", false
				c.Settings = `{"permissions": {"allow": ["Edit(./*.txt)"]}}`
			})
			if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the teammate has written", func() bool {
				_, err := os.Stat(filepath.Join(w.dir, "done.txt"))
				return err == nil
			})
			if _, err := os.Stat(filepath.Join(w.dir, "own.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the lead has written in delegate mode: %v", err)
			}
		})
	}
}

// busyScript makes a lead with a teammate that runs a command until it may end.
func busyScript(c *scripted.Conversation) scripted.Reply {
	switch {
	case c.Role() == scripted.Teammate && made(c, "Bash") == 0:
		return use("Bash", map[string]any{"command": "echo > began; while [ ! -e go ]; do sleep 0.02; done; echo > ended"})
	case c.Role() == scripted.Teammate:
		return say("Done.")
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "busy"})
	case made(c, "Agent") == 0:
		return use("Agent", map[string]any{"name": "ann", "description": "work", "prompt": "Work.", "subagent_type": "general-purpose"})
	}
	return say("I wait.")
}

// A run does not end while a teammate in another process is at work, also in the
// moments in which that begins.
func TestSettledWaitsForPanes(t *testing.T) {
	w := openPanes(t, "busy", nil)
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(w.dir, name))
		return err == nil
	}
	if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() {
		err := w.Settled(t.Context())
		if err == nil && !exists("ended") {
			err = errors.New("it returned while the teammate was at work")
		}
		settled <- err
	}()
	eventually(t, "the teammate is at work", func() bool { return exists("began") })
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Fatalf("Settled: %v", err)
	}
}

// touchTeamScript makes a lead with two teammates that run the same command, the
// second when the first is done.
func touchTeamScript(c *scripted.Conversation) scripted.Reply {
	start := func(name string) scripted.Reply {
		return use("Agent", map[string]any{"name": name, "description": "touch", "prompt": "Touch.", "subagent_type": "general-purpose"})
	}
	switch {
	case c.Role() == scripted.Teammate && made(c, "Bash") == 0:
		return use("Bash", map[string]any{"command": "touch made"})
	case c.Role() == scripted.Teammate:
		return say("Done.")
	case made(c, "TeamCreate") == 0:
		return use("TeamCreate", map[string]any{"team_name": "touch"})
	case made(c, "Agent") == 0:
		return start("ann")
	case made(c, "Agent") == 1 && heard(c, `"from":"ann"`):
		return start("bob")
	case heard(c, `"from":"bob"`):
		return say("Both are done.")
	}
	return say("I wait.")
}

// What a person accepts for a teammate in another process is kept by the lead, and
// answers the next teammate.
func TestAlwaysForATeammateInAPane(t *testing.T) {
	t.Setenv(askVar, "yes")
	w := openPanes(t, "touch", func(c *cadre.Config) { c.SkipPermissions = false })
	asked := w.answering(t, func(a ask.Ask) ask.Answer { return ask.Answer{Allow: true, By: "person", Updates: a.Suggestions} })
	w.settle(t, "Begin.")
	w.Kill()
	if last := lastWords(w.world); last != "Both are done." {
		t.Errorf("the last words are %q", last)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, ".claude", "settings.local.json"))
	if err != nil || strings.Count(string(text), "Bash(touch made)") != 1 {
		t.Errorf("kept %s, %v", text, err)
	}
	if all := asked(); len(all) != 1 {
		t.Errorf("asked %d times, want once: %+v", len(all), all)
	}
}

// Where nobody can be asked, a teammate's question is answered at once, its model
// is told what to do, and whoever looks on what would have allowed the call.
func TestNobodyToAskForATeammateInAPane(t *testing.T) {
	t.Setenv(askVar, "yes")
	w := openPanes(t, "touch", func(c *cadre.Config) { c.SkipPermissions = false })
	if err := w.Session().Prompt(t.Context(), "Begin."); err != nil {
		t.Fatal(err)
	}
	var denied event.ToolDenied
	var told string
	for ev := range w.Session().Events(t.Context(), 0) {
		switch body := ev.Body.(type) {
		case event.ToolDenied:
			denied = body
		case event.MailSent:
			told = body.Message.Text
		}
		if denied.Tool != "" && strings.Contains(told, "permission_response") {
			break
		}
	}
	if denied.Tool != "Bash" || denied.Remedy != "--allowedTools 'Bash(touch made)'" {
		t.Errorf("denied %+v", denied)
	}
	if !strings.Contains(told, "No rule allows to run touch here. Nobody can be asked") || !strings.Contains(told, "say what you would need") {
		t.Errorf("told %s", told)
	}
}

package cadre_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/session"
)

// This test binary is also what panes run, and a lead that can be killed. This
// variable says as what it was started.
const roleVariable = "CADRE_TEST_ROLE"

// standIns are other programs that this test binary can be, by their roles.
var standIns = map[string]func(args []string) error{}

// scripts are what teammates in processes of their own can run instead of a puppet;
// scriptVariable names one.
var scripts = map[string]func(*scripted.Conversation) scripted.Reply{}

const scriptVariable = "CADRE_TEST_SCRIPT"

func TestMain(m *testing.M) {
	ctx := context.Background()
	switch role, what, _ := strings.Cut(os.Getenv(roleVariable), " "); role {
	case "teammate":
		os.Exit(exitCode(runTeammate(ctx, os.Args[1:])))
	case "lead":
		os.Exit(exitCode(runLead(ctx, what)))
	default:
		if run, ok := standIns[role]; ok {
			os.Exit(exitCode(run(os.Args[1:])))
		}
	}
	os.Exit(runTests(m))
}

// runTests gives the tmux servers of the tests a folder of their own.
func runTests(m *testing.M) int {
	sockets, err := os.MkdirTemp("", "cadre") // short: a socket's path is limited
	if err != nil {
		return exitCode(err)
	}
	defer os.RemoveAll(sockets)
	for name, value := range map[string]string{"TMUX": "", "TMUX_PANE": "", "TMUX_TMPDIR": sockets} {
		if err := os.Setenv(name, value); err != nil {
			return exitCode(err)
		}
	}
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		// These tests wait for other processes more than they compute.
		if err := flag.Set("test.parallel", "6"); err != nil {
			return exitCode(err)
		}
	}
	return m.Run()
}

func exitCode(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runTeammate is what a pane runs: the flags are those that every lead gives
// (facts: claude-code §4.3). As in every front end, Ctrl+C ends the turn.
func runTeammate(ctx context.Context, args []string) error {
	var mate cadre.Teammate
	cfg := cadre.Config{Version: "test", Teammate: &mate}
	rules := func(into *[]string) func(string) error {
		return func(list string) error {
			*into = append(*into, strings.Split(list, ",")...)
			return nil
		}
	}
	flags := flag.NewFlagSet("teammate", flag.ContinueOnError)
	flags.StringVar(&mate.AgentID, "agent-id", "", "")
	flags.StringVar(&mate.Name, "agent-name", "", "")
	flags.StringVar(&mate.Team, "team-name", "", "")
	flags.StringVar(&mate.Color, "agent-color", "", "")
	flags.StringVar(&mate.LeadSession, "parent-session-id", "", "")
	flags.StringVar(&mate.Type, "agent-type", "", "")
	flags.BoolVar(&mate.MustPlan, "plan-mode-required", false, "")
	flags.StringVar(&cfg.Resume, "resume", "", "")
	flags.StringVar(&cfg.Mode, "permission-mode", "", "")
	flags.StringVar(&cfg.Model, "model", "", "")
	flags.BoolVar(&cfg.SkipPermissions, "dangerously-skip-permissions", false, "")
	flags.Func("allowedTools", "", rules(&cfg.AllowedTools))
	flags.Func("disallowedTools", "", rules(&cfg.DisallowedTools))
	flags.StringVar(&cfg.Settings, "settings", "", "")
	flags.StringVar(&cfg.AppendSystemPrompt, "append-system-prompt", "", "")
	flags.Func("add-dir", "", func(dir string) error {
		cfg.AddDirs = append(cfg.AddDirs, dir)
		return nil
	})
	flags.Func("tools", "", rules(&cfg.Tools))
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg.Provider = puppet(layout.Root(os.Getenv("CADRE_HOME")))
	if script, ok := scripts[os.Getenv(scriptVariable)]; ok {
		cfg.Provider, cfg.Model = scripted.New(scripted.Rule{Answer: script}), "script"
	}
	rt, err := cadre.Open(ctx, cfg)
	if err != nil {
		return err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	for {
		select {
		case <-interrupts:
			_ = rt.Session().Interrupt(ctx, session.ErrInterrupt)
		case <-rt.Session().Done():
			return rt.Shutdown(ctx)
		}
	}
}

// leadConfig says what a lead in a process of its own does.
type leadConfig struct {
	Home    layout.Root
	Dir     string
	Backend string // teammateMode
	Command string // of teammates in panes
	Prompt  string
	Script  string // of the lead; "": a puppet
	Asks    bool   // permissions are not skipped
}

// config is the runtime of a lead.
func (l leadConfig) config() cadre.Config {
	variables := map[string]string{"HOME": string(l.Home), "CADRE_HOME": string(l.Home), "CADRE_TEAMMATE_COMMAND": l.Command}
	cfg := cadre.Config{
		Root: l.Home, Cwd: l.Dir, Version: "test", Model: "script", SkipPermissions: !l.Asks, TeammateMode: l.Backend,
		Getenv: func(name string) string { return variables[name] }, Provider: puppet(l.Home),
	}
	if l.Script != "" {
		cfg.Getenv, cfg.Provider = os.Getenv, scripted.New(scripted.Rule{Answer: scripts[l.Script]})
	}
	return cfg
}

// runLead leads a team until it is killed.
func runLead(ctx context.Context, config string) error {
	var l leadConfig
	if err := json.Unmarshal([]byte(config), &l); err != nil {
		return err
	}
	rt, err := cadre.Open(ctx, l.config())
	if err != nil {
		return err
	}
	if err := rt.Session().Prompt(ctx, l.Prompt); err != nil {
		return err
	}
	<-rt.Session().Done()
	return nil
}

// startLead starts a lead in a process of its own, and returns what kills it.
func startLead(t *testing.T, l leadConfig) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	lead := exec.Command(self)
	lead.Env, lead.Stderr = append(os.Environ(), roleVariable+"=lead "+string(config)), os.Stderr
	if err := lead.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = lead.Process.Kill()
		_ = lead.Wait()
	}
	t.Cleanup(kill)
	return kill
}

package cadre_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/transcript"
)

// backend is where the teammates of a test run, with all in which that makes a
// difference to what can be seen of a team.
type backend struct {
	mode string // teammateMode; also what rosters call it
	// apart: each teammate has a process. It has a place of its own then, and dies
	// alone; its conversation is a main session; and it gets its prompt as mail,
	// which has no summary (facts: claude-code §5.2).
	apart bool
}

var (
	inProcess = backend{mode: "in-process"}
	inPanes   = backend{mode: "tmux", apart: true}
	backends  = []backend{inProcess, inPanes}
)

// overBackends runs a test of team behaviour with teammates in their lead's process
// and with teammates in panes of a tmux server that the lead starts for them alone.
func overBackends(t *testing.T, test func(t *testing.T, w *teamWorld)) {
	t.Helper()
	for _, b := range backends {
		t.Run(b.mode, func(t *testing.T) {
			t.Parallel()
			test(t, newTeamWorld(t, b))
		})
	}
}

// teamWorld is a team called alpha, in folders of its own. Until [teamWorld.open]
// nobody is there.
type teamWorld struct {
	*world
	backend
	state   *cadre.State
	command string // of teammates in panes
	orders  int
	asked   []string // ids of the questions that were answered
}

// alpha is the team of every test.
const alpha = "alpha"

func newTeamWorld(t *testing.T, b backend) *teamWorld {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil && b.apart {
		if os.Getenv("CADRE_TEST_ALL") != "" {
			t.Fatal(err)
		}
		t.Skip("no tmux: ", err)
	}
	home := t.TempDir()
	w := &teamWorld{world: &world{home: layout.Root(home), dir: t.TempDir()}, backend: b, state: cadre.OpenState(layout.Root(home))}
	t.Cleanup(func() { w.state.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.command = filepath.Join(home, "teammate")
	script := fmt.Sprintf("#!/bin/sh\nexport HOME='%[1]s' CADRE_HOME='%[1]s' %[2]s=teammate GORACE=atexit_sleep_ms=0\nexec '%[3]s' \"$@\"\n", home, roleVariable, self)
	w.write(t, w.command, script, 0o700)
	w.settings(t, `{"orphanGraceMs": 300}`)
	t.Cleanup(w.endServers)
	return w
}

// endServers ends the tmux servers that leads of this world have started, which are
// called after the leads' sessions, and waits for the teammates that ran there.
func (w *teamWorld) endServers() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	infos, _ := w.state.Transcripts().List(ctx, w.dir)
	for _, info := range infos {
		_ = exec.Command("tmux", "-L", "cadre-"+info.Ref.Session[:8], "kill-server").Run()
	}
	config, _ := w.state.Rosters().Load(ctx, alpha)
	for _, m := range config.Members {
		for runs := true; runs && ctx.Err() == nil; {
			_, runs, _ = w.state.Presence().Find(ctx, at(m.Name))
		}
	}
}

func (w *teamWorld) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// settings writes the person's settings, which every process reads when it starts.
func (w *teamWorld) settings(t *testing.T, text string) {
	t.Helper()
	w.write(t, w.home.Settings(), text, 0o600)
}

func (w *teamWorld) leadConfig() leadConfig {
	return leadConfig{Home: w.home, Dir: w.dir, Backend: w.mode, Command: w.command}
}

// open opens the lead in this process.
func (w *teamWorld) open(t *testing.T, change func(*cadre.Config)) {
	t.Helper()
	w.Runtime = start(t, w.leadConfig().config(), change)
}

// form opens the lead and has it form the team with these teammates, which have
// nothing to do yet.
func (w *teamWorld) form(t *testing.T, mates ...string) {
	t.Helper()
	if w.Runtime == nil {
		w.open(t, nil)
	}
	w.leads(t, forming(mates...)...)
}

// forming are the calls that make a team.
func forming(mates ...string) []scripted.Call {
	calls := []scripted.Call{scripted.Use("TeamCreate", fields{"team_name": alpha, "description": "the test"})}
	for _, name := range mates {
		calls = append(calls, spawning(name, "You are "+name+"."))
	}
	return calls
}

// fields is the input of a call.
type fields map[string]any

func spawning(name, prompt string) scripted.Call {
	return scripted.Use("Agent", fields{"name": name, "description": "help out", "prompt": prompt, "subagent_type": "general-purpose"})
}

// writing is a call that writes mail.
func writing(to, text, summary string) scripted.Call {
	return scripted.Use("SendMessage", fields{"recipient": to, "content": text, "summary": summary})
}

// give gives an order to the lead, as a prompt, or to a teammate, as a person's
// mail. It returns the name under which the order's calls can be found.
func (w *teamWorld) give(t *testing.T, agent string, o order) string {
	t.Helper()
	w.orders++
	o.ID = "order" + strconv.Itoa(w.orders)
	var err error
	if agent == mailbox.LeadName && w.Runtime != nil {
		err = w.Session().Prompt(t.Context(), o.text())
	} else {
		_, err = w.state.Teams().Say(t.Context(), alpha, agent, o.text())
	}
	if err != nil {
		t.Fatal(err)
	}
	return o.ID
}

// does has an agent make calls, one after the other, and returns what its model was
// told of each.
func (w *teamWorld) does(t *testing.T, agent string, calls ...scripted.Call) []string {
	t.Helper()
	return w.results(t, agent, w.give(t, agent, order{Calls: calls}), len(calls))
}

// leads has the lead make calls.
func (w *teamWorld) leads(t *testing.T, calls ...scripted.Call) []string {
	t.Helper()
	return w.does(t, mailbox.LeadName, calls...)
}

// results waits for the results of an order's calls.
func (w *teamWorld) results(t *testing.T, agent, order string, calls int) (texts []string) {
	t.Helper()
	var all map[string]transcript.Block
	eventually(t, agent+" has made the calls of "+order, func() bool {
		all = w.shown(t, agent).results()
		_, ok := all[callID(order, calls-1)]
		return ok
	})
	for n := range calls {
		texts = append(texts, all[callID(order, n)].ResultText())
	}
	return texts
}

// isShown waits until an agent's model was shown an input that has all of these in
// it.
func (w *teamWorld) isShown(t *testing.T, agent string, texts ...string) {
	t.Helper()
	defer w.tellShown(t, agent)
	eventually(t, fmt.Sprintf("%s was shown %q", agent, texts), func() bool { return w.shown(t, agent).times(texts...) > 0 })
}

// tellShown says, in a test that has failed, what an agent's model was shown.
func (w *teamWorld) tellShown(t *testing.T, agent string) {
	t.Helper()
	if t.Failed() {
		t.Logf("%s was shown:\n%s", agent, strings.Join(w.shown(t, agent).inputs(), "\n"))
	}
}

// idles waits until the lead was told this often that a teammate is idle, and
// returns all that it was told.
func (w *teamWorld) idles(t *testing.T, agent string, times int) (notes []protocol.IdleNotification) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s has told %d times that it is idle", agent, times), func() bool {
		notes = slices.DeleteFunc(controls[protocol.IdleNotification](t, w, mailbox.LeadName), func(n protocol.IdleNotification) bool { return n.From != agent })
		return len(notes) >= times
	})
	return notes
}

// mail is all that an agent's inbox ever got.
func (w *teamWorld) mail(t *testing.T, agent string) []mailbox.Message {
	t.Helper()
	all, err := w.state.Mail().All(t.Context(), at(agent))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// member is a member as the roster has it; nil when it is not on it.
func (w *teamWorld) member(t *testing.T, name string) *roster.Member {
	t.Helper()
	config, err := w.state.Rosters().Load(t.Context(), alpha)
	if errors.Is(err, roster.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return config.Find(name)
}

// leaves waits until a teammate is off the roster, and nothing of it is left.
func (w *teamWorld) leaves(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" is off the roster", func() bool { return w.member(t, name) == nil })
	eventually(t, "nothing runs "+name, func() bool { _, runs := w.place(t, name); return !runs })
}

// place is the process that runs a teammate apart; for a lead, that of the lead.
func (w *teamWorld) place(t *testing.T, name string) (roster.Process, bool) {
	t.Helper()
	p, ok, err := w.state.Presence().Find(t.Context(), at(name))
	if err != nil {
		t.Fatal(err)
	}
	return p, ok
}

// task is a task of the team; the zero Task when there is none.
func (w *teamWorld) task(t *testing.T, id string) task.Task {
	t.Helper()
	item, err := w.state.Tasks().Get(t.Context(), alpha, id)
	if err != nil && !errors.Is(err, task.ErrNotFound) {
		t.Fatal(err)
	}
	return item
}

// file is a file of the working folder; "" when it is not there.
func (w *teamWorld) file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// path is that of a file in the working folder.
func (w *teamWorld) path(name string) string { return filepath.Join(w.dir, name) }

// transcripts are the conversations of a teammate that are kept.
func (w *teamWorld) transcripts(t *testing.T, name string) (found [][]map[string]any) {
	t.Helper()
	pattern := []string{w.home.Project(w.dir), "*.jsonl"}
	if !w.apart {
		pattern = []string{w.home.Project(w.dir), w.Info().SessionID, "subagents", "agent-t*.jsonl"}
	}
	paths, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if lines := readLines(t, path); lines[0]["agentName"] == name {
			found = append(found, lines)
		}
	}
	return found
}

// panes lists the panes of the lead's tmux server by their titles.
func (w *teamWorld) panes(t *testing.T) []string {
	t.Helper()
	return panesOf(w.Info().SessionID)
}

// panesOf lists the panes of the tmux server that the lead with this session has
// started.
func panesOf(session string) []string {
	out, err := exec.Command("tmux", "-L", "cadre-"+session[:8], "list-panes", "-a", "-F", "#{pane_title}").CombinedOutput()
	if err != nil {
		return nil // the server ends with its last pane
	}
	return strings.Fields(string(out))
}

// eventually waits until something of other processes has come about.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !done() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("this did not come about: %s", what)
		}
	}
}

// contains checks that a text has all of these in it.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// control reads a message of the team protocol.
func control[C protocol.Control](m mailbox.Message) (c C, ok bool) {
	parsed, _ := protocol.Parse(m.Text)
	c, ok = parsed.(C)
	return c, ok
}

// controls are the messages of a type in an agent's inbox, in order.
func controls[C protocol.Control](t *testing.T, w *teamWorld, agent string) (all []C) {
	t.Helper()
	for _, m := range w.mail(t, agent) {
		if c, ok := control[C](m); ok {
			all = append(all, c)
		}
	}
	return all
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

// patience is how long a test waits for what another process does.
const patience = 30 * time.Second

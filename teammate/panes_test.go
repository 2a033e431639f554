//go:build unix

package teammate_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
)

// nasty is text that would not survive being typed into a shell.
const nasty = "it's \"quoted\"; $HOME `id` $(id) \\ \t 日本 😀\n\nC-c \x03 %s #{pane_id} !! ; "

// What a teammate sees: its flags in their order, the lead's environment and no
// other, its folder, its prompt byte for byte, and its pane on the roster.
func TestPanesStart(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "it's; a $(folder)")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) {
		c.Env = append(c.Env, "NASTY="+nasty, "LONG="+strings.Repeat("x'", 50_000), "EMPTY=", "BYTES=\xff\xfe",
			"not a name=1", "SHELLOPTS=x", "CLAUDECODE=0")
	})
	prompt := strings.Repeat(nasty, 1500) // more than 100 KB
	by := w.by
	by.Cwd = folder
	spawned, err := w.Spawn(t.Context(), by, team.SpawnRequest{
		Name: "w1", AgentType: "general-purpose", Prompt: prompt, Description: "the work", Model: "haiku",
	})
	if err != nil {
		t.Fatal(err)
	}
	m, seen := w.member(t, "w1"), w.seen(t, "w1")
	panes := w.open(t)
	if len(panes) != 1 || m.PaneID != panes[0] || seen.PaneID != panes[0] || string(seen.Env["TMUX_PANE"]) != panes[0] {
		t.Errorf("pane %q on the roster, %q when it began, %q in its environment, open is %q",
			m.PaneID, seen.PaneID, seen.Env["TMUX_PANE"], panes)
	}
	if m.BackendType != "tmux" || spawned.Member.Name != "w1" {
		t.Errorf("backend %q", m.BackendType)
	}
	want := []string{
		"--agent-id", "w1@alpha", "--agent-name", "w1", "--team-name", "alpha", "--agent-color", "blue",
		"--parent-session-id", "session-1", "--agent-type", "general-purpose", "--model", "haiku",
	}
	if diff := cmp.Diff(want, seen.Args); diff != "" {
		t.Errorf("flags (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{
		"NASTY": nasty, "LONG": strings.Repeat("x'", 50_000), "EMPTY": "", "BYTES": "\xff\xfe", "PATH": os.Getenv("PATH"),
		"CLAUDECODE": "1", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1", "CLAUDE_CODE_ENTRYPOINT": "cli",
	} {
		if got, ok := seen.Env[name]; !ok || string(got) != value {
			t.Errorf("%s is %.100q, want %.100q", name, got, value)
		}
	}
	for _, name := range []string{"OF_ANOTHER_DAY", "CADRE_PANE_START", "tries", "not a name", "SHELLOPTS"} {
		if value, ok := seen.Env[name]; ok {
			t.Errorf("%s=%s is not the lead's", name, value)
		}
	}
	if !strings.HasPrefix(string(seen.Env["TMUX"]), w.socket) {
		t.Errorf("TMUX is %q", seen.Env["TMUX"])
	}
	if real, err := filepath.EvalSymlinks(folder); err != nil || seen.Cwd != real {
		t.Errorf("works in %s, want %s", seen.Cwd, real)
	}
	if len(seen.Unread) != 1 {
		t.Fatalf("%d messages when it began", len(seen.Unread))
	}
	first := seen.Unread[0]
	if first.Text != prompt || first.From != "team-lead" || first.Summary != "" || first.Color != "" {
		t.Errorf("first message from %q, summary %q, color %q, %d bytes of %d", first.From, first.Summary, first.Color, len(first.Text), len(prompt))
	}
	if files := w.startFiles(t); len(files) != 0 {
		t.Errorf("left of the start: %q", files)
	}
	if active := w.tmux(t, "display-message", "-p", "#{pane_id} #{pane_title}"); !strings.HasPrefix(active, w.lead) {
		t.Errorf("the focus is on %s", active)
	}
}

func TestPanesFlags(t *testing.T) {
	mode := ""
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) {
		c.Mode = func() string { return mode }
		c.Flags = []string{"--allowedTools", "Read,Bash(git log *)"}
	})
	for i, c := range []struct {
		mode  string
		plan  bool
		flags string
	}{
		{"default", false, ""},
		{"acceptEdits", false, "--permission-mode acceptEdits "},
		{"dontAsk", false, "--permission-mode dontAsk "},
		{"bypassPermissions", false, "--dangerously-skip-permissions "},
		{"plan", false, ""},
		{"delegate", false, ""},
		{"bypassPermissions", true, ""},
	} {
		mode = c.mode
		spawned, err := w.Spawn(t.Context(), w.by, team.SpawnRequest{
			Name: "w" + string(rune('a'+i)), AgentType: "Explore", Prompt: "p", PlanMode: c.plan, Window: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Join(w.seen(t, spawned.Member.Name).Args, " ")
		must := ""
		if c.plan {
			must = " --plan-mode-required"
		}
		want := "--parent-session-id session-1" + must + " --agent-type Explore " + c.flags + "--allowedTools Read,Bash(git log *) --model model-1"
		if !strings.HasSuffix(args, want) {
			t.Errorf("in mode %s, plan %v: %s", c.mode, c.plan, args)
		}
	}
	if windows := strings.Count(w.tmux(t, "list-windows", "-F", "x"), "x"); windows != 8 {
		t.Errorf("%d windows for a lead and 7 teammates with one each", windows)
	}
}

// A teammate that does not check in has not started: nothing of it is left, and
// the error shows what its pane did.
func TestPanesNoCheckIn(t *testing.T) {
	w := newPaneWorld(t, "silent", func(c *teammate.PanesConfig) { c.CheckIn = 2 * time.Second })
	_, err := w.Spawn(t.Context(), w.by, team.SpawnRequest{Name: "w1", Prompt: "p"})
	if err == nil || !strings.Contains(err.Error(), "not checked in within 2s") || !strings.Contains(err.Error(), "I say nothing to my lead.") {
		t.Errorf("error %v", err)
	}
	w.nothingLeft(t, "w1")
}

// A program that ends at once is not waited for.
func TestPanesProgramThatEnds(t *testing.T) {
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) { c.Command = []string{"/no/such/program"} })
	_, err := w.Spawn(t.Context(), w.by, team.SpawnRequest{Name: "w1", Prompt: "p"})
	if err == nil || !strings.Contains(err.Error(), "exit code 127") || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("error %v", err)
	}
	w.nothingLeft(t, "w1")
}

func TestPanesWithoutItsFolder(t *testing.T) {
	w := newPaneWorld(t, "mate")
	by := w.by
	by.Cwd = "/no/such/folder"
	_, err := w.Spawn(t.Context(), by, team.SpawnRequest{Name: "w1", Prompt: "p"})
	if err == nil || !strings.Contains(err.Error(), "/no/such/folder") {
		t.Errorf("error %v", err)
	}
	w.nothingLeft(t, "w1")
}

func TestPanesStartInterrupted(t *testing.T) {
	w := newPaneWorld(t, "silent")
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("the person has changed her mind")
	read, stop := w.files.Mail().Watch(at("w1"))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-read // its prompt is there, so its pane is open
		cancel(interrupted)
	}()
	_, err := w.Spawn(ctx, w.by, team.SpawnRequest{Name: "w1", Prompt: "p"})
	<-ended
	if !errors.Is(err, interrupted) {
		t.Errorf("error %v", err)
	}
	w.nothingLeft(t, "w1")
}

// failingRecords keeps no panes.
type failingRecords struct{ roster.Records }

var errDisk = errors.New("the disk is full")

func (r failingRecords) Put(ctx context.Context, name, kind, record string, doc []byte) error {
	if kind == roster.RecordPane {
		return errDisk
	}
	return r.Records.Put(ctx, name, kind, record, doc)
}

// A pane that cannot be recorded is not left open.
func TestPanesRecordFails(t *testing.T) {
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) { c.Records = failingRecords{c.Records} })
	_, err := w.Spawn(t.Context(), w.by, team.SpawnRequest{Name: "w1", Prompt: "p"})
	if !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
	w.nothingLeft(t, "w1")
	if _, err := os.Stat(filepath.Join(w.root, "w1.seen")); err == nil {
		t.Error("the program has run")
	}
}

// nothingLeft checks that nothing is left of a teammate that did not start.
func (w *paneWorld) nothingLeft(t *testing.T, name string) {
	t.Helper()
	if panes := w.open(t); len(panes) != 0 {
		t.Errorf("open panes: %q", panes)
	}
	if w.recorded(t, name) {
		t.Error("a pane is on record")
	}
	if files := w.startFiles(t); len(files) != 0 {
		t.Errorf("start files: %q", files)
	}
	config, err := w.files.Teams().Load(t.Context(), "alpha")
	if err != nil || config.Find(name) != nil {
		t.Errorf("on the roster: %+v, %v", config.Find(name), err)
	}
}

// Outside tmux the person is told, once, how to look at the panes.
func TestPanesPrivateServer(t *testing.T) {
	name := ""
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) {
		name = filepath.Base(c.Dir) + "-" + filepath.Base(t.TempDir())
		choice, err := pane.NewDetector(pane.Environment{Vars: os.Environ(), Server: name}).Choose(t.Context(), pane.Tmux)
		if err != nil {
			t.Fatal(err)
		}
		c.Terminal = choice.Terminal
	})
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", name, "kill-server").Run() })
	w.spawn(t, "w1")
	w.spawn(t, "w2")
	want := []string{"Teammates run in tmux. To look at them: tmux -L " + name + " attach"}
	if diff := cmp.Diff(want, w.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if _, ok := w.seen(t, "w2").Env["OF_ANOTHER_DAY"]; ok {
		t.Error("the environment is the server's")
	}
}

// A pane that its person kills is noticed; its teammate has gone, and its tasks
// are free.
func TestPanesKilledByHand(t *testing.T) {
	for _, mode := range []string{"mate", "foreign"} {
		t.Run(mode, func(t *testing.T) {
			w := newPaneWorld(t, mode)
			m := w.spawn(t, "w1")
			w.tmux(t, "kill-pane", "-t", m.PaneID)
			why := <-w.gone
			if mode == "foreign" && why != "w1: its pane was closed" || !strings.HasPrefix(why, "w1: its p") {
				t.Errorf("gone: %s", why)
			}
			w.nothingLeft(t, "w1")
		})
	}
}

// Another program does not look whether it is on the roster: when a person takes
// its agent from the team, the lead closes its pane.
func TestPanesOfARemovedTeammateClose(t *testing.T) {
	w := newPaneWorld(t, "foreign")
	w.spawn(t, "w1")
	outside := team.New(team.Options{
		Store: w.files.Teams(), Mail: w.files.Mail(), Tasks: w.files.Tasks(),
		Seals: w.files.Seals(), Records: w.files.Records(), Presence: w.files.Presence(),
	})
	if err := outside.Remove(t.Context(), "alpha", "w1", "enough"); err != nil {
		t.Fatal(err)
	}
	if why := <-w.gone; why != "w1: it was removed from the team" {
		t.Errorf("gone: %s", why)
	}
	w.nothingLeft(t, "w1")
	if panes := w.open(t); len(panes) != 0 {
		t.Errorf("open: %q", panes)
	}
}

// A program that fails leaves its pane open, so that somebody can read why; the
// next of its name closes it, and so does the end of the lead.
func TestPanesFailure(t *testing.T) {
	w := newPaneWorld(t, "foreign")
	m := w.spawn(t, "w1")
	w.tmux(t, "send-keys", "-t", m.PaneID, "exit 3", "Enter")
	if why := <-w.gone; why != "w1: its program has ended with exit code 3" {
		t.Errorf("gone: %s", why)
	}
	if panes := w.open(t); !slices.Equal(panes, []string{m.PaneID}) {
		t.Fatalf("open: %q", panes)
	}
	again := w.spawn(t, "w1")
	if panes := w.open(t); !slices.Equal(panes, []string{again.PaneID}) {
		t.Fatalf("open: %q, the new one is %s", panes, again.PaneID)
	}
	w.tmux(t, "send-keys", "-t", again.PaneID, "exit 4", "Enter")
	<-w.gone
	if err := w.panes.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if panes := w.open(t); len(panes) != 0 {
		t.Errorf("open after the lead's end: %q", panes)
	}
}

// When the lead's process ends, teammates go on; a new one takes them over and
// can stop them.
func TestPanesAdopt(t *testing.T) {
	for _, mode := range []string{"mate", "foreign"} {
		t.Run(mode, func(t *testing.T) {
			w := newPaneWorld(t, mode)
			w.spawn(t, "w1")
			w.spawn(t, "w2")
			first := w.panes
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Spawn(t.Context(), w.by, team.SpawnRequest{Name: "w3", Prompt: "p"}); !errors.Is(err, teammate.ErrPanesClosed) {
				t.Errorf("a start after the end: %v", err)
			}
			if err := w.Teams.Close(); err != nil {
				t.Fatal(err)
			}
			w.restart(t)
			if _, _, err := w.Reopen(t.Context(), w.by); err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]bool{"w1": true, "w2": true, "nobody": false} {
				if lives, err := w.panes.Adopt(t.Context(), at(name)); err != nil || lives != want {
					t.Errorf("%s lives: %v, %v", name, lives, err)
				}
			}
			w.tmux(t, "kill-pane", "-t", w.member(t, "w1").PaneID)
			if why := <-w.gone; !strings.HasPrefix(why, "w1: ") {
				t.Errorf("gone: %s", why)
			}
			if err := w.panes.Stop(t.Context(), at("w2"), errors.New("enough")); err != nil {
				t.Fatal(err)
			}
			w.nobodyRuns(t, "w2")
		})
	}
}

// A teammate that runs still, and is about to end because its lead was gone, is not
// taken over: it has to be started again.
func TestPanesDoNotAdoptWhoEndsWithoutLead(t *testing.T) {
	w := newPaneWorld(t, "mate")
	w.spawn(t, "w1")
	if err := w.panes.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	doc, err := w.files.Records().Get(t.Context(), "alpha", roster.RecordAgent, "w1")
	var record roster.AgentRecord
	if err == nil {
		err = json.Unmarshal(doc, &record)
	}
	record.Orphaned = true
	if err == nil {
		doc, err = json.Marshal(record)
	}
	if err == nil {
		err = w.files.Records().Put(t.Context(), "alpha", roster.RecordAgent, "w1", doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.restart(t)
	if lives, err := w.panes.Adopt(t.Context(), at("w1")); lives || err != nil {
		t.Errorf("it is taken over: %v, %v", lives, err)
	}
}

func (w *paneWorld) nobodyRuns(t *testing.T, name string) {
	t.Helper()
	if _, present, err := w.files.Presence().Find(t.Context(), at(name)); present || err != nil {
		t.Errorf("%s is present: %v, %v", name, present, err)
	}
	if panes := w.open(t); len(panes) != 0 {
		t.Errorf("open: %q", panes)
	}
	if w.recorded(t, name) {
		t.Errorf("the pane of %s is on record", name)
	}
}

// Of a lead that was killed only the record is left: that is enough to stop a
// teammate, and to find nothing to stop the second time.
func TestPanesStopFromRecord(t *testing.T) {
	w := newPaneWorld(t, "mate")
	w.spawn(t, "w1")
	theirs := w.tmux(t, "split-window", "-d", "-t", w.lead, "-P", "-F", "#{pane_id}", "cat")
	w.cfg.Known = pane.NewDetector(pane.Environment{Vars: w.vars}).Known
	w.restart(t)
	for range 2 {
		if err := w.panes.Stop(t.Context(), at("w1"), errors.New("enough")); err != nil {
			t.Fatal(err)
		}
	}
	if panes := w.open(t); !slices.Equal(panes, []string{theirs}) {
		t.Errorf("open: %q, the person's is %s", panes, theirs)
	}
}

// A teammate that comes back goes on with its conversation; it gets a note in the
// place of its prompt.
func TestPanesRevive(t *testing.T) {
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) {
		c.Resume = func(_ context.Context, r roster.AgentRecord) (string, error) { return "again-" + r.SessionID, nil }
	})
	m := w.spawn(t, "w1")
	record := []byte(`{"name":"w1","sessionId":"s-1","backend":"tmux","mode":"acceptEdits","signs":true}`)
	if err := w.files.Records().Put(t.Context(), "alpha", roster.RecordAgent, "w1", record); err != nil {
		t.Fatal(err)
	}
	if err := w.panes.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Teams.Close(); err != nil {
		t.Fatal(err)
	}
	w.restart(t)
	if err := w.panes.Stop(t.Context(), at("w1"), errors.New("a crash")); err != nil {
		t.Fatal(err)
	}
	absent, _, err := w.Reopen(t.Context(), w.by)
	if err != nil || len(absent) != 1 {
		t.Fatalf("absent %+v, %v", absent, err)
	}
	back, err := w.Revive(t.Context(), w.by, absent[0])
	if err != nil {
		t.Fatal(err)
	}
	seen := w.seen(t, "w1")
	args := strings.Join(seen.Args, " ")
	if !strings.Contains(args, "--permission-mode acceptEdits") || !strings.HasSuffix(args, "--resume again-s-1") {
		t.Errorf("flags %s", args)
	}
	last := seen.Unread[len(seen.Unread)-1]
	if last.From != mailbox.LeadName || !strings.HasPrefix(last.Text, "You were stopped, and are back.") || strings.Contains(last.Text, "system-reminder") {
		t.Errorf("last message %+v", last)
	}
	if panes := w.open(t); !slices.Equal(panes, []string{back.PaneID}) || back.PaneID == m.PaneID {
		t.Errorf("open %q, back in %s, before in %s", panes, back.PaneID, m.PaneID)
	}
}

// A process that does not care about its terminal is killed.
func TestPanesStopDeaf(t *testing.T) {
	w := newPaneWorld(t, "deaf", func(c *teammate.PanesConfig) { c.HangUp = time.Second })
	w.spawn(t, "w1")
	if err := w.panes.Stop(t.Context(), at("w1"), errors.New("enough")); err != nil {
		t.Fatal(err)
	}
	w.nobodyRuns(t, "w1")
}

// A teammate that has agreed to shut down ends by itself.
func TestPanesStopApproved(t *testing.T) {
	for _, mode := range []string{"mate", "foreign"} {
		t.Run(mode, func(t *testing.T) {
			w := newPaneWorld(t, mode, func(c *teammate.PanesConfig) { c.Leave = time.Minute; c.Check = time.Hour })
			m := w.spawn(t, "w1")
			stopped := make(chan error, 1)
			go func() { stopped <- w.panes.Stop(t.Context(), at("w1"), team.ErrShutdownApproved) }()
			w.tmux(t, "send-keys", "-t", m.PaneID, "exit 0", "Enter")
			if err := <-stopped; err != nil {
				t.Fatal(err)
			}
			w.nobodyRuns(t, "w1")
		})
	}
}

// One that agreed and does not end is ended.
func TestPanesStopApprovedButStays(t *testing.T) {
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) { c.Leave = 50 * time.Millisecond })
	w.spawn(t, "w1")
	if err := w.panes.Stop(t.Context(), at("w1"), team.ErrShutdownApproved); err != nil {
		t.Fatal(err)
	}
	w.nobodyRuns(t, "w1")
}

// An agent that nobody of this team opened a pane for is not ended.
func TestPanesStopStranger(t *testing.T) {
	w := newPaneWorld(t, "mate")
	leave, err := w.files.Presence().Enter(t.Context(), at("w9"))
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if err := w.panes.Stop(t.Context(), at("w9"), errors.New("enough")); err == nil || !strings.Contains(err.Error(), "end it there") {
		t.Errorf("error %v", err)
	}
}

// A teammate whose approval waits for the lead has not gone: the lead lets it go
// when it reads that.
func TestPanesApprovalIsNoLoss(t *testing.T) {
	looked := make(chan struct{}, 1)
	w := newPaneWorld(t, "mate", func(c *teammate.PanesConfig) { c.Mail = &watchedMail{Store: c.Mail, lead: looked} })
	m := w.spawn(t, "w1")
	approval := `{"type":"shutdown_approved","requestId":"shutdown-1@w1","from":"w1","timestamp":"2026-11-21T03:18:57.981Z"}`
	err := w.files.Mail().Post(t.Context(), at(mailbox.LeadName), mailbox.Message{From: "w1", Text: approval, Timestamp: "2026-11-21T03:18:57.981Z"})
	if err != nil {
		t.Fatal(err)
	}
	w.tmux(t, "send-keys", "-t", m.PaneID, "exit 0", "Enter")
	<-looked
	if err := w.panes.Close(t.Context()); err != nil { // the look is over
		t.Fatal(err)
	}
	select {
	case why := <-w.gone:
		t.Errorf("gone: %s", why)
	default:
	}
}

// watchedMail tells when somebody looked into the lead's inbox.
type watchedMail struct {
	mailbox.Store
	lead chan struct{}
}

func (m *watchedMail) Unread(ctx context.Context, at mailbox.Address) ([]mailbox.Message, error) {
	unread, err := m.Store.Unread(ctx, at)
	if at.Agent == mailbox.LeadName {
		select {
		case m.lead <- struct{}{}:
		default:
		}
	}
	return unread, err
}

// A report that the team could not take is made again.
func TestPanesReportAgain(t *testing.T) {
	calls := 0
	w := newPaneWorld(t, "foreign", func(c *teammate.PanesConfig) {
		gone := c.Gone
		c.Gone = func(ctx context.Context, who mailbox.Address, why string) error {
			if calls++; calls == 1 {
				return errDisk
			}
			return gone(ctx, who, why)
		}
	})
	m := w.spawn(t, "w1")
	w.tmux(t, "kill-pane", "-t", m.PaneID)
	if why := <-w.gone; why != "w1: its pane was closed" {
		t.Errorf("gone: %s", why)
	}
}

// toldRecords tells what is kept of a teammate's work.
type toldRecords struct {
	roster.Records
	activity chan bool
}

func (r *toldRecords) Put(ctx context.Context, name, kind, record string, doc []byte) error {
	err := r.Records.Put(ctx, name, kind, record, doc)
	if kind == roster.RecordActivity {
		r.activity <- strings.Contains(string(doc), `"active":true`)
	}
	return err
}

// A teammate that could not say that it is idle, since the lead's inbox was locked, is
// not waited for when it was seen at work and then not: also by a lead that was killed
// in between.
func TestPanesSeeWhoWorks(t *testing.T) {
	told := make(chan bool, 10)
	w := newPaneWorld(t, "foreign", func(c *teammate.PanesConfig) { c.Records = &toldRecords{c.Records, told} })
	w.spawn(t, "w1")
	says := func(active bool) {
		t.Helper()
		_, err := w.files.Teams().Update(t.Context(), "alpha", func(c *roster.Roster) error {
			c.Find("w1").IsActive = &active
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-told; got != active {
			t.Errorf("it was seen to be active: %v", got)
		}
	}
	waits := func(what string, want bool) {
		t.Helper()
		if got, err := w.Waiting(t.Context(), w.by); err != nil || (got != "") != want {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	waits("it has its prompt", true)
	says(true)
	waits("it is at work", true)
	if err := errors.Join(w.panes.Close(t.Context()), w.Teams.Close()); err != nil {
		t.Fatal(err)
	}
	w.restart(t)
	if _, _, err := w.Reopen(t.Context(), w.by); err != nil {
		t.Fatal(err)
	}
	if lives, err := w.panes.Adopt(t.Context(), at("w1")); !lives || err != nil {
		t.Fatal(lives, err)
	}
	says(false)
	waits("it is idle", false)
}

package demo

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/cells"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// watched plays the whole script once and returns its events.
func watched(t *testing.T) (events []event.Event, dir string) {
	t.Helper()
	stream := event.NewStream(nil)
	all := stream.Subscribe(t.Context(), 0)
	s, checks := play(t, ScriptText(), 4, func(s *sim) { s.events = stream })
	if !checks.Passed {
		t.Fatal("the run failed")
	}
	stream.End()
	return slices.Collect(all), s.dir
}

func fixed(columns, rows int) func() (int, int) {
	return func() (int, int) { return columns, rows }
}

// TestLiveIsPlainInTheEnd: what stays on a terminal of any width is what was
// told, without a trace of the status that was drawn below it.
func TestLiveIsPlainInTheEnd(t *testing.T) {
	events, dir := watched(t)
	for _, width := range []int{120, 80, 59} {
		term := newTerminal(t, width)
		NewView(term, Terminal{Live: true, Color: true, Size: fixed(width, 40)}, dir).Consume(slices.Values(events))
		var plain bytes.Buffer
		NewView(&plain, Terminal{Size: fixed(width, 0)}, dir).Consume(slices.Values(events))
		if got := strings.TrimRight(term.String(), "\n"); got != strings.TrimRight(plain.String(), "\n") {
			t.Errorf("width %d: the terminal shows\n%s\nthe lines are\n%s", width, got, plain.String())
		}
		if term.colored == 0 {
			t.Errorf("width %d: no colours", width)
		}
	}
}

// TestStatus: below the lines stand all tasks with their states and the roster
// with what each does.
func TestStatus(t *testing.T) {
	events, dir := watched(t)
	for _, width := range []int{120, 50} {
		term := newTerminal(t, width)
		v := NewView(term, Terminal{Live: true, Size: fixed(width, 40)}, dir)
		blocked := false
		term.watch = func() {
			if term.frames%5 != 0 {
				return // a sample: reading the screen costs more than drawing it
			}
			_, status, found := strings.Cut(term.String(), "───")
			if !found || len(v.record.Tasks) < 4 || len(v.record.agents) < 4 || v.record.agents[3].gone {
				return
			}
			for _, part := range []string{"#1 Read amounts", "#2 Show amounts", "#3 Document", "#4 Add up", "lead", "ada", "ben", "cleo"} {
				if !strings.Contains(status, part) && !slices.ContainsFunc(v.record.agents, func(m *member) bool { return m.gone }) {
					t.Fatalf("width %d: %q is not in the status:\n%s", width, part, status)
				}
			}
			blocked = blocked || strings.Contains(status, "☐ #4 Add up the report") && strings.Contains(status, "waits for #1 #2")
		}
		v.Consume(slices.Values(events))
		if !blocked {
			t.Errorf("width %d: the status never showed the report blocked by two tasks", width)
		}
	}
}

// TestSmallTerminals: where there is no room, there is no status, or a part.
func TestSmallTerminals(t *testing.T) {
	events, dir := watched(t)
	for rows, want := range map[int]string{6: "", 14: "…", 40: "cleo"} {
		var last string
		term := newTerminal(t, 80)
		v := NewView(term, Terminal{Live: true, Size: fixed(80, rows)}, dir)
		term.watch = func() {
			if term.frames%5 == 0 && len(v.record.agents) == 4 && !v.record.agents[1].gone {
				_, last, _ = strings.Cut(term.String(), "───")
			}
		}
		v.Consume(slices.Values(events))
		if !strings.Contains(last, want) || want == "" && last != "" || strings.Count(last, "\n") > max(rows-rowsAbove, 0)+1 {
			t.Errorf("%d rows: the status is %q", rows, last)
		}
	}
}

// TestUnchangedStatus: what looks the same is not drawn again.
func TestUnchangedStatus(t *testing.T) {
	var out bytes.Buffer
	s := screen{out: &out}
	status := []line{{{bold, "idle"}}}
	s.redraw("", status, 80, true)
	first := out.Len()
	s.redraw("", status, 80, true)
	if first == 0 || out.Len() != first {
		t.Errorf("%d bytes, then %d more", first, out.Len()-first)
	}
	s.redraw("news\n", status, 80, true)
	if got := out.String()[first:]; got != "\x1b[1A\r\x1b[Jnews\n\x1b[1midle\x1b[0m\n" {
		t.Errorf("with a line above it is drawn as %q", got)
	}
}

// TestNarrowed: a terminal that was made narrower has broken the lines of the
// status, and all of their rows are removed.
func TestNarrowed(t *testing.T) {
	s := screen{drawn: []int{79, 10, 0, 41}}
	for columns, want := range map[int]int{80: 4, 40: 6, 79: 4, 20: 9} {
		if got := s.height(columns); got != want {
			t.Errorf("%d columns: %d rows, want %d", columns, got, want)
		}
	}
}

func TestPlainLines(t *testing.T) {
	events, dir := watched(t)
	var out bytes.Buffer
	NewView(&out, Terminal{}, dir).Consume(slices.Values(events))
	if strings.ContainsRune(out.String(), 0x1b) {
		t.Error("escape sequences in plain output")
	}
	for _, want := range []string{
		"● Bash(sh check.sh)\n", "⎿ Exit code 1: FAIL  money   5 cents are 0.05", "⎿ all 24 checks pass\n",
		"s team tally: team-lead\n", "☐ #4 Add up the report  to prove: sh tests/report.sh\n",
		"s ● Wait(#1, #2, #3, #4)\n", "⎿ 4 of 4 done:\n",
		"◐ #3 Document --only (ada)  ✗ not proved, exit code 1 at ", "☑ #3 Document --only (ada)  ✓ proved ",
		"s [cleo] + teammate started\n", "s [ben] ● Read(lib/parse.sh)\n", "● Edit(lib/money.sh)  +14 −0\n",
		"s [ben]   ⎿ Exit code 1: FAIL 84.08 is 8408 cents: want '8408', got '' …\n",
		"✉ team-lead asks ada to shut down (All checks pass. Thank you!)\n", "✉ ada shuts down\n", "s [ada] − ended\n", "s team tally is gone\n",
		"s Before I hand out work I want to see what fails",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown in\n%s", want, out.String())
		}
	}
}

// TestReadmeShowsTheDemo: each line that the README shows of a demo is a line of
// it, as far as the README shows it.
func TestReadmeShowsTheDemo(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "$ go run ./cmd/cadre demo\n")
	shown, _, found := strings.Cut(shown, "    Who did what")
	if !found {
		t.Fatal("the README does not show the demo")
	}
	events, dir := watched(t)
	var out bytes.Buffer
	NewView(&out, Terminal{Size: fixed(160, 0)}, dir).Consume(slices.Values(events))
	// When it happens, and which teammate takes which task, differs.
	varies := regexp.MustCompile(`(?m)^ *\d+\.\ds |\d\d:\d\d:\d\d|\b(ada|ben|cleo)\b`)
	printed := varies.ReplaceAllString(out.String(), "")
	lines := 0
	for line := range strings.Lines(shown) {
		line = varies.ReplaceAllString(strings.TrimPrefix(strings.TrimSpace(line), "    "), "")
		if line = strings.TrimRight(strings.TrimSuffix(line, "…"), " "); line == "" {
			continue
		}
		if lines++; !strings.Contains(printed, line) {
			t.Errorf("the demo does not print %q:\n%s", line, printed)
		}
	}
	if lines < 20 {
		t.Errorf("the README shows %d lines", lines)
	}
}

func said(text string) event.Body {
	return event.Stored{Entry: transcript.Entry{Kind: transcript.KindAssistant, Message: transcript.Message{Content: []transcript.Block{transcript.TextBlock(text)}}}}
}

// checked is a task whose check ran at a second of its own.
func checked(t task.Task, second int64, output string, passed bool) task.Task {
	t.Metadata = task.Evidence{Command: "make dig", Passed: passed, Output: output, By: "ada", At: time.Unix(second, 0)}.Metadata()
	t.Metadata.Set(task.CheckKey, "make dig")
	return t
}

// TestHostileText: nothing that a model, a tool or a file says reaches the
// terminal as more than text; the terminal of the test refuses all else.
func TestHostileText(t *testing.T) {
	evil := "a\x1b[2J\x1b]0;title\x07b\r\x08\u202ec\x9b31m d"
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	in := json.RawMessage(`{"command":` + string(quoted) + `,"file_path":` + string(quoted) + `,"name":` + string(quoted) + `}`)
	agent := event.Agent{ID: "x", Name: evil, Color: evil}
	var events []event.Event
	for _, body := range []event.Body{
		event.AgentStarted{Type: evil, Teammate: true}, event.TurnStarted{Input: evil},
		event.TextDelta{Text: evil}, said(evil),
		event.ToolStarted{Call: "1", Tool: "Bash", Input: in}, event.ToolEnded{Call: "1", Tool: "Bash", IsError: true, Text: evil},
		event.ToolStarted{Call: "2", Tool: evil, Input: in}, event.ToolEnded{Call: "2", Tool: evil},
		event.ToolStarted{Call: "3", Tool: "Read", Input: in}, event.ToolEnded{Call: "3", Tool: "Read"},
		event.ToolDenied{Tool: evil, Input: in, Remedy: evil}, event.Retrying{Reason: evil},
		event.TeamChanged{Team: evil, Members: []event.Member{{Name: evil}}},
		event.TaskChanged{Task: task.Task{ID: evil, Subject: evil, Owner: evil, Status: task.InProgress, BlockedBy: []string{evil}}},
		event.TaskChanged{Task: checked(task.Task{ID: "7", Subject: evil, Owner: evil, Status: task.InProgress}, 1, evil, false)},
		event.ToolStarted{Call: "4", Tool: "Wait", Input: json.RawMessage(`{"agents":[` + string(quoted) + `]}`)},
		event.ToolEnded{Call: "4", Tool: "Wait", Text: evil},
		event.MailSent{To: mailbox.Address{Agent: evil}, Message: mailbox.Message{From: evil, Text: evil}},
		event.Noticed{Level: "error", Text: evil}, event.TurnEnded{Outcome: event.Outcome{Reason: event.Failed, Err: evil}},
	} {
		events = append(events, event.Event{Agent: agent, Body: body})
	}
	term := newTerminal(t, 80)
	v := NewView(term, Terminal{Live: true, Size: fixed(80, 30)}, "/p")
	v.Consume(slices.Values(events))
	report := NewReport(Run{
		Project: Project{Dir: evil}, Model: evil, Record: v.Record(), Kept: true, State: evil,
		After: Checks{Output: evil, Changed: []string{evil}, Results: []CheckResult{{evil, false, evil}}},
		Diff:  Diff{Files: []FileDiff{{evil, 1, 1}}, Text: "+" + evil},
	})
	if err := report.Print(term, Terminal{}); err != nil {
		t.Fatal(err)
	}
	if err := Introduce(term, Terminal{}, Project{Dir: evil}, evil, Checks{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(term.String(), 0x202e) {
		t.Error("the direction of writing was changed")
	}
}

func TestLookOf(t *testing.T) {
	env := func(set map[string]string) func(string) string { return func(name string) string { return set[name] } }
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if terminal := TerminalOf(w, env(nil)); terminal.Live || terminal.Color {
		t.Errorf("a pipe looks like %+v", terminal)
	}
	master, tty, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	defer master.Close()
	defer tty.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Cols: 77, Rows: 33}); err != nil {
		t.Fatal(err)
	}
	terminal := TerminalOf(tty, env(nil))
	if columns, rows := terminal.size(); !terminal.Live || !terminal.Color || columns != 77 || rows != 33 {
		t.Errorf("a terminal looks like %+v, %d by %d", terminal, columns, rows)
	}
	if terminal := TerminalOf(tty, env(map[string]string{"NO_COLOR": "1"})); !terminal.Live || terminal.Color {
		t.Errorf("with NO_COLOR it looks like %+v", terminal)
	}
	if terminal := TerminalOf(tty, env(map[string]string{"TERM": "dumb"})); terminal.Live || terminal.Color {
		t.Errorf("a dumb one looks like %+v", terminal)
	}
}

func TestWidths(t *testing.T) {
	for text, want := range map[string]int{"abc": 3, "日本": 4, "é": 1, "e\u0301": 1, "🙂": 2, "": 0} {
		if got := cells.Width(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
	l := line{{bold, "日本語"}, {plain, "text"}}
	for columns := range 12 {
		if got := l.fit(columns).width(); columns > 0 && got > columns {
			t.Errorf("cut to %d columns it takes %d", columns, got)
		}
	}
}

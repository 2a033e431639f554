package demo

import (
	"bytes"
	"encoding/json"
	"os"
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
	stream := event.NewStream()
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
	for _, width := range []int{120, 80, 59, 40, 20} {
		term := newTerminal(t, width)
		NewView(term, Look{Live: true, Color: true, Size: fixed(width, 40)}, dir).Consume(slices.Values(events))
		var plain bytes.Buffer
		NewView(&plain, Look{Size: fixed(width, 0)}, dir).Consume(slices.Values(events))
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
		v := NewView(term, Look{Live: true, Size: fixed(width, 40)}, dir)
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
			blocked = blocked || strings.Contains(status, "◌ #4 Add up the report") && strings.Contains(status, "waits for #1 #2")
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
		v := NewView(term, Look{Live: true, Size: fixed(80, rows)}, dir)
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
	s.redraw(nil, status, 80, true)
	first := out.Len()
	s.redraw(nil, status, 80, true)
	if first == 0 || out.Len() != first {
		t.Errorf("%d bytes, then %d more", first, out.Len()-first)
	}
	s.redraw([]string{"news"}, status, 80, true)
	if got := out.String()[first:]; got != "\x1b[1A\r\x1b[Jnews\n\x1b[1midle\x1b[0m\n" {
		t.Errorf("with a line above it is drawn as %q", got)
	}
}

// TestNarrowed: a terminal that was made narrower has broken the lines of the
// status, and all of their rows are taken away.
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
	NewView(&out, Look{}, dir).Consume(slices.Values(events))
	if strings.ContainsRune(out.String(), 0x1b) {
		t.Error("escape sequences in plain output")
	}
	for _, want := range []string{
		"lead runs     sh check.sh  ✗ 16 of 24 checks fail",
		"lead forms    team tally",
		"lead plans    #4 Add up the report  to be proved by: sh tests/report.sh\n",
		"lead waits    for #1, #2, #3, #4\n",
		"lead wakes    4 of 4 done  after ",
		"closes   #3 Document --only  ✗ refused by its check: 1 of 6 fail: the README tells of --only\n",
		"closes   #3 Document --only  ✓ proved: 6 checks pass\n",
		"lead orders   #4 Add up the report waits for #1 and #2",
		"cleo joins    as general-purpose",
		"reads    lib/parse.sh, tests/parse.sh\n",
		"edits    lib/money.sh  +14 −0",
		"runs     sh tests/parse.sh  ✗ 3 of 7 fail: 84.08 is 8408 cents: want '8408', got ''\n",
		"runs     sh tests/parse.sh  ✓ 7 checks pass\n",
		"closes   #4 Add up the report  ✓ proved: 7 checks pass\n",
		"·    is free  #4 Add up the report\n",
		"→ all    parse_amount is exact now",
		"lead → ada    Please shut down: All checks pass. Thank you!",
		"ada  → lead   Yes, I shut down.",
		"ada  leaves\n",
		"lead runs     sh check.sh  ✓ all 24 checks pass",
		"lead dissolves team tally",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "parse_amount is exact now"); n != 1 {
		t.Errorf("the broadcast is told %d times", n)
	}
}

// told are the lines that a few events make, in 72 columns.
func told(bodies ...any) string {
	var out bytes.Buffer
	v := NewView(&out, Look{Size: fixed(72, 0)}, "/p")
	agent := event.Agent{}
	var events []event.Event
	for _, b := range bodies {
		switch b := b.(type) {
		case event.Agent:
			agent = b
		case event.Body:
			events = append(events, event.Event{At: time.Unix(100, 0), Agent: agent, Body: b})
		}
	}
	v.Consume(slices.Values(events))
	return out.String()
}

var ada = event.Agent{ID: "t1", Name: "ada", Color: "blue"}

func started(call, tool, input string) event.Body {
	return event.ToolStarted{Call: call, Tool: tool, Input: json.RawMessage(input)}
}

// ended is a call of Wait that has returned.
func ended(call, text string) event.Body {
	return event.ToolEnded{Call: call, Tool: "Wait", Text: text}
}

// checked is a task whose check ran at a second of its own.
func checked(t task.Task, second int64, output string, passed bool) task.Task {
	t.Metadata = task.Evidence{Command: "make dig", Passed: passed, Output: output, By: "ada", At: time.Unix(second, 0)}.Metadata()
	t.Metadata.Set(task.CheckKey, "make dig")
	return t
}

func said(text string) event.Body {
	return event.Stored{Entry: transcript.Entry{Kind: transcript.KindAssistant, Message: transcript.Message{Content: []transcript.Block{transcript.TextBlock(text)}}}}
}

func TestEntries(t *testing.T) {
	open := task.Task{ID: "1", Subject: "Dig", Status: task.Pending}
	taken := task.Task{ID: "1", Subject: "Dig", Status: task.InProgress, Owner: "ada"}
	closed := task.Task{ID: "1", Subject: "Dig", Status: task.Completed, Owner: "ada"}
	for _, tc := range []struct {
		name   string
		bodies []any
		want   string
	}{
		{"the same words again", []any{said("I wait."), event.TurnEnded{}, said("I wait.")}, "  0.0s lead says     I wait.\n"},
		{"prose is broken at words", []any{said(strings.Repeat("word ", 20))},
			"  0.0s lead says     word word word word word word word word word word\n" +
				"                     word word word word word word word word word word\n"},
		{"long prose is cut", []any{said(strings.Repeat("longer ", 100))},
			"  0.0s lead says     longer longer longer longer longer longer longer\n" +
				strings.Repeat("                     longer longer longer longer longer longer longer\n", 3) +
				"                     longer longer longer longer longer longer longer …\n"},
		{"reading is told as one", []any{ada, started("1", "Read", `{"file_path":"/p/a"}`), event.ToolEnded{Call: "1", Tool: "Read"},
			started("2", "Read", `{"file_path":"/q/b"}`), event.ToolEnded{Call: "2", Tool: "Read"}, event.TurnEnded{}},
			"  0.0s ada  reads    a, /q/b\n"},
		{"a failed call", []any{started("1", "Edit", `{"file_path":"/p/a"}`), event.ToolEnded{Call: "1", Tool: "Edit", IsError: true, Text: "not found\nmore"}},
			"  0.0s lead edits    a  ✗ not found\n"},
		{"a failed quiet call", []any{started("1", "SendMessage", `{}`), event.ToolEnded{Call: "1", Tool: "SendMessage", IsError: true, Text: "no such agent"}},
			"  0.0s lead writes   a message  ✗ no such agent\n"},
		{"a task that can't be closed", []any{started("1", "TaskUpdate", `{"taskId":"#1","status":"completed"}`), event.ToolEnded{Call: "1", Tool: "TaskUpdate", IsError: true, Text: "another agent's"}},
			"  0.0s lead closes   #1  ✗ another agent's\n"},
		{"a call that nobody saw begin", []any{event.ToolEnded{Call: "9", Tool: "Weather"}}, "  0.0s lead calls    Weather\n"},
		{"denied", []any{event.ToolDenied{Call: "1", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`), Remedy: "--allowedTools 'Bash(ls)'"},
			event.ToolEnded{Call: "1", Tool: "Bash", IsError: true, Text: "Permission denied"}},
			"  0.0s lead denied   Bash(ls), which --allowedTools 'Bash(ls)' would a…\n"},
		{"retrying", []any{event.Retrying{Attempt: 2, Max: 6, Wait: 12 * time.Second, Reason: "busy"}},
			"  0.0s lead waits    attempt 2 in 12 s: busy\n"},
		{"a failed turn", []any{ada, event.TurnEnded{Outcome: event.Outcome{Reason: event.Failed, Err: "no rule"}}},
			"  0.0s ada  fails    no rule\n"},
		{"taken and put back", []any{event.TaskChanged{Task: open}, ada, event.TaskChanged{Task: taken}, event.Agent{}, event.TaskChanged{Task: open}},
			"  0.0s lead plans    #1 Dig\n  0.0s ada  takes    #1 Dig\n  0.0s ada  puts back #1 Dig\n"},
		{"a wait that mail interrupts is told once", []any{
			started("1", "Wait", `{"agents":["ada","ben"],"mode":"any"}`), ended("1", "Something for you came in; it follows. The wait has ended early. 0 of 2 done:\n- [ ] ada"),
			started("2", "Wait", `{"agents":["ada","ben"],"mode":"any"}`), ended("2", "Something for you came in; it follows. The wait has ended early. 0 of 2 done:"),
			started("3", "Wait", `{"agents":["ada","ben"],"mode":"any"}`), ended("3", "1 of 2 done:"),
		}, "  0.0s lead waits    for one of ada, ben\n  0.0s lead wakes    0 of 2 done; reads its mail and waits on\n" +
			"  0.0s lead wakes    1 of 2 done  after 0s, without polling\n"},
		{"a wait in vain", []any{started("1", "Wait", `{}`), ended("1", "The time is up (10m0s). 0 of 2 done:")},
			"  0.0s lead waits    for everybody\n  0.0s lead wakes    The time is up (10m0s). 0 of 2 done\n"},
		{"a wake-up comes after its news", []any{
			event.TaskChanged{Task: taken}, started("1", "Wait", `{"tasks":["1"]}`), ended("1", "1 of 1 done:"), ada, event.TaskChanged{Task: closed},
		}, "  0.0s lead plans    #1 Dig\n  0.0s lead takes    #1 Dig\n  0.0s lead waits    for #1\n  0.0s ada  closes   #1 Dig\n  0.0s lead wakes    1 of 1 done  after 0s, without polling\n"},
		{"a wake-up is not held for ever", []any{
			event.TaskChanged{Task: taken}, started("1", "Wait", `{"tasks":["1"]}`), ended("1", "1 of 1 done:"), said("Well."),
		}, "  0.0s lead plans    #1 Dig\n  0.0s lead takes    #1 Dig\n  0.0s lead waits    for #1\n  0.0s lead wakes    1 of 1 done  after 0s, without polling\n  0.0s lead says     Well.\n"},
		{"refused, then proved", []any{
			ada, started("1", "TaskUpdate", `{"taskId":"1","status":"completed"}`), event.TaskChanged{Task: checked(taken, 1, "deep enough?\nno", false)},
			event.ToolEnded{Call: "1", Tool: "TaskUpdate", IsError: true, Text: "Task #1 stays in_progress"},
			event.TaskChanged{Task: checked(taken, 2, "", true)}, event.TaskChanged{Task: checked(closed, 2, "", true)},
		}, "  0.0s ada  plans    #1 Dig  to be proved by: make dig\n  0.0s ada  closes   #1 Dig  ✗ refused by its check: no\n  0.0s ada  takes    #1 Dig\n" +
			"  0.0s ada  closes   #1 Dig  ✓ proved by make dig\n"},
		{"idle is no news", []any{ada, event.MailSent{To: mailbox.Address{Agent: "team-lead"}, Message: mailbox.Message{From: "ada", Text: `{"type":"idle_notification","from":"ada","timestamp":"x","idleReason":"available"}`}}}, ""},
		{"info is no news", []any{event.Noticed{Level: "info", Text: "x"}}, ""},
		{"a warning is", []any{event.Noticed{Level: "warning", Text: "x"}}, "  0.0s lead warning  x\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := told(tc.bodies...); got != tc.want {
				t.Errorf("told:\n%swant:\n%s", got, tc.want)
			}
		})
	}
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
	v := NewView(term, Look{Live: true, Size: fixed(80, 30)}, "/p")
	v.Consume(slices.Values(events))
	report := NewReport(Run{
		Project: Project{Dir: evil}, Model: evil, Record: v.Record(), Kept: true, State: evil,
		After: Checks{Output: evil, Changed: []string{evil}, Results: []CheckResult{{evil, false, evil}}},
		Diff:  Diff{Files: []FileDiff{{evil, 1, 1}}, Text: "+" + evil},
	})
	if err := report.Print(term, Look{}); err != nil {
		t.Fatal(err)
	}
	if err := Introduce(term, Look{}, Project{Dir: evil}, evil, Checks{}); err != nil {
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
	if look := LookOf(w, env(nil)); look.Live || look.Color {
		t.Errorf("a pipe looks like %+v", look)
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
	look := LookOf(tty, env(nil))
	if columns, rows := look.size(); !look.Live || !look.Color || columns != 77 || rows != 33 {
		t.Errorf("a terminal looks like %+v, %d by %d", look, columns, rows)
	}
	if look := LookOf(tty, env(map[string]string{"NO_COLOR": "1"})); !look.Live || look.Color {
		t.Errorf("with NO_COLOR it looks like %+v", look)
	}
	if look := LookOf(tty, env(map[string]string{"TERM": "dumb"})); look.Live || look.Color {
		t.Errorf("a dumb one looks like %+v", look)
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

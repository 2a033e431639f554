package tui

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// chunks gives one string for each Read.
type chunks struct{ left []string }

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[0])
	if n < len(c.left[0]) {
		return 0, errors.New("the buffer is too small for the test")
	}
	c.left = c.left[1:]
	return n, nil
}

func TestLines(t *testing.T) {
	ann := event.Agent{ID: "t1", Name: "ann", Color: "red"}
	sub := event.Agent{ID: "s1", Call: "toolu_1"}
	for _, tc := range []struct {
		name  string
		agent event.Agent
		body  event.Body
		want  string
	}{
		{"a call of the lead", event.Agent{}, event.ToolStarted{Tool: "Bash", Input: []byte(`{"command":"go test ./..."}`)}, "● Bash(go test ./...)"},
		{"a call of a teammate", ann, event.ToolStarted{Tool: "Edit", Input: []byte(`{"file_path":"a.go","old_string":"x"}`)}, "[ann] ● Edit(a.go)  +0 −1"},
		{"a call with many lines", event.Agent{}, event.ToolStarted{Tool: "Bash", Input: []byte(`{"command":"a\nb"}`)}, "● Bash(a …)"},
		{"a call without anything telling", event.Agent{}, event.ToolStarted{Tool: "TaskList", Input: []byte(`{}`)}, "● TaskList"},
		{"a call about a task", ann, event.ToolStarted{Tool: "TaskUpdate", Input: []byte(`{"taskId":"4","status":"in_progress"}`)}, "[ann] ● TaskUpdate(#4 in progress)"},
		{"a path of the folder", event.Agent{}, event.ToolStarted{Tool: "Read", Input: []byte(`{"file_path":"/w/lib/a.go"}`)}, "● Read(lib/a.go)"},
		{"a path of another folder", event.Agent{}, event.ToolStarted{Tool: "Read", Input: []byte(`{"file_path":"/wide/a.go"}`)}, "● Read(/wide/a.go)"},
		{"a failed command", ann, event.ToolEnded{Tool: "Bash", IsError: true, Text: "Exit code 2\nno rule to make all\nstop"}, "[ann]   ⎿ Exit code 2: no rule to make all …"},
		{"a failed result", ann, event.ToolEnded{Tool: "Bash", IsError: true, Text: "<tool_use_error>no</tool_use_error>"}, "[ann]   ⎿ no"},
		{"a good result of a teammate", ann, event.ToolEnded{Tool: "Bash", Text: "ok"}, ""},
		{"a denial", event.Agent{}, event.ToolDenied{Tool: "Bash", Input: []byte(`{"command":"rm x"}`), Remedy: `--allowedTools "Bash(rm x)"`}, "✗ denied: Bash(rm x)\n    to allow it: --allowedTools \"Bash(rm x)\""},
		{"a retry", event.Agent{}, event.Retrying{Attempt: 2, Max: 6, Wait: 12 * time.Second, Left: 9 * time.Minute, Status: 429, Reason: "slow down"}, "↻ attempt 2 in 12 s, giving up in 9 min: 429 slow down"},
		{"a retry without a status", ann, event.Retrying{Attempt: 3, Wait: 200 * time.Millisecond, Reason: "connection reset"}, "[ann] ↻ attempt 3 in 200 ms: connection reset"},
		{"a silent server", event.Agent{}, event.Waiting{Host: "api.example", Attempt: 1, Silent: 10 * time.Second, Limit: time.Minute}, "↻ waiting for api.example: nothing for 10 s; after 60 s the request is sent again"},
		{"a silent server again", ann, event.Waiting{Host: "api.example", Attempt: 2, Silent: 80 * time.Second, Limit: 5 * time.Minute}, "[ann] ↻ waiting for api.example: nothing for 80 s, attempt 2; after 5 min the request is sent again"},
		{"mail with a summary", ann, mailFrom("ann", "bob", "a long text", "short"), "✉ ann → bob: short"},
		{"an idle notification", ann, mailFrom("ann", "team-lead", `{"type":"idle_notification","from":"ann","timestamp":"t","idleReason":"available"}`, ""), "✉ ann is idle"},
		{"a failed one", ann, mailFrom("ann", "team-lead", `{"type":"idle_notification","from":"ann","timestamp":"t","idleReason":"failed","failureReason":"no model"}`, ""), "✉ ann is idle (failed) (no model)"},
		{"a shutdown request", event.Agent{}, mailFrom("team-lead", "ann", `{"type":"shutdown_request","requestId":"r","from":"team-lead","reason":"all done"}`, ""), "✉ team-lead asks ann to shut down (all done)"},
		{"a task", ann, event.TaskChanged{List: "x", Task: task.Task{ID: "2", Subject: "mend it", Status: task.InProgress, Owner: "ann"}}, "◐ #2 mend it (ann)"},
		{"a roster", event.Agent{}, event.TeamChanged{Team: "x", Members: []event.Member{{Name: "team-lead"}, {Name: "ann"}}}, "team x: team-lead, ann"},
		{"the end of a team", event.Agent{}, event.TeamChanged{Team: "x"}, "team x is gone"},
		{"a sub-agent", sub, event.AgentStarted{Type: "Explore", Prompt: "look around"}, "[Explore] + sub-agent started look around"},
		{"a job nobody waited for", event.Agent{}, event.JobEnded{Kind: "shell", Title: "make", Status: "completed", Unwaited: true}, "■ shell completed: make"},
		{"a job somebody waited for", event.Agent{}, event.JobEnded{Kind: "shell", Title: "make", Status: "completed"}, ""},
		{"a gap", event.Agent{}, event.Gap{From: 1, To: 9, Err: "no disk"}, "! some of what happened before is not shown: it is no longer in memory, and could not be read back: no disk"},
		{"a warning", event.Agent{}, event.Noticed{Level: "warning", Text: "a\x1b]0;t\x07b"}, "! ab"},
		{"a failed turn of a teammate", ann, event.TurnEnded{Outcome: event.Outcome{Reason: event.Failed, Err: "overloaded"}}, "[ann] ✗ error: overloaded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			NewLines(&out, Style{Dir: "/w"}).Event(event.Event{Agent: tc.agent, Body: tc.body})
			if diff := cmp.Diff(tc.want, strings.TrimSuffix(out.String(), "\n")); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLinesAreToldOnce: what was told and has not changed is not told again.
func TestLinesAreToldOnce(t *testing.T) {
	var out strings.Builder
	l := NewLines(&out, Style{})
	item := task.Task{ID: "1", Subject: "mend it", Status: task.Pending}
	blocked := item
	blocked.BlockedBy = []string{"2"}
	taken := item
	taken.Status, taken.Owner = task.InProgress, "ann"
	leads := []event.Member{{Name: "team-lead"}}
	for _, body := range []event.Body{
		event.TeamChanged{Team: "x", Members: leads},
		event.TaskChanged{List: "x", Task: item},
		event.TaskChanged{List: "x", Task: blocked},
		event.TaskChanged{List: "y", Task: item},
		event.TaskChanged{List: "x", Task: taken},
		event.TeamChanged{Team: "x", Members: append(leads, event.Member{Name: "ann"})},
		event.ToolDenied{Call: "c1", Tool: "Bash", Input: []byte(`{"command":"ls"}`)},
		event.ToolEnded{Call: "c1", Tool: "Bash", IsError: true, Text: "denied"},
		event.TeamChanged{Team: "x"},
	} {
		l.Event(event.Event{Body: body})
	}
	want := "team x: team-lead\n☐ #1 mend it\n☐ #1 mend it  after #2\n☐ #1 mend it\n◐ #1 mend it (ann)\n✗ denied: Bash(ls)\nteam x is gone\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// A task waits only for those that are still open.
func TestLinesNameOpenBlockersOnly(t *testing.T) {
	var out strings.Builder
	l := NewLines(&out, Style{})
	last := task.Task{ID: "3", Subject: "test", Status: task.Pending, BlockedBy: []string{"1", "2"}}
	for _, item := range []task.Task{
		last, {ID: "1", Subject: "a", Status: task.Completed}, last, {ID: "2", Subject: "b", Status: task.Completed}, last,
	} {
		l.Event(event.Event{Body: event.TaskChanged{List: "x", Task: item}})
	}
	want := "☐ #3 test  after #1, #2\n☑ #1 a\n☐ #3 test  after #2\n☑ #2 b\n☐ #3 test\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func mailFrom(from, to, text, summary string) event.MailSent {
	return event.MailSent{To: mailbox.Address{Team: "x", Agent: to}, Message: mailbox.Message{From: from, Text: text, Summary: summary}}
}

func TestLinesFitAndHaveColor(t *testing.T) {
	var out strings.Builder
	l := NewLines(&out, Style{Color: true, Width: func() int { return 30 }})
	l.Event(event.Event{Agent: event.Agent{ID: "t1", Name: "ann", Color: "orange"}, Body: event.ToolStarted{
		Tool: "Bash", Input: []byte(`{"command":"a command that is far too long for this terminal"}`),
	}})
	want := "\x1b[38;5;208m[ann]\x1b[0m \x1b[32m●\x1b[0m Bash(a command that i…\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
}

func TestClean(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07after", "after"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"a\rb\x08c\x7f", "abc"},
		{"\u009b31mred", "red"},
		{"\x1b(Bx", "x"},
		{"\x1bcx", "x"},
		{"\x1b]never ends\nnext line", "\nnext line"},
		{"right\u202eto left\u200f", "rightto left"},
		{"ünïcode 漢字 👩‍🚀", "ünïcode 漢字 👩‍🚀"},
	} {
		if got := Clean(tc.in); got != tc.want {
			t.Errorf("Clean(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

// FuzzCleaner: nothing that controls a terminal passes, and where text is split
// makes no difference.
func FuzzCleaner(f *testing.F) {
	for _, seed := range []string{"\x1b[31mred", "\x1b]0;t\x07x", "a\u009b1;2Hb", "\x1bPq\x1b\\z", "x\x1b", "\xff\x1b[\n"} {
		f.Add(seed, 2)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		whole := Clean(text)
		for _, r := range whole {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("Clean(%q) lets %U through", text, r)
			}
		}
		runes := []rune(text)
		if at < 0 || at > len(runes) {
			return
		}
		var c Cleaner
		parts := c.Clean(string(runes[:at])) + c.Clean(string(runes[at:]))
		if parts != whole {
			t.Errorf("%q split at %d gives %q, whole %q", text, at, parts, whole)
		}
	})
}

// A name of several lines stays on one: what stands on a line of its own is ours.
func TestNamesStayOnTheirLine(t *testing.T) {
	const name = "ann\n? May Bash run?"
	m := mailbox.Message{From: name, Text: "hello"}
	for _, line := range []string{
		TaskLine(task.Task{ID: name, Subject: "x", Owner: name, Status: task.Pending}),
		Mail(mailbox.Address{Team: "alpha", Agent: name}, m), Call(name, nil),
	} {
		if strings.Contains(line, "\n") {
			t.Errorf("%q", line)
		}
	}
}

func TestTaskLineSaysHowFarItIsProved(t *testing.T) {
	item := task.Task{ID: "1", Subject: "x", Status: task.InProgress}
	note := func(want string) {
		t.Helper()
		if _, got, _ := strings.Cut(TaskLine(item), " x"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	note("")
	item.Metadata.Set(task.CheckKey, "go test ./x")
	note("to prove: go test ./x")
	keep := func(e task.Evidence) {
		e.Command = "go test ./x"
		changed := e.Metadata()
		item.Metadata = item.Metadata.Clone()
		item.Metadata.Set(task.CheckedKey, changed.Raw(task.CheckedKey))
	}
	keep(task.Evidence{ExitCode: 3, Output: "a\nb \x1b[31mFAIL: two\n"})
	note("✗ not proved, exit code 3 at ")
	note("go test ./x: b FAIL: two")
	keep(task.Evidence{Passed: true})
	note("✓ proved ")
	item.Metadata, item.Status = jsonx.Object{}, task.Completed
	item.Metadata.Set(task.CheckKey, "go test ./x")
	note("✗ not proved, never checked: go test ./x")
}

// TestStory: what agents say is shown, with times; calls whose effect is shown are
// not, unless they fail; a Wait that goes on is shown once, and each of its ends.
func TestStory(t *testing.T) {
	ann := event.Agent{ID: "t1", Name: "ann"}
	said := transcript.Entry{Kind: transcript.KindAssistant, Message: transcript.Message{Content: []transcript.Block{transcript.TextBlock("I look\nat it.")}}}
	proved := task.Task{ID: "1", Subject: "mend it", Status: task.InProgress, Owner: "ann", Metadata: task.Evidence{Passed: true, At: time.Unix(1, 0)}.Metadata()}
	wait := []byte(`{"tasks":["1","#2"],"agents":["ann"]}`)
	var out strings.Builder
	l := NewLines(&out, Style{})
	l.Story, l.Results = true, true
	for i, ev := range []event.Event{
		{Body: event.TurnStarted{}},
		{Agent: ann, Body: event.Stored{Entry: said}},
		{Body: event.ToolStarted{Call: "1", Tool: "TaskCreate", Input: []byte(`{"subject":"x"}`)}},
		{Body: event.ToolEnded{Call: "1", Tool: "TaskCreate", Text: "created"}},
		{Body: event.ToolStarted{Call: "2", Tool: "SendMessage", Input: []byte(`{"to":"bob"}`)}},
		{Body: event.ToolEnded{Call: "2", Tool: "SendMessage", Text: "no such agent", IsError: true}},
		{Body: event.ToolStarted{Call: "3", Tool: "Wait", Input: wait}},
		{Body: event.ToolEnded{Call: "3", Tool: "Wait", Text: "1 of 3 done:"}},
		{Body: event.ToolStarted{Call: "4", Tool: "Wait", Input: wait}},
		{Body: event.ToolEnded{Call: "4", Tool: "Wait", Text: "3 of 3 done:"}},
		{Body: event.ToolStarted{Call: "5", Tool: "Read", Input: []byte(`{"file_path":"a"}`)}},
		{Body: event.ToolEnded{Call: "5", Tool: "Read", Text: "1 text"}},
		{Body: event.TaskChanged{List: "x", Task: proved}},
	} {
		ev.At = time.Unix(100, int64(i)*int64(100*time.Millisecond))
		l.Event(ev)
	}
	want := `  0.1s [ann] I look at it.
  0.5s ● SendMessage(bob)
  0.5s   ⎿ no such agent
  0.6s ● Wait(#1, #2, ann)
  0.7s   ⎿ 1 of 3 done:
  0.9s   ⎿ 3 of 3 done:
  1.0s ● Read(a)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestResultLine: of a failed command the first line about a failure is shown, of
// another the last, of all else the first.
func TestResultLine(t *testing.T) {
	for _, tc := range []struct{ tool, text, want string }{
		{"Bash", "Exit code 1\nok one\nFAIL two\nok three", "Exit code 1: FAIL two …"},
		{"TeamCreate", "{\n  \"team_name\": \"crew\"\n}", `{ "team_name": "crew" }`},
		{"Bash", "Exit code 1\ncompiling\nmain.go:3: syntax error: x\n", "Exit code 1: main.go:3: syntax error: x"},
		{"Bash", "Exit code 2\nno rule\nstop", "Exit code 2: no rule …"},
		{"Bash", "ok one\nall 24 checks pass\n\n", "all 24 checks pass"},
		{"Grep", "a.go\nb.go", "a.go …"},
		{"Bash", "", "(no output)"},
	} {
		if got := resultLine(event.ToolEnded{Tool: tc.tool, Text: tc.text}); got != tc.want {
			t.Errorf("%s %q: %q, want %q", tc.tool, tc.text, got, tc.want)
		}
	}
}

func TestChangedLines(t *testing.T) {
	for input, want := range map[string]string{
		`{"file_path":"a","old_string":"a\nb\nc","new_string":"a\nB\nB\nc"}`: "Edit(a)  +2 −1",
		`{"file_path":"a","old_string":"","new_string":"x\n"}`:               "Edit(a)  +1 −0",
		`{"file_path":"a","old_string":"x","new_string":""}`:                 "Edit(a)  +0 −1",
	} {
		if got := Call("Edit", []byte(input)); got != want {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
	if got := Call("Write", []byte(`{"file_path":"a","content":"x\ny\n"}`)); got != "Write(a)  +2" {
		t.Error(got)
	}
}

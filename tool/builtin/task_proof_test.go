//go:build unix

package builtin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/tool"
)

// workshop is an office whose people work in a real folder.
type workshop struct {
	*office
	dir  string // resolved
	lead tool.Caller
	mate tool.Caller
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &workshop{office: officeWith(t, "w1"), dir: dir, lead: chief, mate: worker("w1")}
	s.lead.Cwd, s.mate.Cwd = dir, dir
	t.Cleanup(s.jobs.Close)
	return s
}

// begin makes a task with a check, and the teammate takes it.
func (s *workshop) begin(t *testing.T, check string) {
	t.Helper()
	s.call(t, s.lead, "TaskCreate", `{"subject":"Make it","description":"d","metadata":{"check":`+quoted(t, check)+`}}`)
	if r := s.call(t, s.mate, "TaskUpdate", `{"taskId":"1","status":"in_progress"}`); r.IsError || s.access.Command != "" {
		t.Fatalf("begin: %+v with %+v", r, s.access)
	}
}

func (s *workshop) task(t *testing.T) task.Task {
	t.Helper()
	found, err := s.teams.Tasks.Get(t.Context(), s.lead, "1")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const complete = `{"taskId":"1","status":"completed"}`

func TestCheckIsJudgedAsACommand(t *testing.T) {
	s := newWorkshop(t)
	s.begin(t, "test -f made")
	s.call(t, s.mate, "TaskUpdate", complete)
	want := tool.Access{
		Command: "test -f made", Dir: s.dir, As: "Bash",
		Detail: []byte(`{"command":"test -f made","description":"Check of task #1: Make it","timeout":600000}`),
	}
	if diff := cmp.Diff(want, s.access); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, input := range []string{`{"taskId":"1","subject":"x"}`, `{"taskId":"1","status":"pending"}`, `{"taskId":"9","status":"completed"}`} {
		if s.call(t, s.mate, "TaskUpdate", input); s.access.Command != "" {
			t.Errorf("%s: %+v", input, s.access)
		}
	}
}

func TestTaskIsCompletedWhenItsCheckPasses(t *testing.T) {
	s := newWorkshop(t)
	s.begin(t, "echo looking in $PWD; test -f made || exit 3")
	r := s.call(t, s.mate, "TaskUpdate", complete)
	text := resultText(r)
	for _, want := range []string{"Task #1 stays in_progress", "exit code 3", "Check: echo looking in", "looking in " + s.dir, "team-lead"} {
		if !r.IsError || !strings.Contains(text, want) {
			t.Errorf("failed check does not say %q: %v %s", want, r.IsError, text)
		}
	}
	now := s.task(t)
	evidence, ok := now.Checked()
	if now.Status != task.InProgress || !ok || evidence.Passed || evidence.ExitCode != 3 || evidence.By != "w1" || !strings.Contains(evidence.Output, s.dir) {
		t.Errorf("after the failure: %s, %+v", now.Status, evidence)
	}
	if text := resultText(s.call(t, s.lead, "TaskGet", `{"taskId":"1"}`)); !strings.Contains(text, "\nCheck: echo looking") ||
		!strings.Contains(text, "\nCheck failed: ") || !strings.Contains(text, "by w1, exit code 3\nlooking in ") {
		t.Errorf("TaskGet:\n%s", text)
	}
	if text := resultText(s.call(t, s.lead, "TaskList", `{}`)); text != "#1 [in_progress] Make it (w1) [check]" {
		t.Errorf("TaskList: %s", text)
	}

	if err := os.WriteFile(filepath.Join(s.dir, "made"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r = s.call(t, s.mate, "TaskUpdate", complete)
	if r.IsError || !strings.HasPrefix(r.Text, "Updated task #1 status\n\nIts check passed: echo looking") || !strings.Contains(r.Text, "Call TaskList now") {
		t.Errorf("passed: %+v", r)
	}
	twin := `{"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{"from":"in_progress","to":"completed"}}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	now = s.task(t)
	if evidence, ok = now.Checked(); now.Status != task.Completed || !ok || !evidence.Passed || evidence.At.IsZero() {
		t.Errorf("after the success: %s, %+v", now.Status, evidence)
	}
	if text := resultText(s.call(t, s.lead, "TaskGet", `{"taskId":"1"}`)); !strings.Contains(text, "\nCheck passed: ") {
		t.Errorf("TaskGet:\n%s", text)
	}
	if text := resultText(s.call(t, s.lead, "TaskList", `{}`)); text != "#1 [completed] Make it (w1)" {
		t.Errorf("TaskList: %s", text)
	}
	// Nothing is to be proved of a task that is completed.
	if r = s.call(t, s.mate, "TaskUpdate", complete); s.access.Command != "" || r.IsError {
		t.Errorf("again: %+v, %+v", s.access, r)
	}
	if n := len(s.jobs.Active("")); n != 0 || s.jobs.Waiting(s.mate.Key()) != 0 {
		t.Errorf("%d jobs and %d notices are left", n, s.jobs.Waiting(s.mate.Key()))
	}
}

// changeCheck is what another session does to the task.
func (s *workshop) changeCheck(t *testing.T, check string) {
	t.Helper()
	var change task.Change
	change.Metadata.Set("check", nil)
	if check != "" {
		change.Metadata.Set("check", check)
	}
	if _, err := s.teams.Tasks.Update(t.Context(), s.lead, "1", change); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTheCheckThatWasJudgedRuns(t *testing.T) {
	for _, tt := range []struct{ before, after string }{{"touch good", "touch evil"}, {"touch good", ""}, {"", "touch evil"}} {
		s := newWorkshop(t)
		s.call(t, s.lead, "TaskCreate", `{"subject":"a","description":"d"}`)
		s.changeCheck(t, tt.before)
		s.decided = func() { s.changeCheck(t, tt.after) }
		r := s.call(t, s.mate, "TaskUpdate", complete)
		if !r.IsError || !strings.Contains(resultText(r), "call TaskUpdate again") || s.task(t).Status != task.Pending {
			t.Errorf("%+v: %s", tt, resultText(r))
		}
		if files, _ := os.ReadDir(s.dir); len(files) > 0 {
			t.Errorf("%+v: something was run: %v", tt, files)
		}
		s.decided = nil
		if r := s.call(t, s.mate, "TaskUpdate", complete); r.IsError || s.access.Command != tt.after {
			t.Errorf("%+v, again: %+v with %+v", tt, r, s.access)
		}
	}
}

func TestCheckThatChangesWhileItRunsProvesNothing(t *testing.T) {
	s := newWorkshop(t)
	begun, goOn := s.pipe(t, "begun"), s.pipe(t, "go")
	s.begin(t, "echo > begun; read line < go")
	done := make(chan tool.Result)
	go func() { done <- s.call(t, s.mate, "TaskUpdate", complete) }()
	hears(t, begun)
	s.changeCheck(t, "false")
	if err := os.WriteFile(goOn, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := <-done; !r.IsError || !strings.Contains(resultText(r), "changed it in the meantime") || s.task(t).Status != task.InProgress {
		t.Errorf("%+v", r)
	}
}

// pipe makes a file in the folder that a check and the test meet at: who opens it
// waits for the other.
func (s *workshop) pipe(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hears waits until the check has written to the pipe.
func hears(t *testing.T, pipe string) {
	t.Helper()
	if _, err := os.ReadFile(pipe); err != nil {
		t.Fatal(err)
	}
}

func TestCheckThatDoesNotEndProvesNothing(t *testing.T) {
	for name, end := range map[string]func(s *workshop, cancel context.CancelCauseFunc, running string){
		"was interrupted": func(_ *workshop, cancel context.CancelCauseFunc, _ string) {
			cancel(errors.New("the person said stop"))
		},
		"was stopped": func(s *workshop, _ context.CancelCauseFunc, id string) {
			j, _ := s.jobs.Job(id)
			j.Stop(job.ErrStopped)
		},
		"was moved to the background (ID": func(s *workshop, _ context.CancelCauseFunc, id string) { j, _ := s.jobs.Job(id); j.Detach() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorkshop(t)
			begun := s.pipe(t, "begun")
			s.begin(t, "echo > begun; sleep 600")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan tool.Result)
			go func() { done <- s.callIn(ctx, t, s.mate, "TaskUpdate", complete) }()
			hears(t, begun)
			end(s, cancel, s.jobs.Active("")[0].ID)
			r := <-done
			if now := s.task(t); !r.IsError || !strings.Contains(resultText(r), "its check "+name) || now.Status != task.InProgress || now.Metadata.Has("checked") {
				t.Errorf("%+v; %+v", r, now)
			}
		})
	}
}

func TestLongOutputOfAFailedCheckShowsItsEnd(t *testing.T) {
	s := newWorkshop(t)
	s.begin(t, "seq 100000; echo the cause; exit 1")
	text := resultText(s.call(t, s.mate, "TaskUpdate", complete))
	if len(text) > 12_000 || !strings.Contains(text, "\nthe cause\n") || !strings.Contains(text, "The whole output, 588905 bytes, is in ") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
	if evidence, _ := s.task(t).Checked(); len(evidence.Output) > task.MaxEvidence || !strings.HasSuffix(evidence.Output, "the cause") {
		t.Errorf("evidence of %d bytes: %s", len(evidence.Output), evidence.Output)
	}
}

func TestCheckRunsWhereItsOwnerWorks(t *testing.T) {
	s := newWorkshop(t)
	s.mate.Cwd = filepath.Join(s.dir, "gone")
	s.begin(t, "true")
	if r := s.call(t, s.mate, "TaskUpdate", complete); !r.IsError || !strings.Contains(resultText(r), "does not exist") || s.task(t).Status != task.InProgress {
		t.Errorf("%+v", r)
	}
}

func TestWhoMayChangeACheck(t *testing.T) {
	s := newWorkshop(t)
	s.begin(t, "false")
	for _, by := range []tool.Caller{s.mate, {SessionID: s.mate.SessionID, AgentID: "a1", Team: "alpha", Depth: 1}} {
		for _, input := range []string{
			`{"taskId":"1","metadata":{"check":"true"}}`, `{"taskId":"1","metadata":{"check":null}}`, `{"taskId":"1","status":"deleted"}`,
		} {
			r := s.call(t, by, "TaskUpdate", input)
			if now := s.task(t); !r.IsError || !strings.Contains(resultText(r), "SendMessage") || now.Check() != "false" || now.Status != task.InProgress {
				t.Errorf("%s by %s: %s", input, by.AgentID, resultText(r))
			}
		}
	}
	// Not even the lead changes it on the way.
	for _, check := range []string{`"touch evil"`, `null`} {
		r := s.call(t, s.lead, "TaskUpdate", `{"taskId":"1","status":"completed","metadata":{"check":`+check+`}}`)
		if files, _ := os.ReadDir(s.dir); !r.IsError || !strings.Contains(resultText(r), "Change it first") || s.task(t).Check() != "false" || len(files) > 0 {
			t.Errorf("with its own change: %+v, files %v", r, files)
		}
	}
	if r := s.call(t, s.lead, "TaskUpdate", `{"taskId":"1","metadata":{"check":"echo fine"}}`); r.IsError || s.task(t).Check() != "echo fine" {
		t.Errorf("the lead: %+v", r)
	}
	// Without a team everybody is their own lead.
	alone := tool.Caller{SessionID: "session-9"}
	s.call(t, alone, "TaskCreate", `{"subject":"b","description":"d","metadata":{"check":"false"}}`)
	if r := s.call(t, alone, "TaskUpdate", `{"taskId":"1","metadata":{"check":null}}`); r.IsError {
		t.Errorf("alone: %+v", r)
	}
}

func TestModelsWriteNoEvidence(t *testing.T) {
	s := newWorkshop(t)
	s.begin(t, "false")
	for _, tt := range []struct{ name, input, says string }{
		{"TaskUpdate", `{"taskId":"1","metadata":{"checked":{"passed":true}}}`, "written by the runtime"},
		{"TaskUpdate", `{"taskId":"1","metadata":{"checked":null}}`, "written by the runtime"},
		{"TaskCreate", `{"subject":"a","description":"d","metadata":{"checked":{"passed":true}}}`, "written by the runtime"},
		{"TaskCreate", `{"subject":"a","description":"d","metadata":{"check":["go","test"]}}`, "as a string"},
		{"TaskCreate", `{"subject":"a","description":"d","metadata":{"check":" "}}`, "as a string"},
		{"TaskUpdate", `{"taskId":"1","metadata":{"check":"a\u0000b"}}`, "as a string"},
		{"TaskUpdate", `{"taskId":"1","metadata":{"check":"` + strings.Repeat("x", 5000) + `"}}`, "5000 bytes"},
	} {
		if r := s.call(t, s.lead, tt.name, tt.input); !r.IsError || !strings.Contains(resultText(r), tt.says) {
			t.Errorf("%s(%.80s): %+v", tt.name, tt.input, r)
		}
	}
	if all, _ := s.teams.Tasks.List(t.Context(), s.lead); len(all) != 1 || all[0].Check() != "false" || all[0].Metadata.Has("checked") {
		t.Errorf("tasks: %+v", all)
	}
}

// Another program runs no checks. What it sets completed is shown as not proved,
// and completing it again runs its check.
func TestCompletedByAProgramWithoutChecks(t *testing.T) {
	s := newWorkshop(t)
	s.begin(t, "test -f made")
	if _, err := s.list.Update(t.Context(), "alpha", "1", task.Change{Status: new(task.Completed)}); err != nil {
		t.Fatal(err)
	}
	tells := func(tool, input, want string) {
		t.Helper()
		if r := s.call(t, s.lead, tool, input); !strings.Contains(resultText(r), want) {
			t.Errorf("%s tells %q, not %q", tool, resultText(r), want)
		}
	}
	tells("TaskList", `{}`, "#1 [completed] Make it (w1) [not proved]")
	tells("TaskGet", `{"taskId":"1"}`, "Not proved: it was set completed without its check passing.")
	tells("Wait", `{"tasks":["1"]}`, "completed, owned by w1; not proved: its check has not passed")
	tells("TaskUpdate", complete, "Task #1 stays completed: its check failed, exit code 1.")
	tells("TaskUpdate", complete, "set it in_progress again")
	if err := os.WriteFile(filepath.Join(s.dir, "made"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tells("TaskUpdate", complete, "Its check passed: test -f made")
	tells("TaskList", `{}`, "#1 [completed] Make it (w1)")
	if r := s.call(t, s.lead, "TaskList", `{}`); strings.Contains(r.Text, "proved") {
		t.Errorf("proved, and still %q", r.Text)
	}
	if s.call(t, s.lead, "TaskUpdate", complete); s.access.Command != "" {
		t.Error("what is proved is proved again")
	}
}

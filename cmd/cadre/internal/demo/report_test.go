package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/event"
)

// reported plays a script and sums it up as the command does.
func reported(t *testing.T, script []byte) Run {
	t.Helper()
	stream := event.NewStream(nil)
	events := stream.Subscribe(t.Context(), 0)
	var run Run
	s, after := play(t, script, 4, func(s *sim) {
		s.events = stream
		before, err := Check(t.Context(), s.dir)
		if err != nil {
			t.Fatal(err)
		}
		run.Before = before
	})
	stream.End()
	v := NewView(nil, Terminal{}, s.dir)
	v.Consume(events)
	commit, err := git(t.Context(), s.dir, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	run.Project = Project{s.dir, strings.TrimSpace(commit)}
	if run.Diff, err = run.Project.Diff(t.Context()); err != nil {
		t.Fatal(err)
	}
	run.Model, run.Record, run.After, run.Kept = "scripted", v.Record(), after, true
	return run
}

func TestReport(t *testing.T) {
	run := reported(t, ScriptText())
	var out bytes.Buffer
	if err := NewReport(run).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Passed() || r.Reason != "" || !r.Checks.Passed || r.Before.Passed || len(r.Checks.Results) != 24 {
		t.Errorf("result %q, %q", r.Result, r.Reason)
	}
	if len(r.Agents) != 4 || r.Agents[0].Role != "lead" || len(r.Tasks) != 4 || r.Team != "tally" {
		t.Errorf("agents %+v, tasks %+v", r.Agents, r.Tasks)
	}
	for _, a := range r.Agents {
		if a.Rounds == 0 || a.ToolCalls == 0 || a.Usage.InputTokens == 0 || a.Usage.OutputTokens == 0 {
			t.Errorf("%s did nothing: %+v", a.Name, a)
		}
		if a.Role == "teammate" && a.Color == "" {
			t.Errorf("%s has no colour", a.Name)
		}
	}
	refused := 0
	for _, done := range r.Tasks {
		if !done.Proof.Proved || !strings.HasPrefix(done.Proof.Check, "sh tests/") {
			t.Errorf("#%s: %+v", done.ID, done.Proof)
		}
		refused += done.Proof.Refused
	}
	if refused != 1 || r.Tasks[2].Proof.Refused != 1 {
		t.Errorf("%d refused, want one of #3", refused)
	}
	owned := 0
	for _, a := range r.Agents {
		owned += len(a.Tasks)
	}
	if owned != 4 || !slices.Equal(r.Tasks[3].BlockedBy, []string{"1", "2"}) {
		t.Errorf("%d tasks have owners; the report waited for %v", owned, r.Tasks[3].BlockedBy)
	}
	if r.Messages.Count < 4 || r.Messages.Count != len(r.Messages.List) || r.Messages.Protocol < 6 {
		t.Errorf("messages %+v", r.Messages)
	}
	if len(r.Diff.Files) != 5 || r.Folder != run.Project.Dir || !strings.HasPrefix(r.Answer, "tally works again") {
		t.Errorf("%d files changed in %s; the lead: %s", len(r.Diff.Files), r.Folder, r.Answer)
	}
}

func TestPrintedReport(t *testing.T) {
	run := reported(t, ScriptText())
	for name, terminal := range map[string]Terminal{"wide": {Color: true}, "narrow": {Size: fixed(40, 0)}} {
		var out bytes.Buffer
		if err := NewReport(run).Print(&out, terminal); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"lib/parse.sh", "sum_of() {", "ok    report  June: rent", "all 24 checks pass", "#4", "ada", "cleo",
			"tally works again", "The checks pass.", "16 of 24 checks failed before", run.Project.Dir,
			"4 of 4 tasks proved by their checks, 1 closed too early and refused.",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing", name, want)
			}
		}
		if colored := strings.ContainsRune(out.String(), 0x1b); colored != terminal.Color {
			t.Errorf("%s: coloured %v", name, colored)
		}
		if terminal.Color && !strings.Contains(out.String(), "\x1b[32m+sum_of() {\x1b[0m") {
			t.Error("the diff is not coloured")
		}
	}
}

func TestFailedReport(t *testing.T) {
	wrong := wrongEdits["octal"]
	run := reported(t, bytes.Replace(ScriptText(), []byte(wrong[0]), []byte(wrong[1]), 1))
	r := NewReport(run)
	var out bytes.Buffer
	if err := r.Print(&out, Terminal{}); err != nil {
		t.Fatal(err)
	}
	if r.Passed() || !strings.Contains(r.Reason, "the first: parse 84.08 is 8408 cents") {
		t.Errorf("result %q, %q", r.Result, r.Reason)
	}
	for _, want := range []string{"FAIL  parse   84.08 is 8408 cents", "The demo failed:", "I cannot finish #"} {
		if want == "I cannot finish #" {
			if !slices.ContainsFunc(r.Messages.List, func(m Mail) bool { return strings.HasPrefix(m.Text, want) }) {
				t.Errorf("nobody wrote %q", want)
			}
		} else if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// TestReasons: checks that pass are not enough when something else went wrong.
func TestReasons(t *testing.T) {
	good := Checks{Passed: true, Results: []CheckResult{{"a", true, "b"}}}
	for name, tc := range map[string]struct {
		run  Run
		want string
	}{
		"all well":        {Run{After: good}, ""},
		"a run that ends": {Run{After: good, Err: errors.New("no model")}, "no model"},
		"touched checks":  {Run{After: Checks{Results: good.Results, Changed: []string{"tests/a.sh"}}}, "tests/a.sh"},
		"no checks":       {Run{}, "did not run to their end"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.run.Record = NewRecord()
			r := NewReport(tc.run)
			if r.Passed() != (tc.want == "") || !strings.Contains(r.Reason, tc.want) {
				t.Errorf("result %q, %q", r.Result, r.Reason)
			}
		})
	}
}

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/layout"
)

// machine is a home, a state root and a project in a folder of the test.
type machine struct {
	t    *testing.T
	home string
	Options
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	m := &machine{t, home, Options{Root: layout.Root(filepath.Join(home, ".cadre")), Home: home, Project: filepath.Join(dir, "repo")}}
	for _, folder := range []string{home, m.Project} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// write makes a file below home ("~/…") or the project.
func (m *machine) write(name, text string) string {
	m.t.Helper()
	path := filepath.Join(m.Project, name)
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		path = filepath.Join(m.home, rest)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func (m *machine) load(wantWarnings ...string) Effective {
	m.t.Helper()
	e, warnings := Load(m.Options)
	m.expect(warnings, wantWarnings)
	return e
}

// expect wants one warning for each text, in this order, that contains it.
func (m *machine) expect(got []Warning, want []string) {
	m.t.Helper()
	for i, w := range got {
		if i >= len(want) || !strings.Contains(w.String(), want[i]) {
			m.t.Errorf("warning %d: %s", i, w)
		}
	}
	if len(got) != len(want) {
		m.t.Errorf("%d warnings, want %d: %q", len(got), len(want), want)
	}
}

func texts(rules []Rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Text+" < "+string(r.From.Scope))
	}
	return out
}

func TestNoFilesAreTheDefaults(t *testing.T) {
	e := newMachine(t).load()
	want := Settings{TeammateMode: "auto", PlanApproval: "auto", OrphanGrace: DefaultOrphanGrace, PrintWaitCeiling: 30 * time.Minute,
		ModelRetry: RetryByDefault, ModelFirstByte: time.Minute, ModelSilence: 5 * time.Minute, RepeatReminder: 5}
	if diff := cmp.Diff(want, e.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if from := e.From("teammateMode").String(); from != "default" {
		t.Errorf("the source of a default is %q", from)
	}
}

func TestPrecedence(t *testing.T) {
	m := newMachine(t)
	m.TrustProject = true
	m.write("~/.claude/settings.json", `{"model": "claude-user", "teammateMode": "tmux", "syncWrites": true, "askDeadlineMs": 1, "modelRetryMs": 0, "modelFirstByteMs": 2, "modelSilenceMs": 3, "repeatReminder": 0,
		"env": {"A": "claude-user", "B": "claude-user"}, "permissions": {"allow": ["R1"], "additionalDirectories": ["~/x"]}}`)
	m.write("~/.cadre/settings.json", `{"model": "user", "env": {"B": "user", "N": 1, "T": true}, "permissions": {"allow": ["R2"], "deny": ["D2"]}}`)
	m.write(".claude/settings.json", `{"model": "claude-project", "permissions": {"allow": ["R3"], "additionalDirectories": ["../y"]}}`)
	m.write(".cadre/settings.json", `{"model": "project", "permissions": {"ask": ["A4"]}}`)
	m.write(".claude/settings.local.json", `{"permissions": {"allow": ["R5"]}}`)
	m.write(".cadre/settings.local.json", `{"model": "local", "env": {"A": "local"}}`)
	m.Flag = ` {"permissions": {"allow": ["R7"], "defaultMode": "plan"}, "printWaitCeilingMs": 0}`
	e := m.load()

	if diff := cmp.Diff([]string{"R1 < user", "R2 < user", "R3 < project", "R5 < local", "R7 < flag"}, texts(e.Permissions.Allow)); diff != "" {
		t.Errorf("allow (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"A4 < project", "D2 < user"}, append(texts(e.Permissions.Ask), texts(e.Permissions.Deny)...)); diff != "" {
		t.Errorf("ask and deny (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "local", "B": "user", "N": "1", "T": "true"}, e.Env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	var dirs []string
	for _, d := range e.Permissions.Directories {
		dirs = append(dirs, d.Path)
	}
	if diff := cmp.Diff([]string{filepath.Join(m.home, "x"), filepath.Join(filepath.Dir(m.Project), "y")}, dirs); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
	if e.Model != "local" || e.TeammateMode != "tmux" || !e.SyncWrites || e.Permissions.DefaultMode != "plan" ||
		e.PrintWaitCeiling != 0 || e.AskDeadline != time.Millisecond ||
		e.ModelRetry != 0 || e.ModelFirstByte != 2*time.Millisecond || e.ModelSilence != 3*time.Millisecond || e.RepeatReminder != 0 {
		t.Errorf("values: %+v", e.Settings)
	}
	for key, want := range map[string]Scope{
		"model": Local, "teammateMode": User, "env.A": Local, "env.B": User, "permissions.defaultMode": Flag, "printWaitCeilingMs": Flag,
	} {
		if got := e.From(key).Scope; got != want {
			t.Errorf("%s is from %q, want %q", key, got, want)
		}
	}
	if base := e.Permissions.Allow[2].From.Base; base != m.Project {
		t.Errorf("base of a project rule is %q", base)
	}
	if len(e.Layers) != 7 {
		t.Errorf("%d layers", len(e.Layers))
	}
}

func TestUnknownKeysSurvive(t *testing.T) {
	m := newMachine(t)
	m.write("~/.cadre/settings.json", `{"hooks": {"Stop": []}, "model": "m", "later": [1, 2]}`)
	e := m.load()
	if got := string(e.Layers[0].Raw.Raw("later")); got != "[1, 2]" {
		t.Errorf("unknown key: %q", got)
	}
}

func TestComments(t *testing.T) {
	m := newMachine(t)
	m.write("~/.cadre/settings.json", "\ufeff// mine\n{\n  /* the model */ \"model\": \"m\",\n  \"permissions\": {\"deny\": [\"Bash(rm:*)\",],},\n}\n")
	if e := m.load(); e.Model != "m" || len(e.Permissions.Deny) != 1 {
		t.Errorf("%+v", e.Settings)
	}
}

func TestBrokenFilesAreSkippedWhole(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no comma", "{\n  \"model\": \"m\"\n  \"x\": 1\n}", "settings.json:3: not valid JSON: column 3: "},
		{"cut off", "{\n  \"model\": \"m\",\n", "settings.json:3: not valid JSON"},
		{"empty", " \n", "settings.json:1: the file is empty"},
		{"a list", "[]", "settings.json:1: want a JSON object, found array"},
		{"wrong type", "{\n  \"syncWrites\": true,\n  \"permissions\": {\n    // here\n    \"allow\": \"Read\"\n  }\n}", "settings.json:5: permissions.allow must be a list, found string"},
		{"wrong number", "{\"syncWrites\": true,\n\"askDeadlineMs\": \"1\"}", "settings.json:2: askDeadlineMs must be a whole number, found string"},
		{"wrong env", "{\"syncWrites\": true,\n\"env\": {\"A\": []}}", "settings.json:2: the value of an environment variable is a string"},
		{"deep", strings.Repeat("[", 100000), "brackets open at once"},
		{"binary", "\x00\x01", "settings.json:1: not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			m.write("~/.claude/settings.json", `{"model": "kept"}`)
			m.write("~/.cadre/settings.json", tt.text)
			e := m.load(tt.want)
			if e.Model != "kept" || e.SyncWrites {
				t.Errorf("%+v", e.Settings)
			}
		})
	}
}

func TestOddValuesAreIgnoredOneByOne(t *testing.T) {
	m := newMachine(t)
	m.write("~/.cadre/settings.json", "{\n\"teammateMode\": \"screen\",\n\"askDeadlineMs\": -1, \"repeatReminder\": -1,\n\"printWaitCeilingMs\": 99999999999999,\n\"env\": {\"A=B\": \"x\", \"C\": \"y\"}, \"model\": \"m\"}")
	e := m.load(":2: teammateMode", ":4: printWaitCeilingMs", ":3: askDeadlineMs", ":3: repeatReminder", ":5: env \"A=B\"")
	if e.Model != "m" || e.TeammateMode != "auto" || e.AskDeadline != 0 || e.RepeatReminder != 5 || e.PrintWaitCeiling != DefaultPrintWaitCeiling || e.Env["C"] != "y" {
		t.Errorf("%+v", e.Settings)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	m := newMachine(t)
	if err := os.MkdirAll(filepath.Join(m.home, ".cadre", "settings.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.write(".claude/settings.json", `{"model": "`+strings.Repeat("x", maxFile)+`"}`)
	m.Flag = "missing.json"
	e := m.load("not a regular file", "too large", "missing.json")
	if e.Model != "" {
		t.Errorf("model %.20q", e.Model)
	}
}

func TestSettingsThroughASymbolicLink(t *testing.T) {
	m := newMachine(t)
	real := m.write("~/dotfiles/cadre.json", `{"model": "linked"}`)
	m.write("~/.cadre/x", "")
	if err := os.Symlink(real, filepath.Join(m.home, ".cadre", "settings.json")); err != nil {
		t.Skip(err)
	}
	if e := m.load(); e.Model != "linked" {
		t.Errorf("model %q", e.Model)
	}
}

func TestScopes(t *testing.T) {
	m := newMachine(t)
	m.write("~/.cadre/settings.json", `{"model": "user"}`)
	m.write(".cadre/settings.json", `{"model": "project"}`)
	m.write(".cadre/settings.local.json", `{"model": "local"}`)
	for list, want := range map[string]string{"user": "user", "user,project": "project", "local,user": "local", "": ""} {
		var err error
		if m.Scopes, err = ParseScopes(list); err != nil {
			t.Fatal(err)
		}
		if e := m.load(); e.Model != want {
			t.Errorf("%q: model %q, want %q", list, e.Model, want)
		}
	}
	m.Flag = `{"model": "flag"}`
	if e := m.load(); e.Model != "flag" {
		t.Errorf("--settings was limited by --setting-sources: model %q", e.Model)
	}
	if _, err := ParseScopes("user,everything"); err == nil {
		t.Error("an unknown scope was accepted")
	}
}

func TestFlagNamesAFile(t *testing.T) {
	m := newMachine(t)
	m.write("ci/settings.json", `{"model": "file"}`)
	m.Flag = "ci/settings.json"
	if e := m.load(); e.Model != "file" || e.From("model").String() != "--settings" {
		t.Errorf("model %q from %s", e.Model, e.From("model"))
	}
	m.Flag = "{\n x}"
	e := m.load("--settings:2: not valid JSON")
	if e.Model != "" {
		t.Errorf("model %q", e.Model)
	}
}

func TestHomeAsProject(t *testing.T) {
	m := newMachine(t)
	m.Project = m.home
	m.write("~/.claude/settings.json", `{"permissions": {"allow": ["Read"]}}`)
	m.write("~/.cadre/settings.json", `{"permissions": {"allow": ["Edit"]}}`)
	e := m.load()
	if diff := cmp.Diff([]string{"Read < user", "Edit < user"}, texts(e.Permissions.Allow)); diff != "" {
		t.Errorf("allow (-want +got):\n%s", diff)
	}
}

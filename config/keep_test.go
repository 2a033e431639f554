package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (m *machine) keep(scope Scope, edits ...Edit) string {
	m.t.Helper()
	file, err := m.Keep(m.t.Context(), scope, edits...)
	if err != nil {
		m.t.Fatal(err)
	}
	return file
}

func (m *machine) text(file string) string {
	m.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

func allows(rules ...string) Edit { return Edit{List: AllowList, Add: rules} }

func TestKeepWritesTheFileOfTheScope(t *testing.T) {
	m := newMachine(t)
	for scope, want := range map[Scope]string{
		User: string(m.Root) + "/settings.json", Project: m.Project + "/.claude/settings.json", Local: m.Project + "/.claude/settings.local.json",
	} {
		if file := m.keep(scope, allows("Bash("+string(scope)+")")); file != want {
			t.Errorf("%s went into %s, want %s", scope, file, want)
		}
	}
	m.write(".cadre/settings.local.json", `{"ours": true}`)
	if file := m.keep(Local, allows("Bash(ours)")); filepath.Base(filepath.Dir(file)) != ".cadre" {
		t.Errorf("beside a file of ours, %s was changed", file)
	}
	if _, err := m.Keep(t.Context(), Flag, allows("Read")); err == nil {
		t.Error("what has no file was kept")
	}
}

// What a person accepted counts without trust in the project, and only that.
func TestWhatIsKeptCountsInAnUntrustedProject(t *testing.T) {
	m := newMachine(t)
	m.write(".claude/settings.local.json", `{"permissions": {"allow": ["Bash(planted)"], "additionalDirectories": ["/planted"]}}`)
	m.keep(Local, allows("Bash(make)"), Edit{List: FolderList, Add: []string{"/more"}}, Edit{Mode: "acceptEdits"})
	e := m.load("ignored permissions.allow (1), permissions.additionalDirectories (1): this project is not trusted")
	if diff := cmp.Diff([]string{"Bash(make) < local"}, texts(e.Permissions.Allow)); diff != "" {
		t.Errorf("allow (-want +got):\n%s", diff)
	}
	if len(e.Permissions.Directories) != 1 || e.Permissions.Directories[0].Path != "/more" || e.Permissions.DefaultMode != "acceptEdits" {
		t.Errorf("%+v", e.Permissions)
	}
	other := *m
	other.Project = filepath.Join(filepath.Dir(m.Project), "other")
	other.write(".claude/settings.local.json", m.text(filepath.Join(m.Project, ".claude/settings.local.json")))
	if e, _ := Load(other.Options); len(e.Permissions.Allow)+len(e.Permissions.Directories) > 0 || e.Permissions.DefaultMode != "" {
		t.Errorf("accepted for another project: %+v", e.Permissions)
	}
}

func TestWhatIsKeptCanBeTakenBack(t *testing.T) {
	m := newMachine(t)
	m.write(".cadre/settings.local.json", `{"permissions": {"deny": ["A"]}}`)
	m.write(".claude/settings.local.json", `{"permissions": {"deny": ["A", "B"]}, "theirs": 1}`)
	m.keep(Local, allows("Bash(make)"))
	m.keep(Local, Edit{List: AllowList, Remove: []string{"Bash(make)"}}, Edit{List: DenyList, Remove: []string{"A"}})
	e := m.load()
	if diff := cmp.Diff([]string{"B < local"}, texts(e.Permissions.Deny)); diff != "" || len(e.Permissions.Allow) > 0 {
		t.Errorf("allow %v, deny (-want +got):\n%s", e.Permissions.Allow, diff)
	}
	if text := m.text(m.Root.Accepted(m.Project)); strings.Contains(text, "make") {
		t.Errorf("still accepted: %s", text)
	}
	m.keep(Local, Edit{List: DenyList, Clear: true, Add: []string{"C"}})
	if diff := cmp.Diff([]string{"C < local"}, texts(m.load().Permissions.Deny)); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
}

func TestKeepLeavesOtherProgramsFilesAlone(t *testing.T) {
	m := newMachine(t)
	theirs := m.write("~/.claude/settings.json", `{"permissions": {"allow": ["Bash(x)"]}}`)
	before := m.text(theirs)
	if _, err := m.Keep(t.Context(), User, Edit{List: AllowList, Remove: []string{"Bash(x)"}}); err == nil || !strings.Contains(err.Error(), theirs) {
		t.Errorf("a rule that still counts was said to be gone: %v", err)
	}
	m.keep(User, allows("Bash(y)"))
	if text := m.text(theirs); text != before {
		t.Errorf("changed to %s", text)
	}
}

// A repository cannot have the person's answer written elsewhere.
func TestKeepFollowsNoLinkOutOfTheProject(t *testing.T) {
	for name, plant := range map[string]func(m *machine) (link, target string){
		"file":           func(m *machine) (string, string) { return ".claude/settings.local.json", "~/.cadre/settings.json" },
		"file that goes": func(m *machine) (string, string) { return ".cadre/settings.local.json", "~/.cadre/settings.json" },
		"folder":         func(m *machine) (string, string) { return ".claude", "~/.cadre" },
		"to nowhere":     func(m *machine) (string, string) { return ".claude/settings.local.json", "~/nowhere.json" },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			users := m.write("~/.cadre/settings.json", "{}")
			link, target := plant(m)
			link = filepath.Join(m.Project, link)
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(m.home, strings.TrimPrefix(target, "~/")), link); err != nil {
				t.Skip(err)
			}
			if file, err := m.Keep(t.Context(), Local, allows("Bash")); err == nil {
				t.Errorf("kept in %s", file)
			}
			if text := m.text(users); text != "{}" {
				t.Errorf("the user's settings are now %s", text)
			}
			if _, err := os.Lstat(filepath.Join(m.home, "nowhere.json")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("made: %v", err)
			}
			if _, err := os.Lstat(m.Root.Accepted(m.Project)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("accepted what was not kept: %v", err)
			}
		})
	}
}

func TestKeepFollowsALinkInsideTheProject(t *testing.T) {
	m := newMachine(t)
	real := m.write("settings/local.json", "{}")
	if err := os.MkdirAll(filepath.Join(m.Project, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../settings/local.json", filepath.Join(m.Project, ".claude/settings.local.json")); err != nil {
		t.Skip(err)
	}
	m.keep(Local, allows("Bash(make)"))
	if !strings.Contains(m.text(real), "make") {
		t.Error(m.text(real))
	}
}

func TestKeepRefusesABrokenFile(t *testing.T) {
	m := newMachine(t)
	file := m.write(".claude/settings.local.json", `{"permissions": {"allow": [`)
	before := m.text(file)
	if _, err := m.Keep(t.Context(), Local, allows("Bash")); err == nil || !strings.Contains(err.Error(), file) || m.text(file) != before {
		t.Errorf("%v, and the file is %s", err, m.text(file))
	}
}

func TestKeepingAtOnceLosesNothing(t *testing.T) {
	m := newMachine(t)
	m.write(".claude/settings.local.json", `{"theirs": {"x": [1, 2]}}`)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := m.Keep(t.Context(), Local, allows("Bash("+string(rune('a'+i))+")")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := m.load().Permissions.Allow; len(got) != 20 {
		t.Errorf("%d rules, want 20: %v", len(got), got)
	}
	if text := m.text(filepath.Join(m.Project, ".claude/settings.local.json")); !strings.Contains(text, `"theirs": {"x": [1, 2]}`) {
		t.Errorf("another program's key is gone: %s", text)
	}
}

func TestABrokenListOfWhatWasAcceptedAcceptsNothing(t *testing.T) {
	m := newMachine(t)
	m.keep(Local, allows("Bash(make)"))
	if err := os.WriteFile(m.Root.Accepted(m.Project), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := m.load("nothing in this file takes effect", "ignored permissions.allow (1)"); len(e.Permissions.Allow) > 0 {
		t.Errorf("allow %v", e.Permissions.Allow)
	}
}

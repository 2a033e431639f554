package layout

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The examples are those of facts: claude-code §2.2, §5.1.
func TestNames(t *testing.T) {
	folders := map[string]string{
		"My Team!": "my-team-", "UPPER_case.dot": "upper-case-dot", "日本語 team": "----team", "../../evil": "------evil",
		"a/b": "a-b", "..": "--", "x--y__z": "x--y--z", "😀é": "---",
	}
	for name, want := range folders {
		if got := DirName(name); got != want {
			t.Errorf("folder of %q is %q, want %q", name, got, want)
		}
	}
	inboxes := map[string]string{"Bad Name-x!": "Bad-Name-x-.json", "../../up": "------up.json", "w_1": "w_1.json"}
	root := Root("/r")
	for name, want := range inboxes {
		if got := filepath.Base(root.Inbox("t", name)); got != want {
			t.Errorf("inbox of %q is %q, want %q", name, got, want)
		}
	}
	if got, want := root.Inbox("", "w1"), filepath.FromSlash("/r/teams/default/inboxes/w1.json"); got != want {
		t.Errorf("inbox without a team is %q, want %q", got, want)
	}
}

func TestSlug(t *testing.T) {
	if got := Slug("/home/u/My.Project_1"); got != "-home-u-My-Project-1" {
		t.Errorf("slug %q", got)
	}
	long := "/" + strings.Repeat("a", 300)
	slug := Slug(long)
	if !strings.HasPrefix(slug, "-"+strings.Repeat("a", 199)+"-") || slug == Slug(long+"b") || len(slug) > 210 {
		t.Errorf("slug of a long path %q", slug)
	}
}

func TestFind(t *testing.T) {
	env := map[string]string{}
	find := func() Root {
		t.Helper()
		root, err := Find(func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	if got := find(); filepath.Base(string(got)) != ".cadre" {
		t.Errorf("root %q", got)
	}
	claude, ours := filepath.Join(t.TempDir(), "claude"), filepath.Join(t.TempDir(), "ours")
	env["CLAUDE_CONFIG_DIR"] = claude + string(filepath.Separator)
	if got := find(); string(got) != claude {
		t.Errorf("root %q, want %q", got, claude)
	}
	env["CADRE_HOME"] = ours
	if got := find(); string(got) != ours {
		t.Errorf("root %q, want %q", got, ours)
	}
}

// A relative root would be another one in each folder.
func TestFindRefusesRelativePaths(t *testing.T) {
	for _, path := range []string{"state", "./state", "../state", "~/state", "."} {
		root, err := Find(func(name string) string { return map[string]string{"CADRE_HOME": path}[name] })
		var relative *RelativeError
		if !errors.As(err, &relative) || relative.Variable != "CADRE_HOME" || relative.Path != path || root != "" {
			t.Errorf("CADRE_HOME=%s: root %q, %v", path, root, err)
		}
	}
}

// No name leaves the folder that it belongs in.
func TestAnyNameStaysInside(t *testing.T) {
	root := Root(filepath.FromSlash("/r"))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringN(1, 40, -1).Draw(t, "name")
		for path, parent := range map[string]string{
			root.TeamDir(name):       root.TeamsDir(),
			root.TaskList(name):      root.TasksDir(),
			root.Project(name):       root.ProjectsDir(),
			root.Inbox("t", name):    filepath.Join(root.TeamDir("t"), "inboxes"),
			root.TeamConfig(name):    root.TeamDir(name),
			root.Task(name, "1"):     root.TaskList(name),
			root.Inbox(name, "w1"):   filepath.Join(root.TeamDir(name), "inboxes"),
			root.Project("/" + name): root.ProjectsDir(),
		} {
			if filepath.Dir(path) != parent || strings.HasPrefix(filepath.Base(path), ".") {
				t.Fatalf("%q leads to %q, not in %q", name, path, parent)
			}
		}
	})
}

package prompt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree makes a home with a project in it and returns both.
func tree(t *testing.T) (home, project string) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project = filepath.Join(home, "src", "app")
	if err := os.MkdirAll(project, 0o755); err != nil {
		t.Fatal(err)
	}
	return home, project
}

func texts(files []File) []string {
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSpace(f.Text))
	}
	return out
}

func TestInstructionsGoFromGeneralToSpecific(t *testing.T) {
	home, project := tree(t)
	write(t, filepath.Join(home, ".claude", "CLAUDE.md"), "user, theirs")
	write(t, filepath.Join(home, ".cadre", "CADRE.md"), "user, ours")
	write(t, filepath.Join(home, "CLAUDE.md"), "not a project's")
	write(t, filepath.Join(home, "src", "AGENTS.md"), "parent")
	write(t, filepath.Join(project, "CLAUDE.md"), "project")
	write(t, filepath.Join(project, "AGENTS.md"), "project\n")
	write(t, filepath.Join(project, ".cadre", "CADRE.md"), "hidden")
	write(t, filepath.Join(project, "CLAUDE.local.md"), "mine")
	files, warnings := Instructions(Places{
		Cwd: project, Home: home, Users: []string{filepath.Join(home, ".claude"), filepath.Join(home, ".cadre")},
	})
	want := []string{"user, theirs", "user, ours", "parent", "project", "hidden", "mine"}
	if diff := cmp.Diff(want, texts(files)); diff != "" || len(warnings) > 0 {
		t.Errorf("instructions (-want +got):\n%s\nwarnings %v", diff, warnings)
	}
}

func TestImports(t *testing.T) {
	home, project := tree(t)
	write(t, filepath.Join(home, "secret.md"), "secret")
	write(t, filepath.Join(project, "docs", "style.md"), "style\n@deeper.md")
	write(t, filepath.Join(project, "docs", "deeper.md"), "deeper\n@style.md")
	if err := os.Symlink(filepath.Join(home, "secret.md"), filepath.Join(project, "link.md")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	write(t, filepath.Join(project, "CADRE.md"),
		"@docs/style.md\n@../../secret.md\n@link.md\n@missing.md\n```\n@docs/style.md\n```\nwrite to @somebody please")
	files, warnings := Instructions(Places{Cwd: project, Home: home})
	if len(files) != 1 {
		t.Fatalf("files = %+v", files)
	}
	text := files[0].Text
	if !strings.Contains(text, "style\ndeeper\n@style.md") || strings.Contains(text, "secret\n") ||
		!strings.Contains(text, "```\n@docs/style.md\n```") {
		t.Errorf("text = %s", text)
	}
	if len(warnings) != 4 { // the loop, the path outside, the link outside, the missing file
		t.Errorf("warnings = %q", warnings)
	}
}

func TestHostileInstructionFilesAreLeftOut(t *testing.T) {
	home, project := tree(t)
	write(t, filepath.Join(project, "CADRE.md"), strings.Repeat("x", maxFile+1))
	write(t, filepath.Join(project, "CLAUDE.md"), "a\x00b")
	if err := os.Mkdir(filepath.Join(project, "AGENTS.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, warnings := Instructions(Places{Cwd: project, Home: home})
	if len(files) != 0 || len(warnings) != 3 {
		t.Errorf("files %v, warnings %q", files, warnings)
	}
}

func TestSystemIsTheSameForTheSameOptions(t *testing.T) {
	o := Options{Cwd: "/w", AddDirs: []string{"/x"}, Platform: "linux", Git: true, Date: "2026-11-21",
		Instructions: []File{{"/w/CADRE.md", "be kind\n"}}, Append: "and brief"}
	a, b := System(o), System(o)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	want := []string{
		strings.TrimSpace(core),
		"# Environment\n\nWorking folder: /w\nFurther working folder: /x\nGit repository: yes\nPlatform: linux\nToday's date: 2026-11-21",
		"# Instructions\n\nThe person and the project have left the following instructions for agents. Follow them; where they differ from the above, they count, and a later file counts more than an earlier one.\n\n<instructions from=\"/w/CADRE.md\">\nbe kind\n</instructions>",
		"and brief",
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("system prompt (-want +got):\n%s", diff)
	}
}

func TestACustomPromptReplacesTheDefault(t *testing.T) {
	custom, none := "be a pirate", ""
	if diff := cmp.Diff([]string{"be a pirate"}, System(Options{Cwd: "/w", Custom: &custom})); diff != "" {
		t.Error(diff)
	}
	if got := System(Options{Cwd: "/w", Custom: &none}); len(got) != 0 {
		t.Errorf("an empty prompt gave %q", got)
	}
}

func TestSubAgentsAreToldTheirPart(t *testing.T) {
	for _, agentType := range []string{GeneralPurpose, Explore} {
		if !strings.HasPrefix(SubAgent(agentType), "<system-reminder>\nYou are a sub-agent") {
			t.Errorf("%s is told %q", agentType, SubAgent(agentType))
		}
	}
	if SubAgent("nobody") != "" {
		t.Error("an unknown type is told something")
	}
}

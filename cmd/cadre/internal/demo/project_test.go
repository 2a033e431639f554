package demo

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

func prepared(t *testing.T) Project {
	t.Helper()
	p, err := Prepare(t.Context(), filepath.Join(t.TempDir(), "tally"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// repaired is a project after the script has been played on it.
func repaired(t *testing.T) Project {
	t.Helper()
	s, checks := play(t, ScriptText(), 1)
	if !checks.Passed {
		t.Fatal(checks.Output)
	}
	out, err := git(t.Context(), s.dir, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	return Project{s.dir, strings.TrimSpace(out)}
}

// TestDelivered: as it is delivered, every part of the project fails, for its
// own reason, and some of it works.
func TestDelivered(t *testing.T) {
	checks, err := Check(t.Context(), prepared(t).Dir)
	if err != nil {
		t.Fatal(err)
	}
	if checks.Passed || len(checks.Results) != 24 || len(checks.Failed()) != 16 {
		t.Errorf("%d of %d checks fail:\n%s", len(checks.Failed()), len(checks.Results), checks.Output)
	}
	failing := make(map[string]bool)
	for _, c := range checks.Failed() {
		failing[c.Part] = true
	}
	for _, part := range []string{"parse", "money", "report", "usage"} {
		if !failing[part] {
			t.Errorf("%s does not fail", part)
		}
	}
}

// TestShells: the project says the same in every shell that is here, before and
// after.
func TestShells(t *testing.T) {
	before, after := prepared(t), repaired(t)
	for _, shell := range []string{"dash", "bash", "busybox", "ksh", "mksh", "yash", "zsh"} {
		real, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		t.Run(shell, func(t *testing.T) {
			// As sh, a shell behaves as POSIX says.
			bin := t.TempDir()
			if err := os.Symlink(real, filepath.Join(bin, "sh")); err != nil {
				t.Skip(err)
			}
			t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			if c, err := Check(t.Context(), before.Dir); err != nil || c.Passed || len(c.Failed()) < 14 {
				t.Errorf("before: %v\n%s", err, c.Output)
			}
			if c, err := Check(t.Context(), after.Dir); err != nil || !c.Passed {
				t.Errorf("after: %v\n%s", err, c.Output)
			}
		})
	}
}

// TestPOSIX: the project needs no more than the language of POSIX and what is
// built into every sh.
func TestPOSIX(t *testing.T) {
	builtin := []string{"[", "echo", "printf", "read", "return", "exit", "shift", "cd", "break", "continue", ".", "sh"}
	parser := syntax.NewParser(syntax.Variant(syntax.LangPOSIX))
	for _, dir := range []string{prepared(t).Dir, repaired(t).Dir} {
		functions := make(map[string]bool)
		used := make(map[string]string)
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == ".git" {
					return filepath.SkipDir
				}
				return nil
			}
			if path.Ext(p) != ".sh" && d.Name() != "tally" {
				return nil
			}
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			file, err := parser.Parse(bytes.NewReader(text), p)
			if err != nil {
				return err
			}
			syntax.Walk(file, func(n syntax.Node) bool {
				switch n := n.(type) {
				case *syntax.FuncDecl:
					functions[n.Name.Value] = true
				case *syntax.CallExpr:
					if len(n.Args) > 0 {
						used[n.Args[0].Lit()] = p
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, where := range used {
			if name != "" && name != "money" && !functions[name] && !slices.Contains(builtin, name) {
				t.Errorf("%s runs %q, which is neither built in nor written here", where, name)
			}
		}
	}
}

// TestReadmeExample: what the README shows is what the repaired tool prints.
func TestReadmeExample(t *testing.T) {
	p := repaired(t)
	exit, out, err := run(t.Context(), p.Dir, "sh", []string{"tally", "ledger/june.txt"}, bareEnv())
	if err != nil || exit.Code != 0 {
		t.Fatal(err, out)
	}
	readme, err := os.ReadFile(filepath.Join(p.Dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if !strings.Contains(string(readme), "    "+line) {
			t.Errorf("the README does not show %q", line)
		}
	}
}

func TestFreshFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with files in it: %v", err)
	}
}

// TestGitIsOurs: nothing of the user's configuration or environment reaches the
// project's repository.
func TestGitIsOurs(t *testing.T) {
	home := t.TempDir()
	hooks := filepath.Join(home, "hooks")
	marker := filepath.Join(home, "ran")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pre-commit", "post-commit", "reference-transaction", "post-index-change"} {
		if err := os.WriteFile(filepath.Join(hooks, name), []byte("#!/bin/sh\n: >"+marker+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := "[user]\nname = Somebody\n[core]\nhooksPath = " + hooks + "\n[commit]\ngpgSign = true\n[diff]\nnoprefix = true\nexternal = false\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("GIT_DIR", filepath.Join(home, "elsewhere"))
	t.Setenv("GIT_AUTHOR_NAME", "Somebody")
	p := prepared(t)
	author, err := git(t.Context(), p.Dir, "log", "--format=%an <%ae>, %cn")
	if err != nil || author != "cadre demo <demo@cadre.invalid>, cadre demo\n" {
		t.Errorf("committed by %q, %v", author, err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "new file"), []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := p.Diff(t.Context())
	if err != nil || !slices.Equal(d.Files, []FileDiff{{"new file", 2, 0}}) || !strings.Contains(d.Text, "+++ b/new file") {
		t.Errorf("diff %+v, %v", d, err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hook of the user ran")
	}
}

// TestDiffSinceDelivery: what was committed meanwhile counts as well.
func TestDiffSinceDelivery(t *testing.T) {
	p := prepared(t)
	if d, err := p.Diff(t.Context()); err != nil || len(d.Files) != 0 || d.Text != "" {
		t.Errorf("before anything changed: %+v, %v", d, err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "tally"), []byte("gone\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := git(t.Context(), p.Dir, "commit", "--all", "--message", "x"); err != nil {
		t.Fatal(err)
	}
	if d, err := p.Diff(t.Context()); err != nil || len(d.Files) != 1 || d.Files[0].Added != 1 {
		t.Errorf("after a commit: %+v, %v", d, err)
	}
}

// TestTouchedChecks: checks that pass because they were changed do not pass.
func TestTouchedChecks(t *testing.T) {
	for name, touch := range map[string]func(dir string) error{
		"check.sh rewritten": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "check.sh"), []byte("echo ok all fine\n"), 0o700)
		},
		"a test removed": func(dir string) error { return os.Remove(filepath.Join(dir, "tests", "usage.sh")) },
		"a ledger changed": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "ledger", "broken.txt"), []byte("2024-06-03 food 1o.20\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := repaired(t)
			if err := touch(p.Dir); err != nil {
				t.Fatal(err)
			}
			c, err := Check(t.Context(), p.Dir)
			if err != nil || c.Passed || len(c.Changed) != 1 || len(c.Failed()) != 0 {
				t.Errorf("passed %v, changed %v, failed %v, %v", c.Passed, c.Changed, c.Failed(), err)
			}
		})
	}
}

// TestBrokenCode: code that does not even parse is a failing check, with what
// the shell says.
func TestBrokenCode(t *testing.T) {
	p := repaired(t)
	if err := os.WriteFile(filepath.Join(p.Dir, "lib", "money.sh"), []byte("money() {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Check(t.Context(), p.Dir)
	if err != nil || c.Passed || !slices.ContainsFunc(c.Failed(), func(r CheckResult) bool { return r.Part == "money" }) {
		t.Errorf("%v\n%s", err, c.Output)
	}
}

// TestAllowedTools: every command of the script is one that the demo allows.
func TestAllowedTools(t *testing.T) {
	command := regexp.MustCompile(`"tool": "Bash", "input": \{"command": "([^"$]+)", "description"`)
	found := 0
	for _, m := range command.FindAllSubmatch(scriptText, -1) {
		found++
		if !slices.Contains(AllowedTools, "Bash("+string(m[1])+")") {
			t.Errorf("%s is not allowed", m[1])
		}
	}
	if found < 3 {
		t.Errorf("found %d commands in the script", found)
	}
	tests, err := fs.Glob(projectFiles, "project/tests/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tests {
		name := strings.TrimPrefix(file, "project/")
		if name != "tests/assert.sh" && !slices.Contains(AllowedTools, "Bash(sh "+name+")") {
			t.Errorf("sh %s is not allowed", name)
		}
	}
}

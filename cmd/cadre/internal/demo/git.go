package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/proc"
)

// gitFlags make git ignore configuration, and start none of the programs that a
// project's own configuration names.
var gitFlags = []string{
	"-c", "user.name=cadre demo", "-c", "user.email=demo@cadre.invalid",
	"-c", "init.defaultBranch=main", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false",
	"-c", "commit.gpgSign=false", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull,
	"-c", "core.pager=cat", "-c", "color.ui=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
}

func commitAll(ctx context.Context, dir string) (commit string, err error) {
	steps := [][]string{
		{"init", "--quiet", "--template="},
		{"add", "--all"},
		{"commit", "--quiet", "--no-verify", "--message", "tally 0.3: options, and the outline of the report"},
	}
	for _, args := range steps {
		if _, err := git(ctx, dir, args...); err != nil {
			return "", err
		}
	}
	out, err := git(ctx, dir, "rev-parse", "HEAD")
	return strings.TrimSpace(out), err
}

// Diff is what changed in a project since it was delivered, committed or not.
type Diff struct {
	Files []FileDiff `json:"files"`
	Text  string     `json:"text"` // in unified form
}

// FileDiff counts the changed lines of one file; both are 0 for a binary one.
type FileDiff struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// Diff compares the project's folder with what was delivered.
func (p Project) Diff(ctx context.Context) (Diff, error) {
	// New files count too.
	if _, err := git(ctx, p.Dir, "add", "--all", "--intent-to-add"); err != nil {
		return Diff{}, fmt.Errorf("diff the demo project: %w", err)
	}
	plain := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"}
	text, err := git(ctx, p.Dir, append(plain, p.Commit, "--")...)
	if err != nil {
		return Diff{}, fmt.Errorf("diff the demo project: %w", err)
	}
	counts, err := git(ctx, p.Dir, append(plain, "--numstat", "-z", p.Commit, "--")...)
	if err != nil {
		return Diff{}, fmt.Errorf("diff the demo project: %w", err)
	}
	d := Diff{Files: []FileDiff{}, Text: text}
	for record := range strings.SplitSeq(strings.TrimSuffix(counts, "\x00"), "\x00") {
		if fields := strings.SplitN(record, "\t", 3); len(fields) == 3 {
			added, _ := strconv.Atoi(fields[0]) // "-" for a binary file
			removed, _ := strconv.Atoi(fields[1])
			d.Files = append(d.Files, FileDiff{fields[2], added, removed})
		}
	}
	return d, nil
}

// git runs git in dir and returns its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	exit, out, err := run(ctx, dir, "git", append(append([]string(nil), gitFlags...), args...), gitEnv(dir))
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	if exit.Killed {
		return "", fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	if exit.Code != 0 {
		return "", fmt.Errorf("git %s: exit code %d: %s", args[0], exit.Code, strings.TrimSpace(out))
	}
	return out, nil
}

// gitEnv is this process's environment without the variables that make git work
// elsewhere or read other files.
func gitEnv(dir string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "GIT_") && name != "HOME" && name != "XDG_CONFIG_HOME" {
			env = append(env, entry)
		}
	}
	nowhere := filepath.Join(dir, ".git", "no-home")
	return append(env, "HOME="+nowhere, "XDG_CONFIG_HOME="+nowhere, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
}

// run runs a program in dir and returns all that it wrote.
func run(ctx context.Context, dir, name string, args, env []string) (proc.Exit, string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return proc.Exit{}, "", fmt.Errorf("the demo needs %s: %w", name, err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return proc.Exit{}, "", err
	}
	var out bytes.Buffer
	exit, err := proc.Run(ctx, proc.Command{Path: path, Args: append([]string{name}, args...), Dir: dir, Env: env, Stdout: &out})
	return exit, out.String(), err
}

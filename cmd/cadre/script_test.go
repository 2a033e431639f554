package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cadre-dev/cadre/cmd/cadre/internal/demo"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/transcript"
)

// The scripts and the tests of signals and terminals run this test binary as
// cadre.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cadre": main})
}

// noRaceSleep removes the second for which a process under the race detector
// waits before it ends.
const noRaceSleep = "atexit_sleep_ms=0"

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("USERPROFILE", filepath.Join(env.WorkDir, "home"))
			env.Setenv("CADRE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("GORACE", noRaceSleep)
			env.Values[heldKey{}] = &heldSessions{}
			script := filepath.Join(env.WorkDir, "demo.jsonc")
			poets, err := documentedTeam()
			return errors.Join(
				err,
				os.WriteFile(filepath.Join(env.WorkDir, "poets.jsonc"), poets, 0o600),
				os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o700),
				os.WriteFile(script, demo.ScriptText(), 0o600),
			)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":    scriptCode,
			"serve":   scriptServe,
			"hold":    scriptHold,
			"release": scriptRelease,
			"shape":   scriptShape,
			"count":   scriptCount,
		},
	})
}

// documentedTeam is the script in docs/scripted-models.md that people are to copy.
func documentedTeam() ([]byte, error) {
	doc, err := os.ReadFile("../../docs/scripted-models.md")
	if err != nil {
		return nil, err
	}
	_, section, _ := bytes.Cut(doc, []byte("\n## A script for a team\n"))
	_, rest, found := bytes.Cut(section, []byte("```jsonc\n"))
	if !found {
		return nil, errors.New("docs/scripted-models.md has no script for a team")
	}
	script, _, _ := bytes.Cut(rest, []byte("```"))
	return script, nil
}

// code N command...: the command ends with exit code N.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		got = exited.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// serve WHAT: starts a server of the Messages API and points the environment to
// it. WHAT is an HTTP status, or the text of every answer.
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve STATUS|TEXT")
	}
	status, err := strconv.Atoi(args[0])
	server := fakeapi.Start(func(*fakeapi.Request) fakeapi.Reply {
		if err != nil {
			reply := fakeapi.Answer(fakeapi.Text(args[0]))
			reply.Model = "claude-sonnet-4-5"
			return reply
		}
		body := fmt.Sprintf(`{"type":"error","error":{"type":"some_error","message":"status %d of the test"}}`, status)
		return fakeapi.Reply{Status: status, Body: strings.NewReader(body)}
	})
	ts.Defer(server.Close)
	ts.Setenv("ANTHROPIC_BASE_URL", server.URL)
	ts.Setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-test-0123456789")
}

// hold SESSION: opens a session of the script's folder until the script ends.
func scriptHold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold SESSION")
	}
	store := filestore.New(layout.Root(ts.Getenv("CADRE_HOME")))
	log, err := store.Transcripts().Open(context.Background(), transcript.Ref{Project: ts.MkAbs("."), Session: args[0]})
	ts.Check(err)
	held := ts.Value(heldKey{}).(*heldSessions)
	held.release = append(held.release, func() error { return errors.Join(log.Close(), store.Close()) })
	ts.Defer(func() { ts.Check(held.end()) })
}

// heldKey finds the heldSessions of a script.
type heldKey struct{}

// heldSessions are what a script holds open.
type heldSessions struct{ release []func() error }

func (h *heldSessions) end() error {
	var errs []error
	for _, release := range h.release {
		errs = append(errs, release())
	}
	h.release = nil
	return errors.Join(errs...)
}

// release: closes the sessions that hold opened.
func scriptRelease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: release")
	}
	ts.Check(ts.Value(heldKey{}).(*heldSessions).end())
}

// count FILE REGEXP N: the file has N lines that match.
func scriptCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: count FILE REGEXP N")
	}
	match, err := regexp.Compile(args[1])
	ts.Check(err)
	n := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if match.MatchString(line) {
			n++
		}
	}
	if strconv.Itoa(n) != args[2] {
		ts.Fatalf("%d lines match %q, want %s:\n%s", n, args[1], args[2], ts.ReadFile(args[0]))
	}
}

// volatile is what differs from run to run.
var volatile = []struct {
	find    *regexp.Regexp
	replace string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`"(duration_ms|duration_api_ms)":\d+`), `"$1":MS`},
	{regexp.MustCompile(`"(\w*(?:[tT]okens))":\d+`), `"$1":N`},
	{regexp.MustCompile(`"tools":\[("\w+",?)+\]`), `"tools":[NAMES]`},
	{regexp.MustCompile(`"agents":\[("[\w-]+",?)*\]`), `"agents":[NAMES]`},
	{regexp.MustCompile(`(msg|toolu)_[0-9a-f]+`), "${1}_ID"},
}

// shape FILE GOLDEN: the file is the golden one but for what differs from run
// to run. FILE may be stdout.
func scriptShape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shape FILE GOLDEN")
	}
	got := ts.ReadFile(args[0])
	got = strings.ReplaceAll(got, ts.Getenv("WORK"), "WORK")
	for _, v := range volatile {
		got = v.find.ReplaceAllString(got, v.replace)
	}
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("%s has another shape.\ngot:\n%s\nwant:\n%s", args[0], got, want)
	}
}

// environment is that of a cadre of its own for tests that are no scripts.
func environment(t *testing.T, extra ...string) []string {
	t.Helper()
	dir := t.TempDir()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "USERPROFILE=" + dir,
		"CADRE_HOME=" + filepath.Join(dir, "state"), "TMPDIR=" + dir, "TERM=xterm", "GORACE=" + noRaceSleep,
	}
	return append(env, extra...)
}

// command prepares a cadre in a folder of its own.
func command(t *testing.T, env []string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), "cadre", args...)
	cmd.Dir, cmd.Env = t.TempDir(), env
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr, cmd.Stdin = stdout, stderr, io.LimitReader(nil, 0)
	return cmd, stdout, stderr
}

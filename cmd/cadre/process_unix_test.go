//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/cadre-dev/cadre/internal/fakeapi"
)

// patience is how long these tests wait for another process.
const patience = 60 * time.Second

// silentServer receives requests and answers none. Each request is sent to asked.
func silentServer(t *testing.T) (env []string, asked <-chan struct{}) {
	t.Helper()
	requests, never := make(chan struct{}, 100), make(chan struct{})
	server := fakeapi.Start(func(*fakeapi.Request) fakeapi.Reply {
		requests <- struct{}{}
		return fakeapi.Reply{Faults: fakeapi.Faults{Gate: never}}
	})
	t.Cleanup(server.Close)
	return []string{"ANTHROPIC_BASE_URL=" + server.URL, "ANTHROPIC_API_KEY=test"}, requests
}

func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// exitCode waits for the end of a command.
func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	err := within(t, "the end of cadre", done)
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		return exited.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestSignalsEndARun(t *testing.T) {
	for _, tc := range []struct {
		signal syscall.Signal
		code   int
		notice string
	}{
		{syscall.SIGINT, 130, "ended by Ctrl+C: shutting down"},
		{syscall.SIGTERM, 143, "ended by SIGTERM: shutting down"},
		{syscall.SIGHUP, 129, "ended by SIGHUP: shutting down"},
		{syscall.SIGQUIT, 131, "ended by SIGQUIT: shutting down"},
	} {
		t.Run(tc.signal.String(), func(t *testing.T) {
			env, asked := silentServer(t)
			cmd, stdout, stderr := command(t, environment(t, env...), "-p", "hello", "--output-format", "json")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			within(t, "a request", asked)
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			if got := exitCode(t, cmd); got != tc.code {
				t.Errorf("exit code %d, want %d; stderr:\n%s", got, tc.code, stderr)
			}
			if !strings.Contains(stderr.String(), tc.notice) {
				t.Errorf("stderr does not contain %q:\n%s", tc.notice, stderr)
			}
			for _, want := range []string{`"subtype":"error_during_execution"`, `"terminal_reason":"aborted_streaming"`} {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("the result does not have %s:\n%s", want, stdout)
				}
			}
		})
	}
}

// TestIgnoredSignalStaysIgnored: nohup and background jobs of scripts start
// programs with signals ignored.
func TestIgnoredSignalStaysIgnored(t *testing.T) {
	env, asked := silentServer(t)
	cmd, _, _ := command(t, environment(t, env...))
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap '' HUP; exec cadre -p hello`}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, "a request", asked)
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := exitCode(t, cmd); got != exitTerminated {
		t.Errorf("exit code %d: SIGHUP ended it, though it was ignored", got)
	}
}

// TestReaderGone: nobody reads the stream any more. The run ends in order, and
// what was done is kept.
func TestReaderGone(t *testing.T) {
	server := fakeapi.Start(func(r *fakeapi.Request) fakeapi.Reply { return fakeapi.Answer(fakeapi.Text("hello")) })
	defer server.Close()
	env := environment(t, "ANTHROPIC_BASE_URL="+server.URL, "ANTHROPIC_API_KEY=test")
	for _, format := range []string{"text", "stream-json"} {
		t.Run(format, func(t *testing.T) {
			cmd, _, stderr := command(t, env, "-p", "hello", "--output-format", format, "--verbose", "--quiet")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			cmd.Stdout = w
			err = cmd.Start()
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			if got := exitCode(t, cmd); got != exitNoReader {
				t.Errorf("exit code %d, want %d; stderr:\n%s", got, exitNoReader, stderr)
			}
			if stderr.Len() > 0 {
				t.Errorf("stderr is not silent:\n%s", stderr)
			}
			list, stdout, _ := command(t, env, "sessions", "ls", "--json")
			list.Dir = cmd.Dir
			if err := list.Run(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(stdout.String(), `"firstPrompt": "hello"`) || strings.Contains(stdout.String(), "heldByPid") {
				t.Errorf("the session is not kept, or not closed:\n%s", stdout)
			}
		})
	}
}

// terminal is a cadre on a terminal of its own.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
	seen int
}

func openTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cadre", args...)
	cmd.Dir, cmd.Env = t.TempDir(), env
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, tty: tty, more: make(chan struct{}, 1)}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			x.mu.Lock()
			x.text.Write(buf[:n])
			x.mu.Unlock()
			select {
			case x.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() { tty.Close(); reading.Wait() })
	return x
}

func (x *terminal) enter(text string) {
	x.t.Helper()
	if _, err := io.WriteString(x.tty, text); err != nil {
		x.t.Fatal(err)
	}
}

// shown is what the terminal shows so far.
func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.ReplaceAll(x.text.String(), "\r", "")
}

// wait waits until text appears behind what was waited for before.
func (x *terminal) wait(text string) {
	x.t.Helper()
	late := time.After(patience)
	for {
		all := x.shown()
		if at := strings.Index(all[x.seen:], text); at >= 0 {
			x.seen += at + len(text)
			return
		}
		select {
		case <-x.more:
		case <-late:
			x.t.Fatalf("%q did not appear; the terminal shows\n%s", text, all)
		}
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
)

// script writes a scripted model that repeats what it hears.
func script(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "echo.jsonc")
	err := os.WriteFile(path, []byte(`{"rules": [{"when": {"input": "(?s)^(?P<all>.*)$"}, "say": "heard <${all}>"}]}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return "scripted:" + path
}

func TestTerminalConversation(t *testing.T) {
	x := openTerminal(t, environment(t, "NO_COLOR=1"), "--model", script(t))
	x.wait("Welcome to cadre")
	x.wait("> ")
	x.enter("hello\n")
	x.wait("heard <hello>")
	x.wait("> ")
	x.enter("one\ntwo\nthree\n") // a paste
	x.wait("heard <one\ntwo\nthree>")
	x.wait("> ")
	x.enter(ctrlD)
	x.wait("cost: ")
	if got := exitCode(t, x.cmd); got != 0 {
		t.Errorf("exit code %d", got)
	}
	if shown := x.shown(); strings.Contains(shown, "\x1b[") {
		t.Errorf("escape sequences in spite of NO_COLOR:\n%q", shown)
	}
}

func TestTerminalInterrupts(t *testing.T) {
	env, asked := silentServer(t)
	x := openTerminal(t, environment(t, env...))
	x.wait("> ")
	x.enter("hello\n")
	within(t, "a request", asked)
	x.enter(ctrlC)
	x.wait("interrupted")
	x.wait("> ")
	x.enter("once more\n")
	within(t, "another request", asked)
	x.enter(ctrlC)
	x.wait("interrupted")
	x.enter(ctrlC) // the second in a row leaves
	if got := exitCode(t, x.cmd); got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestTerminalIsTerminated(t *testing.T) {
	x := openTerminal(t, environment(t), "--model", script(t))
	x.wait("> ")
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := exitCode(t, x.cmd); got != exitTerminated {
		t.Errorf("exit code %d, want %d", got, exitTerminated)
	}
}

// TestKilledCadreLeavesNothingRunning: what commands started ends with cadre, also
// when nothing is left to ask for it. All of it holds a FIFO open, whose end is
// the end of the last.
func TestKilledCadreLeavesNothingRunning(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	const loop = `trap "" TERM HUP INT; echo up >&7; while :; do sleep 0.05; done`
	started := []string{"(" + loop + ")", "( (" + loop + ")& )", "env -i sh -c '" + loop + "'"}
	if _, err := exec.LookPath("setsid"); err == nil && runtime.GOOS == "linux" {
		started = append(started, "setsid sh -c '"+loop+"'")
	}
	shell := "exec 7>" + fifo + "; " + strings.Join(started, " & ") + " & wait"
	calls := []any{}
	for _, background := range []bool{true, false} {
		calls = append(calls, map[string]any{"tool": "Bash", "input": map[string]any{
			"command": shell, "description": "d", "run_in_background": background,
		}})
	}
	text, err := json.Marshal(map[string]any{"rules": []any{map[string]any{"calls": calls}}})
	if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "model.jsonc")
	if err := os.WriteFile(model, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _, stderr := command(t, environment(t), "-p", "hello", "--model", "scripted:"+model, "--allowedTools", "Bash")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up, gone := make(chan error), make(chan error, 1)
	go func() {
		r, err := os.Open(fifo) // blocks until a command has opened it
		if err == nil {
			defer r.Close()
			_, err = io.ReadFull(r, make([]byte, len("up\n")*len(started)*len(calls)))
		}
		up <- err
		_, err = io.Copy(io.Discard, r)
		gone <- err
	}()
	if err := within(t, "the commands", up); err != nil {
		t.Fatalf("%v; stderr:\n%s", err, stderr)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// What is alive then stays so, however long it is waited for.
	if err := within(t, "the end of all that cadre ran", gone); err != nil {
		t.Error(err)
	}
}

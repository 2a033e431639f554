//go:build unix

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		beParent()
		return
	}
	goleak.VerifyTestMain(m)
}

// sh runs a script and returns its exit and output.
func sh(t *testing.T, ctx context.Context, script string) (Exit, string) {
	t.Helper()
	var out bytes.Buffer
	exit, err := Run(ctx, Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String()
}

// alive reports whether the process is there and not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z'
}

func pidIn(t *testing.T, text string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatalf("no process id in %q", text)
	}
	return pid
}

func TestRunReportsTheEnd(t *testing.T) {
	tests := []struct {
		script string
		want   Exit
		out    string
	}{
		{"echo out; echo err >&2; exit 3", Exit{Code: 3}, "out\nerr\n"},
		{"kill -9 $$", Exit{Code: 137, Signal: "killed"}, ""},
		{"cat; [ -t 0 ] || echo none", Exit{}, "none\n"},
		{"(exec 2>/dev/null; : </dev/tty) || echo no terminal", Exit{}, "no terminal\n"},
	}
	for _, tt := range tests {
		exit, out := sh(t, t.Context(), tt.script)
		if exit != tt.want || tt.out != "" && !strings.HasSuffix(out, tt.out) {
			t.Errorf("%s: %+v %q, want %+v %q", tt.script, exit, out, tt.want, tt.out)
		}
	}
}

func TestRunKeepsStreamsApart(t *testing.T) {
	var out, err bytes.Buffer
	exit, e := Run(t.Context(), Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", "echo $V; pwd >&2"}, Dir: "/", Env: []string{"V=x"}, Stdout: &out, Stderr: &err,
	})
	if e != nil || exit != (Exit{}) || out.String() != "x\n" || err.String() != "/\n" {
		t.Errorf("%+v %v %q %q", exit, e, out.String(), err.String())
	}
}

func TestRunNamesWhatDoesNotStart(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Run(t.Context(), Command{Path: missing, Args: []string{"missing"}})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("error is %v", err)
	}
}

// brokenWriter takes one write and then fails.
type brokenWriter struct{ written int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.written > 0 {
		return 0, io.ErrShortWrite
	}
	w.written += len(p)
	return len(p), nil
}

func TestRunOutlastsABrokenWriter(t *testing.T) {
	w := &brokenWriter{}
	exit, err := Run(t.Context(), Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", "head -c 1000000 /dev/zero && exit 5"}, Stdout: w,
	})
	if err != nil || exit.Code != 5 || w.written == 0 {
		t.Errorf("%+v %v, %d bytes", exit, err, w.written)
	}
}

func TestRunEndsWhatIsLeftBehind(t *testing.T) {
	exit, out := sh(t, t.Context(), "sleep 1000 & echo $!")
	if pid := pidIn(t, out); !exit.Left || exit.Killed || exit.Code != 0 || alive(pid) {
		t.Errorf("%+v, process alive: %v", exit, alive(pid))
	}
	exit, out = sh(t, t.Context(), "(trap '' TERM; sleep 1000) >/dev/null & echo $!")
	if pid := pidIn(t, out); !exit.Left || alive(pid) {
		t.Errorf("%+v, process that ignores SIGTERM alive: %v", exit, alive(pid))
	}
}

func TestRunWaitsForTheLastStage(t *testing.T) {
	exit, out := sh(t, t.Context(), "{ sleep 0.01; echo late; } & exit 4")
	if want := (Exit{Code: 4}); exit != want || out != "late\n" {
		t.Errorf("%+v %q", exit, out)
	}
}

// interrupt runs a script and ends its context as soon as it has said a line.
func interrupt(t *testing.T, script string) (Exit, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &lineWriter{line: cancel}
	exit, err := Run(ctx, Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	return exit, w.buf.String()
}

type lineWriter struct {
	buf  bytes.Buffer
	line func()
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.buf.Write(p)
	if bytes.Contains(p, []byte("\n")) {
		w.line()
	}
	return len(p), nil
}

func TestRunStopsWithItsContext(t *testing.T) {
	tests := []struct{ name, script, signal string }{
		{"asked", "echo $$; sleep 1000", "terminated"},
		{"ignores SIGTERM", "trap '' TERM; echo $$; while :; do sleep 0.05; done", "killed"},
		{"grandchild ignores SIGTERM and holds the pipe", "(trap '' TERM; echo $(exec sh -c 'echo $PPID'); while :; do sleep 0.05; done) & wait", "terminated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			exit, out := interrupt(t, tt.script)
			if !exit.Killed || exit.Left || exit.Signal != tt.signal {
				t.Errorf("exit is %+v", exit)
			}
			if pid := pidIn(t, out); alive(pid) {
				t.Errorf("process %d is alive", pid)
			}
		})
	}
}

func TestRunKillsWhatLeftTheGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("found by /proc only")
	}
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	exit, out := interrupt(t, `setsid sh -c '(trap "" TERM HUP; echo $(exec sh -c "echo \$PPID"); while :; do sleep 0.05; done) &' & sleep 1000`)
	if pid := pidIn(t, out); !exit.Killed || alive(pid) {
		t.Errorf("%+v, process %d alive: %v", exit, pid, alive(pid))
	}
}

// TestRunReturnsBesideADaemon shows that a process that left the group on
// purpose, and still holds the output open, keeps nobody waiting.
func TestRunReturnsBesideADaemon(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	file := filepath.Join(t.TempDir(), "pid")
	exit, _ := sh(t, t.Context(), `setsid sh -c 'echo $$ >`+file+`; exec sleep 1000' & until [ -s `+file+` ]; do sleep 0.01; done; exit 2`)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, string(text))
	if exit.Code != 2 || !alive(pid) {
		t.Errorf("%+v, daemon alive: %v", exit, alive(pid))
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func BenchmarkRun(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			_, _ = Run(b.Context(), Command{Path: "/bin/sh", Args: []string{"sh", "-c", ":"}})
		}
	})
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			_ = exec.Command("/bin/sh", "-c", ":").Run()
		}
	})
}

// BenchmarkBookkeeping is what a run pays for its watchdog.
func BenchmarkBookkeeping(b *testing.B) {
	for b.Loop() {
		r := underWay.begin()
		r.started(1 << 30)
		r.end()
	}
}

//go:build unix

package proc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
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
)

// promised is how long what this process started may outlive it.
const promised = 5 * time.Second

// parentVariable makes the test binary a parent: a program that runs what its
// standard input says, a line each, until it is killed or the input ends.
//
//	run SCRIPT      runs it; its output is the parent's
//	wait SCRIPT     the same, and says "done" when it has ended
//	record DIR      calls Record
//	watchdog        says the process id of the watchdog
const parentVariable = "PROC_TEST_PARENT"

func beParent() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	run := func(script string) {
		_, err := Run(ctx, Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdout: os.Stdout})
		if err != nil {
			fmt.Println(err)
		}
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch verb, rest, _ := strings.Cut(lines.Text(), " "); verb {
		case "run":
			running.Go(func() { run(rest) })
		case "wait":
			run(rest)
			fmt.Println("done")
		case "record":
			Record(rest)
		case "watchdog":
			<-underWay.dog.up
			fmt.Println("watchdog", underWay.dog.pid)
		}
	}
	cancel()
	running.Wait()
}

// parent is a process that runs commands, and will be killed.
type parent struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startParent(t *testing.T) *parent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &parent{t: t, cmd: exec.CommandContext(t.Context(), self)}
	p.cmd.Env = append(os.Environ(), parentVariable+"=1", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell with a terminal does
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	// A pipe of our own: what the commands leave behind may hold it.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	p.cmd.Stdout, p.out = w, bufio.NewScanner(r)
	err = p.cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *parent) tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// said is the next line of output.
func (p *parent) said() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the parent has said all: %v", p.out.Err())
	}
	return p.out.Text()
}

// pids reads n process ids, a line each. None of them outlives the test.
func (p *parent) pids(n int) []int {
	p.t.Helper()
	var pids []int
	for range n {
		pids = append(pids, pidIn(p.t, p.said()))
	}
	p.t.Cleanup(func() {
		for _, pid := range pids {
			if alive(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return pids
}

func (p *parent) watchdog() int {
	p.t.Helper()
	p.tell("watchdog")
	pid := pidIn(p.t, strings.TrimPrefix(p.said(), "watchdog "))
	if pid == 0 { // a signal to it would go to this very test
		p.t.Fatal("there is no watchdog")
	}
	return pid
}

// kill does what nobody can prepare for, to the parent's whole group.
func (p *parent) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// finish is an orderly end.
func (p *parent) finish() {
	p.t.Helper()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatal(err)
	}
}

// wantGone waits until none of the processes is left.
func wantGone(t *testing.T, pids ...int) {
	t.Helper()
	left := func() []int {
		var left []int
		for _, pid := range pids {
			if alive(pid) {
				left = append(left, pid)
			}
		}
		return left
	}
	if !poll(promised, func() bool { return len(left()) == 0 }) {
		for _, pid := range left() {
			what, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			t.Errorf("process %d is alive: %s", pid, bytes.ReplaceAll(what, []byte{0}, []byte(" ")))
		}
	}
}

// What commands leave behind, each with the process id of it as its output.
var (
	child        = `sleep 1000 & echo $!; wait`
	stubborn     = `(trap '' TERM HUP INT; echo $(exec sh -c 'echo $PPID'); while :; do sleep 0.05; done) & wait`
	doubleForked = `(sleep 1000 & echo $!); exec sleep 1000`
	leaver       = `setsid sh -c 'trap "" TERM HUP INT; echo $$; while :; do sleep 0.05; done' & wait`
	nameless     = `env -i sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 0.05; done' & wait`
)

// leftovers are those that end with their run here.
func leftovers() []string {
	all := []string{child, stubborn, doubleForked, nameless}
	if _, err := exec.LookPath("setsid"); err == nil && runtime.GOOS == "linux" {
		all = append(all, leaver)
	}
	return all
}

func TestNothingOutlivesAKill(t *testing.T) {
	p := startParent(t)
	const n = 20
	for i := range n {
		p.tell("run " + leftovers()[i%len(leftovers())])
	}
	pids := p.pids(n)
	watchdog := p.watchdog()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT} {
		if err := syscall.Kill(watchdog, signal); err != nil {
			t.Fatal(err)
		}
	}
	p.kill()
	wantGone(t, append(pids, watchdog)...)
}

// TestWhatLeftAnEndedRunEndsWithItsProcess: what leaves its group on purpose stays
// when its run ends, and goes when the process does, in order or not. It does not
// hold the watchdog's pipe open, which is nobody else's.
func TestWhatLeftAnEndedRunEndsWithItsProcess(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid here")
	}
	for _, end := range []func(*parent){(*parent).kill, (*parent).finish} {
		p := startParent(t)
		left := filepath.Join(t.TempDir(), "left")
		p.tell("wait setsid sh -c 'echo $$; : >" + left + "; exec sleep 1000 >/dev/null' & until [ -e " + left + " ]; do sleep 0.01; done")
		pid := p.pids(1)[0]
		if got := p.said(); got != "done" {
			t.Fatal(got)
		}
		if !alive(pid) {
			t.Error("it was ended with its run")
		}
		watchdog := p.watchdog()
		end(p)
		wantGone(t, watchdog)
		if runtime.GOOS == "linux" {
			wantGone(t, pid)
		} else {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestNoProgramInheritsTheWatchdogsFiles(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("asks /proc")
	}
	sh(t, t.Context(), ":") // there is a watchdog from here on
	info, err := underWay.dog.pipe.Stat()
	if err != nil {
		t.Fatal(err)
	}
	pipe := fmt.Sprintf("pipe:[%d]", info.Sys().(*syscall.Stat_t).Ino)
	list := filepath.Base(underWay.list.file.Name())
	_, out := sh(t, t.Context(), "readlink /proc/$$/fd/*")
	if !strings.Contains(out, os.DevNull) || strings.Contains(out, pipe) || strings.Contains(out, list) {
		t.Errorf("a program has the files\n%s, of which %s and %s are the watchdog's", out, pipe, list)
	}
}

// TestDeadWatchdogIsReplaced: the next run starts another, which knows of the
// earlier runs.
func TestDeadWatchdogIsReplaced(t *testing.T) {
	p := startParent(t)
	p.tell("run " + stubborn)
	pids := p.pids(1)
	first := p.watchdog()
	_ = syscall.Kill(first, syscall.SIGKILL)
	wantGone(t, first)
	p.tell("wait :")
	if got := p.said(); got != "done" {
		t.Fatal(got)
	}
	if p.watchdog() == first {
		t.Fatal("the dead watchdog was not replaced")
	}
	p.kill()
	wantGone(t, pids...)
}

// listed is the content of this process's list.
func listed() string {
	text, _ := io.ReadAll(io.NewSectionReader(underWay.list.file, 0, 1<<20))
	return string(text)
}

func TestListDoesNotGrow(t *testing.T) {
	sh(t, t.Context(), ":")
	before := len(listed())
	for range 200 {
		sh(t, t.Context(), ":")
	}
	if text := listed(); strings.TrimSpace(text) != "" || len(text) != before || before == 0 {
		t.Errorf("%d bytes listed at first, now %d: %q", before, len(text), text)
	}
}

func TestListNamesMarkAndGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &lineWriter{}
	var want, got string
	w.line = func() {
		pid, marks, _ := strings.Cut(strings.TrimSpace(w.buf.String()), " ")
		want = marks[strings.LastIndex(marks, " ")+1:] + " " + pid + " "
		poll(promised, func() bool { got = listed(); return strings.Contains(got, want) })
		cancel()
	}
	script := []string{"sh", "-c", "echo $$ $CADRE_RUN; exec sleep 1000"}
	if _, err := Run(ctx, Command{Path: "/bin/sh", Args: script, Stdout: w}); err != nil {
		t.Fatal(err)
	}
	if want == "" || !strings.Contains(got, want) {
		t.Errorf("the list does not have %q:\n%s", want, got)
	}
}

// bark runs the watchdog's script to its end over a list with one line.
func bark(t *testing.T, base, line string) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(list)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", watchdogScript, "watchdog", base, list)
	cmd.ExtraFiles = []*os.File{file}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(list); err == nil {
		t.Error("the list is still there")
	}
}

// TestWatchdogKnowsItsOwn: a process group whose number went to somebody else is
// left alone.
func TestWatchdogKnowsItsOwn(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a group's number is all there is")
	}
	base := strings.Repeat("0a", baseLength/2)
	for _, tt := range []struct {
		env  string
		ends bool
	}{
		{"A=b", false},
		{markName + "=" + markOf(strings.Repeat("0b", baseLength/2), 1), false},
		{markName + "=" + markOf(base, 10), true}, // of a run that has ended
		{markName + "=" + markOf(base, 1), true},
	} {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		cmd.Env, cmd.SysProcAttr = []string{"LINES=a\nb", tt.env}, &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bark(t, base, fmt.Sprintf("%s %d", markOf(base, 1), cmd.Process.Pid))
		if alive(cmd.Process.Pid) == tt.ends {
			t.Errorf("%s: alive %v", tt.env, !tt.ends)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

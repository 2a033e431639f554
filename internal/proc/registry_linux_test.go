package proc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// files are the names in a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	if err := Sweep(dir); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	p := startParent(t)
	p.tell("record " + dir)
	var pids []int
	for _, script := range []string{child, stubborn, leaver} {
		p.tell("run " + script)
		pids = append(pids, p.pids(1)...)
	}
	left := filepath.Join(t.TempDir(), "left") // by a run that has ended
	p.tell("wait setsid sh -c 'echo $$; : >" + left + "; exec sleep 1000 >/dev/null' & until [ -e " + left + " ]; do sleep 0.01; done")
	pids = append(pids, p.pids(1)...)
	if got := p.said(); got != "done" {
		t.Fatal(got)
	}
	sweep := func() {
		if err := Sweep(dir); err != nil {
			t.Error(err)
		}
	}
	sweep()
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("process %d of a living parent was ended", pid)
		}
	}
	watchdog := p.watchdog()
	_ = syscall.Kill(watchdog, syscall.SIGSTOP) // a watchdog that is at work, as it were
	p.kill()
	sweep()
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("a watchdog's list was taken away: %q", got)
	}
	if !alive(pids[1]) {
		t.Error("a process that a watchdog looks after was ended")
	}
	_ = syscall.Kill(watchdog, syscall.SIGKILL)
	wantGone(t, watchdog)
	sweep()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("swept lists are left: %q", got)
	}
}

func TestSweepPassesOverForeignFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"text", "1-", "2-PATH", "3-PATH.1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(" \n=\nPATH\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil { // would end this very test, were PATH a mark
		t.Error(err)
	}
}

// TestWatchdogTakesItsListAway: after an orderly end nothing is left to sweep.
func TestWatchdogTakesItsListAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	p := startParent(t)
	p.tell("record " + dir)
	p.tell("wait :")
	if got := p.said(); got != "done" {
		t.Fatal(got)
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("the parent has the lists %q", got)
	}
	watchdog := p.watchdog()
	p.finish()
	wantGone(t, watchdog)
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

//go:build unix

package proc

import (
	_ "embed"
	"os"
	"syscall"
)

// watchdogScript is what the watchdog does. It is a shell script because a
// second process of ours would take many times its memory.
//
//go:embed watchdog.sh
var watchdogScript string

// watchdog is a shell that waits for the end of a pipe of which only this process
// holds the other end: it comes when this process dies, however it dies. Then
// it ends what the list names, and whatever else carries a mark of this process
// (Linux).
type watchdog struct {
	up   chan struct{} // closed when the shell has started, or could not be
	pid  int           // of the shell; 0 when it could not be started, or is dead
	pipe *os.File      // our end
}

// start starts the shell, in a session of its own: what the terminal sends to
// our group does not reach it. It gets none of our environment, and so no mark
// of a cadre that runs this one.
func (d *watchdog) start(base string, l *list) {
	defer close(d.up)
	input, pipe, err := os.Pipe() // close-on-exec: no program inherits them
	if err != nil {
		return
	}
	defer input.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		pipe.Close()
		return
	}
	defer null.Close()
	args := []string{"sh", "-c", watchdogScript, "cadre-watchdog", base, l.path}
	shell, err := os.StartProcess("/bin/sh", args, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Files: []*os.File{input, null, null, l.file},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		pipe.Close()
		return
	}
	d.pid, d.pipe = shell.Pid, pipe
	_ = shell.Release() // dead looks after it
}

// dead reports whether there is no such watchdog any more, without waiting. One
// that is just being started lives. Callers take turns.
func (d *watchdog) dead() bool {
	if d == nil {
		return true
	}
	select {
	case <-d.up:
	default:
		return false
	}
	if d.pid == 0 {
		return true
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(d.pid, &status, syscall.WNOHANG, nil); pid == 0 && err == nil {
		return false
	}
	d.pid = 0 // fetched: the number may go to somebody else
	d.pipe.Close()
	return true
}

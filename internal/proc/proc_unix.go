//go:build unix

package proc

import (
	"os"
	"syscall"
)

// terminateGroup asks the whole group of the program to end.
func terminateGroup(p *os.Process) { terminateRest(p.Pid) }

// terminateRest does so after the program itself has ended.
func terminateRest(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// groupAlive reports whether a process of the group is left. On macOS a group of
// zombies answers EPERM; on Linux it seems alive until the zombies' new parent reaps
// them, which the first process of a container may do late or never.
func groupAlive(pid int) bool { return syscall.Kill(-pid, 0) == nil && !onlyZombies(pid) }

func exitOf(state *os.ProcessState) Exit {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Exit{Code: 128 + int(status.Signal()), Signal: status.Signal().String()}
	}
	return Exit{Code: state.ExitCode()}
}

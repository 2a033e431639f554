package proc

import (
	"os"
	"syscall"
)

// separate keeps Ctrl+C of our console from the program. Windows has no process
// groups in our sense: the program itself is killed, what it started is not.
func separate() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminateGroup kills: there is no way to ask.
func terminateGroup(p *os.Process) { _ = p.Kill() }

func terminateRest(int) {}

func killGroup(int) {}

func killMarked(...string) {}

func groupAlive(int) bool { return false }

func exitOf(state *os.ProcessState) Exit { return Exit{Code: state.ExitCode()} }

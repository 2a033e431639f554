//go:build unix && !linux

package proc

import "syscall"

// separate gives the program a session of its own: a process group that can be
// killed, and no terminal that it could read passwords from or write to.
func separate() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killMarked does nothing: other processes' environments cannot be relied on
// here.
func killMarked(...string) {}

// onlyZombies is never asked: the group does not look alive then.
func onlyZombies(int) bool { return false }

// newRegistry makes none: without environments to look at, what a list named
// could not be told from what has got the same process ids since.
func newRegistry(dir, base string) *list { return nil }

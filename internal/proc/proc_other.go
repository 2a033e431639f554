//go:build unix && !linux

package proc

import "syscall"

// separate gives the program a session of its own: a process group that can be
// killed, and no terminal that it could read passwords from or write to.
func separate() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killMarked does nothing: other processes' environments cannot be relied on
// here.
func killMarked(...string) {}

// onlyZombies is not needed: a group of zombies does not answer here.
func onlyZombies(int) bool { return false }

// newRegistry makes none: without reading environments, the processes of a list
// cannot be distinguished from others that got the same ids later.
func newRegistry(dir, base string) *list { return nil }

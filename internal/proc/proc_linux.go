package proc

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// separate gives the program a session of its own: a process group that can be
// killed, and no terminal that it could read passwords from or write to. When
// this process dies, it is killed.
func separate() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// killMarked kills the processes that carry one of the marks in their environment,
// and waits a moment until they are dead. It searches until none is found: one of
// them may start another in the meantime.
func killMarked(marks ...string) {
	killed := map[int]bool{}
	poll(leftoverGrace, func() bool {
		found := marked(marks...)
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed[pid] = true
		}
		for pid := range killed {
			if state, _ := statOf(pid); state != 0 && state != 'Z' && state != 'X' {
				return false
			}
		}
		return len(found) == 0
	})
}

// marked lists the processes whose environment at their start had one of the
// marks. A dead process has no environment, and that of another user cannot be
// read.
func marked(marks ...string) []int {
	if len(marks) == 0 {
		return nil
	}
	var pids []int
	for _, pid := range processes() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && slices.ContainsFunc(marks, func(mark string) bool { return bytes.Contains(env, []byte(mark)) }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// onlyZombies reports whether no process of the group runs any more. Without
// /proc it says no.
func onlyZombies(group int) bool {
	pids := processes()
	for _, pid := range pids {
		if state, of := statOf(pid); of == group && state != 'Z' && state != 'X' {
			return false
		}
	}
	return len(pids) > 0
}

// statOf is the state of a process and its group: proc_pid_stat(5). The state
// is 0 when there is no such process.
func statOf(pid int) (state byte, group int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// pid (name) state ppid pgrp …. The name may hold anything, so the last
	// parenthesis counts.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return 0, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return fields[0][0], group
}

// processes lists the ids of all processes that can be seen.
func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

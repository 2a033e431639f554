package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Record has this process keep the list of what it is running as a file in the
// folder dir, for [Sweep] to find should this process die together with its
// watchdog. Folder and file are made with the first run; Record counts before
// it, and the first call only, because the list is one for the whole process.
// Where the file cannot be made, programs run all the same. Only on Linux are
// processes known again later; elsewhere Record does nothing.
func Record(dir string) {
	underWay.mu.Lock()
	defer underWay.mu.Unlock()
	if underWay.dir == "" {
		underWay.dir = dir
	}
}

// newRegistry makes a list in the folder dir, named after the base of the marks, by
// which processes are found that left a run which is no longer in the list. It is
// locked for as long as this process or its watchdog lives, which has it open too. So
// a list that is not locked is of a process whose watchdog died before its work was
// done. It returns nil when the list cannot be made.
func newRegistry(dir, base string) *list {
	if os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	for range 3 { // a sweep may remove it before it is locked
		path := filepath.Join(dir, fmt.Sprintf("%d-%s", os.Getpid(), base))
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil
		}
		held := lock(file)
		mine, err := file.Stat()
		now, errNow := os.Lstat(path)
		if held && err == nil && errNow == nil && os.SameFile(mine, now) {
			return &list{file: file, path: path}
		}
		os.Remove(path)
		file.Close()
	}
	return nil
}

// lock locks the file if that is possible at once. It is false where there are no
// locks.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// Sweep ends what processes have left running that recorded it in the folder dir
// (see [Record]) and died together with their watchdogs. What it ends is known by
// the mark in its environment, so that a process id which has gone to somebody
// else, a restart of the machine, or a folder shared with another machine does
// no harm. An absent folder costs one call of the system; when there is something
// to end, Sweep blocks for [DefaultGrace] and a moment. It does nothing outside
// Linux. The error is about reading dir.
func Sweep(dir string) error {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var marks []string
	var left []*os.File
	for _, name := range names {
		if !name.Type().IsRegular() {
			continue
		}
		file, err := os.OpenFile(filepath.Join(dir, name.Name()), os.O_RDWR, 0)
		if err != nil {
			continue // gone in the meantime, or not ours
		}
		if !lock(file) { // its process or its watchdog lives
			file.Close()
			continue
		}
		left = append(left, file)
		if base, ok := baseOf(name.Name()); ok {
			marks = append(marks, base+".")
		}
	}
	endMarked(marks)
	for _, file := range left { // still locked: no other sweep handles it
		os.Remove(file.Name())
		file.Close()
	}
	return err
}

// baseOf is what the marks begin with of the process whose list has this name.
func baseOf(list string) (base string, ok bool) {
	_, base, _ = strings.Cut(list, "-")
	return base, isMark(markOf(base, 1))
}

// endMarked asks the processes with these marks to end, and kills them after the
// grace.
func endMarked(marks []string) {
	found := marked(marks...)
	if len(found) == 0 {
		return
	}
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	if !poll(DefaultGrace, func() bool { return len(marked(marks...)) == 0 }) {
		killMarked(marks...)
	}
}

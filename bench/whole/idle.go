package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// idleRows weighs the built program with a team of in-process teammates that had
// one turn each and are idle, against the same program with a team of none.
func idleRows(ctx context.Context, b *bench, _ bool) ([]row, error) {
	c, err := b.leadCrew(ctx, "idle", "--teammate-mode", "in-process")
	if err != nil {
		return nil, err
	}
	defer c.end()
	alone, err := weigh(ctx, c.lead.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	const teammates, together = 1000, 50 // together: in one answer of the model
	for from := 0; from < teammates; from += together {
		if err := c.start(ctx, from, from+together); err != nil {
			return nil, err
		}
	}
	busy, err := weigh(ctx, c.lead.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	waited, err := idleTime(ctx, c.lead.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	full, err := weigh(ctx, c.lead.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	memory := bytesWithin(fmt.Sprintf("memory of the process with %d idle teammates", teammates), full.memory, 80, mebibyte, "MiB")
	memory.limit = fmt.Sprintf("%.1f MiB", float64(alone.memory)/mebibyte)
	return []row{
		memory,
		bytesWithin("the same for each teammate", (full.memory-alone.memory)/int64(teammates), 250, 1<<10, "KiB"),
		{what: "memory at the end of their last turn", cadre: fmt.Sprintf("%.1f MiB", float64(busy.memory)/mebibyte)},
		{what: "open files", cadre: strconv.Itoa(full.files), limit: strconv.Itoa(alone.files)},
		{what: "threads", cadre: strconv.Itoa(full.threads), limit: strconv.Itoa(alone.threads)},
		{what: fmt.Sprintf("CPU time to start %d and to be idle", teammates), cadre: ms(busy.cpu - alone.cpu)},
		{what: fmt.Sprintf("CPU time of the next %v of waiting", idleWait), cadre: ms(waited)},
	}, nil
}

// idleWait is how long a team is watched that has nothing to do.
const idleWait = 10 * time.Second

// idleTime is the CPU time that a process spends while it has nothing to do.
func idleTime(ctx context.Context, pid int) (time.Duration, error) {
	before, err := cpuTime(ctx, pid)
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(idleWait):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	after, err := cpuTime(ctx, pid)
	return after - before, err
}

// weight is what a process holds at a moment.
type weight struct {
	memory  int64 // resident, bytes
	cpu     time.Duration
	files   int // 0 where the system does not list them
	threads int // likewise
}

func weigh(ctx context.Context, pid int) (weight, error) {
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return weight{}, fmt.Errorf("ask for the memory of process %d: %w", pid, err)
	}
	kibibytes, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return weight{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	proc := fmt.Sprintf("/proc/%d", pid)
	cpu, err := cpuTime(ctx, pid)
	if err != nil {
		return weight{}, err
	}
	files, _ := os.ReadDir(filepath.Join(proc, "fd"))
	threads, _ := os.ReadDir(filepath.Join(proc, "task"))
	return weight{kibibytes << 10, cpu, len(files), len(threads)}, nil
}

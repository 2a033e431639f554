//go:build !linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// cpuTime is what a process has spent so far, as ps tells it: minutes, and
// seconds with two decimals.
func cpuTime(ctx context.Context, pid int) (time.Duration, error) {
	out, err := exec.CommandContext(ctx, "ps", "-o", "time=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("ask for the time of process %d: %w", pid, err)
	}
	minutes, seconds, _ := strings.Cut(strings.TrimSpace(string(out)), ":")
	took, err := time.ParseDuration(minutes + "m" + seconds + "s")
	if err != nil {
		return 0, fmt.Errorf("read the time of process %d: %w", pid, err)
	}
	return took, nil
}

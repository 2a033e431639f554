package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// machine names the computer, since no figure means anything without it.
func machine() string {
	return fmt.Sprintf("%s, %d cores, %s/%s%s, %s", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, kernel(), runtime.Version())
}

func processor() string {
	if runtime.GOOS == "darwin" {
		out, err := exec.Command("sysctl", "-n", "machdep.cpu.brand_string").Output()
		if err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return " " + strings.TrimSpace(string(release))
}

// load is how many programs want a core, the mean of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}

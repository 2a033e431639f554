package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// program is a built binary with its arguments and environment.
type program struct {
	path string
	args []string
	env  []string
	dir  string
}

// execution is one run of a program from fork to exit.
type execution struct {
	Start   time.Time
	Took    time.Duration
	PeakRSS int64 // bytes; 0 where the system does not say

	stdout string
}

// launchVerb makes this program a launcher: it forks the program after it,
// waits, and writes an [execution] to a file. On Linux a child's peak memory
// begins with that of the process that forked it, and the harness, with the
// mock model in it, is bigger than what it measures; the launcher is not.
const launchVerb = "launch"

func launch(report, path string, args []string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	start := time.Now()
	err := cmd.Run()
	e := execution{Start: start, Took: time.Since(start)}
	if err != nil {
		return err
	}
	e.PeakRSS = peakRSS(cmd.ProcessState)
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return os.WriteFile(report, text, 0o600)
}

// execute runs a program to its end. One that fails is an error with what it
// said.
func execute(ctx context.Context, p program) (execution, error) {
	self, err := os.Executable()
	if err != nil {
		return execution{}, err
	}
	report := filepath.Join(filepath.Dir(p.path), "launched.json")
	cmd := exec.CommandContext(ctx, self, append([]string{launchVerb, report, p.path}, p.args...)...)
	cmd.Dir, cmd.Env = p.dir, p.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return execution{}, fmt.Errorf("run %s: %w: %s", filepath.Base(p.path), err, strings.TrimSpace(stderr.String()))
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return execution{}, err
	}
	e := execution{stdout: stdout.String()}
	err = json.Unmarshal(text, &e)
	return e, err
}

// build compiles a command of this module the way a release is built.
func build(ctx context.Context, pkg, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, pkg)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return nil
}

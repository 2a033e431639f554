package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Checks is the outcome of the project's own checks.
type Checks struct {
	Passed  bool          `json:"passed"`
	Results []CheckResult `json:"results"`
	Changed []string      `json:"changed,omitempty"` // of the checks that were delivered: a change fails them
	Output  string        `json:"output"`            // of sh check.sh
}

// CheckResult is one check.
type CheckResult struct {
	Part string `json:"part"`
	OK   bool   `json:"ok"`
	What string `json:"what"` // and, of a failed one, what came instead
}

// Failed lists the checks that fail.
func (c Checks) Failed() []CheckResult {
	var failed []CheckResult
	for _, r := range c.Results {
		if !r.OK {
			failed = append(failed, r)
		}
	}
	return failed
}

// Check runs the checks of the project in dir in a process, and compares them with
// those that were delivered. It blocks until they have run; an error means that they
// did not run.
func Check(ctx context.Context, dir string) (Checks, error) {
	changed, err := changedChecks(dir)
	if err != nil {
		return Checks{}, fmt.Errorf("check the demo project: %w", err)
	}
	exit, out, err := run(ctx, dir, "sh", []string{"check.sh"}, bareEnv())
	if err == nil && exit.Killed {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Checks{}, fmt.Errorf("check the demo project: %w", err)
	}
	c := Checks{Results: parseChecks(out), Changed: changed, Output: out}
	c.Passed = exit.Code == 0 && len(c.Results) > 0 && len(c.Failed()) == 0 && len(changed) == 0
	return c, nil
}

// parseChecks reads the lines "ok PART WHAT" and "FAIL PART WHAT".
func parseChecks(out string) []CheckResult {
	results := []CheckResult{}
	for line := range strings.Lines(out) {
		word, rest, _ := strings.Cut(line, " ")
		if word != "ok" && word != "FAIL" {
			continue
		}
		part, what, _ := strings.Cut(strings.TrimSpace(rest), " ")
		results = append(results, CheckResult{part, word == "ok", strings.TrimSpace(what)})
	}
	return results
}

// changedChecks lists the delivered checks that are not as they were.
func changedChecks(dir string) ([]string, error) {
	var changed []string
	err := delivered(func(path string, want []byte) error {
		if path != "check.sh" && !strings.HasPrefix(path, "tests/") && !strings.HasPrefix(path, "ledger/") {
			return nil
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if err != nil || !bytes.Equal(got, want) {
			changed = append(changed, path)
		}
		return nil
	})
	return changed, err
}

// bareEnv is the part of this process's environment that sh needs. It has no keys,
// because what a model wrote runs with it.
func bareEnv() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "TMPDIR", "TMP", "TEMP", "SYSTEMROOT"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

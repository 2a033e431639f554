package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme runs the README's example as it is written, from the root of a checkout,
// and looks for what a newcomer needs word for word.
func TestReadme(t *testing.T) {
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(checkout, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	for _, want := range []string{
		"git clone https://github.com/cadre-dev/cadre && cd cadre\n", "go run ./cmd/cadre demo ", "go test ./... ", "Go 1.26",
		"go run ./cmd/cadre -p ", "command not found", "go run ./cmd/cadre doctor",
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("the README does not say %q", want)
		}
	}

	_, rest, ok := strings.Cut(readme, "\n    $ go run ./cmd/cadre -p ")
	if !ok {
		t.Fatal("the README has no example of -p")
	}
	example, _, _ := strings.Cut(rest, "\n\n")
	line, shown, _ := strings.Cut(example, "\n")
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), sh, "-c", "cadre -p "+line)
	cmd.Dir, cmd.Env = checkout, environment(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	lines := strings.Split(strings.ReplaceAll(shown, "    ", ""), "\n")
	if got := strings.TrimSpace(stdout.String()); got != lines[len(lines)-1] {
		t.Errorf("the answer is %q, the README shows %q", got, lines[len(lines)-1])
	}
	for _, want := range []string{lines[0], "cost: unknown price, 2 rounds, "} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr has no %q:\n%s", want, &stderr)
		}
	}
}

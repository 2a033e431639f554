package pane

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/proc"
)

// answerTime is how long a terminal's command line may run; usually it needs
// milliseconds.
const answerTime = 10 * time.Second

// program is a command line that controls a terminal.
type program struct {
	path    string
	env     []string
	through []string // the beginning of a command line that runs it; nil: it is run itself
}

// failure is a run that ended with an error of the program's own.
type failure struct {
	name   string
	args   []string
	code   int
	stderr string
}

func (f *failure) Error() string {
	said := f.stderr
	if said == "" {
		said = fmt.Sprintf("exit code %d", f.code)
	}
	return f.name + " " + verb(f.args) + ": " + said
}

// verb is the first argument that is neither an option nor the socket.
func verb(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-S" || args[i] == "-L" || args[i] == "-f":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// run runs the program and returns what it printed, without the last line end.
// What the program reports as an error is a [*failure].
func (p program) run(ctx context.Context, args ...string) (string, error) {
	name := filepath.Base(p.path)
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("%s does not answer", name))
	defer cancel()
	var stdout, stderr bytes.Buffer
	line := slices.Concat(p.through, []string{p.path}, args)
	exit, err := proc.Run(ctx, proc.Command{Path: line[0], Args: line, Env: p.env, Stdout: &stdout, Stderr: &stderr})
	switch {
	case err != nil:
		return "", fmt.Errorf("run %s: %w", name, err)
	case exit.Killed:
		return "", fmt.Errorf("%s %s: %w", name, verb(args), context.Cause(ctx))
	case exit.Code != 0:
		return "", &failure{name, args, exit.Code, strings.TrimSpace(stderr.String())}
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// variable is the value of a variable in an environment of the form of
// [os.Environ]; the last entry counts.
func variable(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if n, value, ok := strings.Cut(env[i], "="); ok && n == name {
			return value
		}
	}
	return ""
}

// lastLines are the last n lines of a screen that are not empty at its end.
func lastLines(screen string, n int) string {
	lines := strings.Split(strings.TrimRight(screen, " \t\r\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

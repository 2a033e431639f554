package teammate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/provider"
)

// Executable is the program that runs teammates in panes.
type Executable struct {
	Path string
	Err  error // it cannot be run

	variable string // the one that names it; "" when it is this program
}

// The variables that name another program: one that takes cadre's flags, and one
// that takes Claude Code's.
const (
	ownCommand    = "CADRE_TEAMMATE_COMMAND"
	claudeCommand = "CLAUDE_CODE_TEAMMATE_COMMAND"
)

// FindExecutable finds the program for teammates: another one, if the environment names
// it, else this one. Relative paths are in cwd.
func FindExecutable(getenv func(string) string, cwd string) Executable {
	for _, variable := range []string{ownCommand, claudeCommand} {
		name := strings.TrimSpace(getenv(variable))
		if name == "" {
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			return Executable{name, fmt.Errorf("%s names %q, which cannot be run: give the path of a program, without arguments, or unset it", variable, name), variable}
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		return Executable{Path: path, variable: variable}
	}
	self, err := os.Executable()
	if err != nil {
		self = "cadre"
	}
	return Executable{Path: self}
}

// IsOurs reports whether the program is this one.
func (e Executable) IsOurs() bool { return e.variable == "" }

// IsClaude reports whether the program is Claude Code, which does not know all of our
// flags.
func (e Executable) IsClaude() bool { return e.variable == claudeCommand }

// Model is the name that the program gets for a model: Claude Code has those of
// Anthropic only, and then one of its own choice ("") is better than none.
func (e Executable) Model(name string) string {
	info, known := provider.Lookup(name)
	if e.IsClaude() && !strings.HasPrefix(name, "claude") && (!known || info.API != provider.Anthropic) {
		return ""
	}
	return name
}

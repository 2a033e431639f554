package cadre

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/provider"
)

// mateProgram is the program that runs a teammate in a pane.
type mateProgram struct {
	path string
	from string // the variable that names it; "" when it is this one
	err  error  // it cannot be run
}

// The variables that name another program: one that takes cadre's flags, and one
// that takes Claude Code's.
const (
	mateCommand       = "CADRE_TEAMMATE_COMMAND"
	claudeMateCommand = "CLAUDE_CODE_TEAMMATE_COMMAND"
)

// mateProgram finds the program of a teammate: another one, if the person names
// it, else this one.
func (r *Runtime) mateProgram() mateProgram {
	for _, variable := range []string{mateCommand, claudeMateCommand} {
		name := strings.TrimSpace(r.cfg.Getenv(variable))
		if name == "" {
			continue
		}
		path, err := exec.LookPath(name)
		if err != nil {
			return mateProgram{name, variable, fmt.Errorf("%s names %q, which cannot be run: give the path of a program, without arguments, or unset it", variable, name)}
		}
		return mateProgram{path: r.cfg.absolute(path), from: variable}
	}
	self, err := os.Executable()
	if err != nil {
		self = "cadre"
	}
	return mateProgram{path: self}
}

// readyFor makes a program able to find its team: Claude Code looks for it under its
// own root.
func (r *Runtime) readyFor(ctx context.Context, p mateProgram, team string) error {
	root := layout.OfClaude(r.cfg.Getenv)
	if p.err != nil || p.from == "" || root == "" {
		return p.err
	}
	return r.stores.showTeam(ctx, team, root)
}

// inherited are the flags with which a teammate that has a process of its own works
// under the same rules, and is told the same, as one in its lead's process. Those that
// narrow what it may do go to every program, even to one that may not know them: it
// had better not start than start without.
func (p mateProgram) inherited(c *Config) []string {
	var flags []string
	add := func(when bool, words ...string) {
		if when {
			flags = append(flags, words...)
		}
	}
	add(len(c.AllowedTools) > 0, "--allowedTools", strings.Join(c.AllowedTools, ","))
	add(len(c.DisallowedTools) > 0, "--disallowedTools", strings.Join(c.DisallowedTools, ","))
	add(c.Tools != nil, "--tools", strings.Join(c.Tools, ","))
	for _, dir := range c.AddDirs {
		add(true, "--add-dir", c.absolute(dir))
	}
	if settings := strings.TrimSpace(c.Settings); settings != "" {
		if !strings.HasPrefix(settings, "{") {
			settings = c.absolute(settings)
		}
		add(true, "--settings", settings)
	}
	if c.SettingSources != nil {
		add(true, "--setting-sources", *c.SettingSources)
	}
	if c.SystemPrompt != nil {
		add(true, "--system-prompt", *c.SystemPrompt)
	}
	add(c.AppendSystemPrompt != "", "--append-system-prompt", c.AppendSystemPrompt)
	if p.from != claudeMateCommand { // which knows neither, or not for a conversation
		add(c.TrustProject, "--trust")
		add(c.NoPersistence, "--no-session-persistence")
	}
	return flags
}

// model is what the program is told of a model: Claude Code has those of Anthropic
// only, and then one of its own choice is better than none.
func (p mateProgram) model(name string) string {
	info, known := provider.Lookup(name)
	if p.from == claudeMateCommand && !strings.HasPrefix(name, "claude") && (!known || info.API != provider.Anthropic) {
		return ""
	}
	return name
}

// mateEnv is the environment of a teammate: that of this process, and the state root
// when that is another than the environment says.
func (r *Runtime) mateEnv() []string {
	env := os.Environ()
	if found, err := layout.Find(os.Getenv); err == nil && found == r.root {
		return env
	}
	return append(env, "CADRE_HOME="+string(r.root))
}

// absolute is a path as it is meant in the working folder.
func (c *Config) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Cwd, path)
}

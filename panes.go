package cadre

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/teammate"
)

// backendOptions say where the teammates of this process may run.
func (r *Runtime) backendOptions(conversations teammate.Conversations) teammate.BackendOptions {
	return teammate.BackendOptions{
		Mode:        r.teammateMode(),
		Environment: pane.Environment{Vars: os.Environ(), Server: "cadre-" + r.info.SessionID[:8]},
		Records:     r.stores.records,
		Panes: func() teammate.PanesConfig {
			program := teammate.FindExecutable(r.cfg.Getenv, r.cfg.Cwd)
			return teammate.PanesConfig{
				Dir: filepath.Join(r.cfg.Root.SideDir(r.cfg.Cwd, r.info.SessionID), "starts"),
				Program: teammate.Program{
					Command: []string{program.Path}, Env: r.teammateEnv(), Flags: r.cfg.teammateFlags(program), Model: program.Model,
					Mode: r.mainMode, Resume: conversations.MakeMain,
					Ready: func(ctx context.Context, name string) error { return r.readyFor(ctx, program, name) },
				},
				PaneStores: teammate.PaneStores{
					Rosters: r.stores.teams, Mail: r.stores.mail, Records: r.stores.records, Presence: r.stores.presence,
				},
			}
		},
	}
}

// teammateMode is where the person wants teammates to run. Without a person in front,
// panes are only for those who ask for them, in the settings by name.
func (r *Runtime) teammateMode() string {
	if r.cfg.TeammateMode != "" {
		return r.cfg.TeammateMode
	}
	if mode := r.settings.TeammateMode; mode != pane.Auto || r.cfg.Interactive {
		return mode
	}
	return pane.InProcess
}

// readyFor makes a program able to find its team: Claude Code looks for it under its
// own root.
func (r *Runtime) readyFor(ctx context.Context, program teammate.Executable, team string) error {
	root := layout.OfClaude(r.cfg.Getenv)
	if program.Err != nil || program.IsOurs() || root == "" {
		return program.Err
	}
	return r.stores.showTeam(ctx, team, root)
}

// teammateFlags are the flags with which a teammate in a process of its own works under
// the same rules, and gets the same instructions, as one in its lead's process. Those
// that narrow what it may do go to every program, even to one that may not know them: it
// had better not start than start without.
func (c *Config) teammateFlags(program teammate.Executable) []string {
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
	if !program.IsClaude() { // which knows neither, or not for a conversation
		add(c.TrustProject, "--trust")
		add(c.NoPersistence, "--no-session-persistence")
	}
	return flags
}

// teammateEnv is the environment of a teammate: that of this process, and the state root
// when that is another than the environment says.
func (r *Runtime) teammateEnv() []string {
	env := os.Environ()
	if found, err := layout.Find(os.Getenv); err == nil && found == r.cfg.Root {
		return env
	}
	return append(env, "CADRE_HOME="+string(r.cfg.Root))
}

// absolute is a path as it is meant in the working folder.
func (c *Config) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Cwd, path)
}

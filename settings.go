package cadre

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/policy"
	"github.com/cadre-dev/cadre/prompt"
)

// loadSettings reads the settings files; what is wrong in them is reported in the
// warnings.
func (r *Runtime) loadSettings() error {
	if err := r.cfg.keepSettings(); err != nil {
		return err
	}
	options := r.cfg.settingsFiles()
	if r.cfg.SettingSources != nil {
		options.Scopes, _ = config.ParseScopes(*r.cfg.SettingSources) // checked when the Config was completed
	}
	effective, warnings := config.Load(options)
	if err := checkFlag(effective, warnings); err != nil {
		return err
	}
	r.settings = effective.Settings
	for _, w := range warnings {
		r.info.Warnings = append(r.info.Warnings, w.String())
	}
	r.info.Warnings = append(r.info.Warnings, r.cfg.missingTools()...)
	return nil
}

// settingsFiles says which settings files are this runtime's.
func (c *Config) settingsFiles() config.Options {
	return config.Options{
		Root: c.Root, Home: c.home(), Project: c.Cwd, Flag: c.Settings, TrustProject: c.TrustProject,
	}
}

// keepSettings keeps settings that come through a pipe: they can be read once only,
// and teammates in panes are to have them too.
func (c *Config) keepSettings() error {
	path := strings.TrimSpace(c.Settings)
	if path == "" || strings.HasPrefix(path, "{") {
		return nil
	}
	info, err := os.Stat(c.absolute(path))
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil // what is wrong with a file is reported with all others
	}
	text, err := os.ReadFile(c.absolute(path))
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	c.Settings = string(text)
	return nil
}

func (c *Config) home() string { return c.Getenv("HOME") }

// systemPrompt assembles the system prompt of every agent of the tree.
func (r *Runtime) systemPrompt() []string {
	home := r.cfg.home()
	users := []string{string(r.cfg.Root)}
	if home != "" {
		users = slices.Compact([]string{filepath.Join(home, ".claude"), string(r.cfg.Root)})
	}
	files, warnings := prompt.Instructions(prompt.Places{Cwd: r.cfg.Cwd, Users: users, Home: home, Denied: r.sessions.policy.ReadDenied})
	r.info.Warnings = append(r.info.Warnings, warnings...)
	return prompt.System(prompt.Options{
		Cwd: r.cfg.Cwd, AddDirs: r.cfg.AddDirs, Platform: runtime.GOOS, Git: r.sessions.line.GitBranch != "",
		Date: time.Now().Format(time.DateOnly), Custom: r.cfg.SystemPrompt, Append: r.cfg.AppendSystemPrompt,
		Instructions: files,
	})
}

// makePolicy puts rules, folders and mode together from flags and settings.
func (r *Runtime) makePolicy() error {
	p, warnings, err := policy.New(policy.Options{
		Root: r.cfg.Root, Cwd: r.cfg.Cwd, Home: r.cfg.home(), SideDir: r.cfg.Root.SideDir(r.cfg.Cwd, r.info.SessionID), Settings: r.settings,
		Mode: r.cfg.Mode, SkipPermissions: r.cfg.SkipPermissions, Allowed: r.cfg.AllowedTools, Disallowed: r.cfg.DisallowedTools,
		AddDirs: r.cfg.AddDirs,
	})
	if err != nil {
		return err
	}
	r.sessions.policy = p
	r.info.Warnings = append(r.info.Warnings, warnings...)
	return nil
}

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
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/prompt"
)

// loadSettings reads the settings files; what is wrong in them is told in the
// warnings.
func (r *Runtime) loadSettings() error {
	if err := r.cfg.keepSettings(); err != nil {
		return err
	}
	options := r.settingsFiles()
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
func (r *Runtime) settingsFiles() config.Options {
	return config.Options{
		Root: r.root, Home: r.home(), Project: r.cfg.Cwd, Flag: r.cfg.Settings, TrustProject: r.cfg.TrustProject,
	}
}

// keepSettings takes in settings that come through a pipe: they can be read once only,
// and teammates in panes are to have them too.
func (c *Config) keepSettings() error {
	path := strings.TrimSpace(c.Settings)
	if path == "" || strings.HasPrefix(path, "{") {
		return nil
	}
	info, err := os.Stat(c.absolute(path))
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil // what is wrong with a file is told with all others
	}
	text, err := os.ReadFile(c.absolute(path))
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	c.Settings = string(text)
	return nil
}

func (r *Runtime) home() string { return r.cfg.Getenv("HOME") }

// systemPrompt assembles what every agent of the tree is told.
func (r *Runtime) systemPrompt() []string {
	home := r.home()
	users := []string{string(r.root)}
	if home != "" {
		users = slices.Compact([]string{filepath.Join(home, ".claude"), string(r.root)})
	}
	files, warnings := prompt.Instructions(prompt.Places{Cwd: r.cfg.Cwd, Users: users, Home: home, Denied: r.policy.ReadDenied})
	r.info.Warnings = append(r.info.Warnings, warnings...)
	return prompt.System(prompt.Options{
		Cwd: r.cfg.Cwd, AddDirs: r.cfg.AddDirs, Platform: runtime.GOOS, Git: r.line.GitBranch != "",
		Date: time.Now().Format(time.DateOnly), Custom: r.cfg.SystemPrompt, Append: r.cfg.AppendSystemPrompt,
		Instructions: files,
	})
}

// makePolicy puts rules, folders and mode together from flags and settings.
func (r *Runtime) makePolicy() error {
	p := permission.Policy{Names: make(map[string]string)}
	named := func(path string) string {
		real := symlink.Follow(path)
		inRealFolder := filepath.Join(symlink.Follow(filepath.Dir(path)), filepath.Base(path))
		for _, name := range []string{path, inRealFolder} {
			if name != "" && name != real {
				p.Names[name] = real
			}
		}
		return real
	}
	if home := r.home(); home != "" {
		p.Home = named(home)
	}
	p.Folders = []string{named(r.cfg.Cwd)}
	p.Readable = []string{named(r.root.SideDir(r.cfg.Cwd, r.info.SessionID))}
	for _, root := range r.stateRoots() {
		p.StateRoots = append(p.StateRoots, named(root))
	}
	for _, dir := range r.cfg.AddDirs {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(r.cfg.Cwd, dir)
		}
		p.Folders = append(p.Folders, named(dir))
	}
	for _, dir := range r.settings.Permissions.Directories {
		p.Folders = append(p.Folders, named(dir.Path))
	}
	mode := r.cfg.Mode
	if mode == "" {
		mode = r.settings.Permissions.DefaultMode
	}
	if r.cfg.SkipPermissions {
		mode = string(permission.Bypass)
	}
	var err error
	if p.Mode, err = permission.ParseMode(mode); err != nil {
		return err
	}
	if p.Allow, err = r.rules(r.cfg.AllowedTools, "--allowedTools", r.settings.Permissions.Allow); err != nil {
		return err
	}
	if p.Ask, err = r.rules(nil, "", r.settings.Permissions.Ask); err != nil {
		return err
	}
	if p.Deny, err = r.rules(r.cfg.DisallowedTools, "--disallowedTools", r.settings.Permissions.Deny); err != nil {
		return err
	}
	r.policy = p
	return nil
}

// rules parses those of a flag, where an error is the caller's, and those of
// settings files, where it is a warning.
func (r *Runtime) rules(flags []string, flag string, fromFiles []config.Rule) ([]permission.SourcedRule, error) {
	var rules []permission.SourcedRule
	for _, f := range fromFiles {
		rule, err := permission.ParseRule(f.Text)
		if err != nil {
			r.info.Warnings = append(r.info.Warnings, f.From.String()+": "+err.Error())
			continue
		}
		rules = append(rules, permission.SourcedRule{Rule: rule, Source: f.From.String(), Base: symlink.Follow(f.From.Base)})
	}
	for _, text := range flags {
		rule, err := permission.ParseRule(text)
		if err != nil {
			return nil, err
		}
		rules = append(rules, permission.SourcedRule{Rule: rule, Source: flag})
	}
	return rules, nil
}

// stateRoots are the folders whose teams and tasks no agent may write to.
func (r *Runtime) stateRoots() []string {
	roots := []string{string(r.root)}
	if home := r.home(); home != "" {
		roots = append(roots, filepath.Join(home, ".claude"))
	}
	return roots
}

// readDenied reports whether a rule denies reading a resolved path.
func (r *Runtime) readDenied(path string) bool {
	policy := r.policy
	if granted := r.tree.Granted(); len(granted) > 0 {
		policy = policy.With(granted)
	}
	_, denied := policy.ReadDenied(path)
	return denied
}

// childEnv is the environment of the commands that agents run: that of this
// process and what the settings add.
func (r *Runtime) childEnv() []string {
	if len(r.settings.Env) == 0 {
		return nil
	}
	env := os.Environ()
	for name, value := range r.settings.Env {
		env = append(env, name+"="+value)
	}
	return env
}

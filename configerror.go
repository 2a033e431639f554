package cadre

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/internal/near"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider/scripted"
	"github.com/cadre-dev/cadre/tool/builtin"
)

// ConfigError is a [Config] that cannot be run as it was meant. [Open] returns it
// before anything has been started or stored.
type ConfigError struct {
	Flag string   // the command-line flag for the value: "--tools"
	Near []string // what may have been meant, nearest first
	Err  error
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Flag + ": " + e.Err.Error() }

// Unwrap implements the interface of [errors.As].
func (e *ConfigError) Unwrap() error { return e.Err }

// check refuses values that would otherwise be dropped without a word.
func (c *Config) check() error {
	if c.SettingSources != nil {
		if _, err := config.ParseScopes(*c.SettingSources); err != nil {
			return &ConfigError{Flag: "--setting-sources", Err: err}
		}
	}
	// A teammate works on when one of its lead's folders has been removed meanwhile.
	for _, dir := range c.AddDirs {
		if err := c.checkFolder(dir); err != nil && c.Teammate == nil {
			return &ConfigError{Flag: "--add-dir", Err: err}
		}
	}
	if _, err := permission.ParseMode(c.Mode); err != nil {
		return &ConfigError{Flag: "--permission-mode", Err: err}
	}
	if err := checkRules("--allowedTools", c.AllowedTools); err != nil {
		return err
	}
	if err := checkRules("--disallowedTools", c.DisallowedTools); err != nil {
		return err
	}
	return c.checkTools()
}

func checkRules(flag string, rules []string) error {
	for _, text := range rules {
		if _, err := permission.ParseRule(text); err != nil {
			return &ConfigError{Flag: flag, Err: err}
		}
	}
	return nil
}

// checkFlag refuses settings of --settings that do not take effect as they were meant:
// without its deny rules a run could do what it was started not to do.
func checkFlag(e config.Effective, warnings []config.Warning) error {
	for _, w := range warnings {
		switch {
		case w.Source.Scope != config.Flag:
		case w.Source.Path == "" && w.Line > 0:
			return &ConfigError{Flag: "--settings", Err: fmt.Errorf("line %d: %s", w.Line, w.Text)}
		default:
			return &ConfigError{Flag: "--settings", Err: errors.New(strings.TrimPrefix(w.String(), "--settings: "))}
		}
	}
	for _, r := range slices.Concat(e.Permissions.Allow, e.Permissions.Ask, e.Permissions.Deny) {
		if r.From.Scope != config.Flag {
			continue
		}
		if err := checkRules("--settings", []string{r.Text}); err != nil {
			return err
		}
	}
	return nil
}

// modelError says of a script that cannot be a model which flag named it. What settings
// or the environment name is no matter of the caller's.
func (c *Config) modelError(err error) error {
	if strings.HasPrefix(c.Model, scripted.Prefix) {
		return &ConfigError{Flag: "--model", Err: err}
	}
	return err
}

func (c *Config) checkFolder(dir string) error {
	info, err := os.Stat(c.absolute(dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no folder %q", dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%q is not a folder", dir)
	}
	return nil
}

// checkTools replaces the names in Tools with those of our tools, and refuses a name
// that no tool has.
func (c *Config) checkTools() error {
	c.Tools = slices.Clone(c.Tools) // the caller's
	for i, name := range c.Tools {
		ours, ok := toolNamed(name)
		switch {
		case ok:
			c.Tools[i] = ours
		case !permission.IsForeign(name): // a command line may be one for Claude Code
			var names []string
			for _, s := range builtin.Specs() {
				names = append(names, s.Name)
			}
			return &ConfigError{Flag: "--tools", Near: near.Names(name, names), Err: fmt.Errorf("there is no tool %q", name)}
		}
	}
	return nil
}

// missingTools warns of names in Tools that cadre has no tool for.
func (c *Config) missingTools() []string {
	var warnings []string
	for _, name := range c.Tools {
		if _, ok := toolNamed(name); !ok {
			warnings = append(warnings, fmt.Sprintf("--tools: cadre does not have the tool %s yet", name))
		}
	}
	return warnings
}

// toolNamed finds the name of our tool that has this name or alias.
func toolNamed(name string) (string, bool) {
	for _, s := range builtin.Specs() {
		if s.Name == name || slices.Contains(s.Aliases, name) {
			return s.Name, true
		}
	}
	return "", false
}

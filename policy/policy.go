// Package policy says what the agents of a process may do. It makes the permission
// policy from flags and settings, writes what a person has approved "always" into the
// settings files, and holds what a model is told of the permission mode that it works
// in. The decisions themselves are those of package permission.
package policy

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/permission"
)

// Options are the flags and folders that a policy is made from.
type Options struct {
	Root     layout.Root
	Cwd      string
	Home     string // "": unknown
	SideDir  string // the folder for job output and the like, which may be read
	Settings config.Settings

	Mode                string // "": from the settings
	SkipPermissions     bool
	Allowed, Disallowed []string // rules given by flags
	AddDirs             []string // further working folders; relative ones are in Cwd
}

// New makes the policy of a process. Rules that the settings have and nobody can read
// are warnings; in a flag they are an error.
func New(o Options) (p permission.Policy, warnings []string, err error) {
	p.Names = make(map[string]string)
	real := func(path string) string { return resolve(path, p.Names) }
	if o.Home != "" {
		p.Home = real(o.Home)
		p.StateRoots = []string{real(filepath.Join(o.Home, ".claude"))}
	}
	p.StateRoots = append(p.StateRoots, real(string(o.Root)))
	p.Folders = []string{real(o.Cwd)}
	p.Readable = []string{real(o.SideDir)}
	for _, dir := range o.AddDirs {
		p.Folders = append(p.Folders, real(inFolder(o.Cwd, dir)))
	}
	for _, dir := range o.Settings.Permissions.Directories {
		p.Folders = append(p.Folders, real(dir.Path))
	}
	mode := cmp.Or(o.Mode, o.Settings.Permissions.DefaultMode)
	if o.SkipPermissions {
		mode = string(permission.Bypass)
	}
	if p.Mode, err = permission.ParseMode(mode); err != nil {
		return p, nil, err
	}
	for _, list := range []struct {
		to       *[]permission.SourcedRule
		flag     string
		flags    []string
		settings []config.Rule
	}{
		{&p.Allow, "--allowedTools", o.Allowed, o.Settings.Permissions.Allow},
		{&p.Ask, "", nil, o.Settings.Permissions.Ask},
		{&p.Deny, "--disallowedTools", o.Disallowed, o.Settings.Permissions.Deny},
	} {
		unreadable, err := parse(list.to, list.flag, list.flags, list.settings)
		if err != nil {
			return p, nil, err
		}
		warnings = append(warnings, unreadable...)
	}
	for _, rule := range slices.Concat(p.Ask, p.Deny) {
		if path, ok := p.Subject(rule); ok {
			real(path)
		}
	}
	return p, warnings, nil
}

// resolve follows symbolic links, and adds to names the other spellings of a path that
// rules may use.
func resolve(path string, names map[string]string) string {
	real := symlink.Follow(path)
	inRealFolder := filepath.Join(symlink.Follow(filepath.Dir(path)), filepath.Base(path))
	for _, name := range []string{path, inRealFolder} {
		if name != "" && name != real {
			names[name] = real
		}
	}
	return real
}

// parse adds the rules of settings files, then those of a flag.
func parse(to *[]permission.SourcedRule, flag string, flags []string, settings []config.Rule) (warnings []string, err error) {
	for _, s := range settings {
		rule, err := permission.ParseRule(s.Text)
		if err != nil {
			warnings = append(warnings, s.From.String()+": "+err.Error())
			continue
		}
		*to = append(*to, permission.SourcedRule{Rule: rule, Source: s.From.String(), Base: symlink.Follow(s.From.Base)})
	}
	for _, text := range flags {
		rule, err := permission.ParseRule(text)
		if err != nil {
			return nil, err
		}
		*to = append(*to, permission.SourcedRule{Rule: rule, Source: flag})
	}
	return warnings, nil
}

// inFolder is a path as it is meant in a folder.
func inFolder(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

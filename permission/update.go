package permission

import (
	"path/filepath"
	"slices"

	"github.com/cadre-dev/cadre/ask"
)

// With returns a copy of the policy with the updates that a person accepted
// (facts: sdk-contract §3.2). Unknown ones are ignored. Rules are replaced and
// removed where their destination says, folders wherever they came from, but for
// the one in which the session was started. It never switches to [Bypass]: that is
// for a launch flag to do. A relative directory counts from the first working
// folder; the caller resolves symbolic links.
func (p Policy) With(updates []ask.Suggestion) Policy {
	p.Allow, p.Ask, p.Deny = slices.Clone(p.Allow), slices.Clone(p.Ask), slices.Clone(p.Deny)
	p.Folders = slices.Clone(p.Folders)
	for _, u := range updates {
		switch u.Type {
		case ask.AddRules, ask.ReplaceRules, ask.RemoveRules:
			p.changeRules(u)
		case ask.SetMode:
			if mode, err := ParseMode(u.Mode); err == nil && u.Mode != "" && mode != Bypass {
				p.Mode = mode
			}
		case ask.AddDirectories:
			p.addFolders(u.Directories)
		case ask.RemoveDirectories:
			p.removeFolders(u.Directories)
		}
	}
	return p
}

func (p *Policy) changeRules(u ask.Suggestion) {
	list := map[string]*[]SourcedRule{"allow": &p.Allow, "ask": &p.Ask, "deny": &p.Deny}[u.Behavior]
	if list == nil {
		return
	}
	var rules []SourcedRule
	for _, r := range u.Rules {
		if rule := (Rule{Tool: r.ToolName, Content: r.RuleContent}).plain(); rule.Tool != "" {
			rules = append(rules, SourcedRule{Rule: rule, Source: sourceOf(u.Destination)})
		}
	}
	there := func(rule SourcedRule) bool { return slices.Contains(sourcesOf(u.Destination), rule.Source) }
	switch u.Type {
	case ask.AddRules:
		*list = append(*list, rules...)
	case ask.ReplaceRules:
		*list = append(slices.DeleteFunc(*list, there), rules...)
	case ask.RemoveRules:
		*list = slices.DeleteFunc(*list, func(rule SourcedRule) bool {
			return there(rule) && slices.ContainsFunc(rules, func(gone SourcedRule) bool { return gone.Rule == rule.plain() })
		})
	}
}

// plain spells a rule for every call of a tool in one way.
func (r Rule) plain() Rule {
	if r.Content == "*" {
		r.Content = ""
	}
	return r
}

// sourceOf names the destination of an update as [SourcedRule].Source has it.
func sourceOf(destination string) string {
	switch destination {
	case ask.UserSettings:
		return "user settings"
	case ask.ProjectSettings:
		return "project settings"
	case ask.LocalSettings:
		return "local settings"
	}
	return destination
}

// sourcesOf are the sources of the rules that a destination means.
func sourcesOf(destination string) []string {
	if destination == ask.CLIArg {
		return []string{destination, "--allowedTools", "--disallowedTools"}
	}
	return []string{sourceOf(destination)}
}

func (p *Policy) addFolders(dirs []string) {
	for _, dir := range dirs {
		if dir = p.folder(dir); dir != "" && !slices.Contains(p.Folders, dir) {
			p.Folders = append(p.Folders, dir)
		}
	}
}

func (p *Policy) removeFolders(dirs []string) {
	for _, dir := range dirs {
		dir = p.folder(dir)
		first := p.start()
		p.Folders = slices.DeleteFunc(p.Folders, func(folder string) bool { return folder == dir && folder != first })
	}
}

// folder is a directory of an update as an absolute path; "" for none.
func (p Policy) folder(dir string) string {
	switch {
	case dir == "":
		return ""
	case !filepath.IsAbs(dir):
		dir = filepath.Join(p.start(), dir)
	}
	return filepath.Clean(dir)
}

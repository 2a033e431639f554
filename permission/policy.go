package permission

import (
	"path/filepath"
	"slices"

	"github.com/cadre-dev/cadre/ask"
)

// Policy is everything a decision rests on. It is a value: whoever changes the
// rules of a session replaces its Policy. All paths in it are absolute, clean
// and resolved (symbolic links followed), like those of a tool.Access.
type Policy struct {
	Mode             Mode
	Allow, Ask, Deny []SourcedRule

	// Folders are the working folders. The first is where the session was
	// started: relative patterns start there.
	Folders []string
	// Readable are folders that may be read without asking though nobody works
	// in them: what the runtime itself wrote for the agent, like the kept output
	// of a command.
	Readable []string
	// StateRoots are the folders with agents' state: ours, and ~/.claude. Their
	// teams/ and tasks/ are closed to agents; the rest is protected.
	StateRoots []string
	Home       string // what "~/" stands for; "" when it is unknown
	// PlanFile may be read and written in every mode, unless a rule says no.
	PlanFile string
	// DelegateTools are the names of the tools that stay in [Delegate].
	DelegateTools []string
}

// With returns a copy of the policy with the updates that a person accepted:
// addRules, setMode and addDirectories; others are ignored (facts: sdk-contract
// §3.2). It never switches to [Bypass]: that is for a launch flag to do. A
// relative directory counts from the first working folder; the caller resolves
// symbolic links.
func (p Policy) With(updates []ask.Suggestion) Policy {
	p.Allow, p.Ask, p.Deny = slices.Clone(p.Allow), slices.Clone(p.Ask), slices.Clone(p.Deny)
	p.Folders = slices.Clone(p.Folders)
	for _, u := range updates {
		switch u.Type {
		case "addRules":
			p.addRules(u)
		case "setMode":
			if mode, err := ParseMode(u.Mode); err == nil && u.Mode != "" && mode != Bypass {
				p.Mode = mode
			}
		case "addDirectories":
			p.addFolders(u.Directories)
		}
	}
	return p
}

func (p *Policy) addRules(u ask.Suggestion) {
	for _, r := range u.Rules {
		if r.ToolName == "" {
			continue
		}
		rule := SourcedRule{Rule: Rule{Tool: r.ToolName, Content: r.RuleContent}, Source: u.Destination}
		if rule.Content == "*" {
			rule.Content = ""
		}
		switch u.Behavior {
		case "allow":
			p.Allow = append(p.Allow, rule)
		case "ask":
			p.Ask = append(p.Ask, rule)
		case "deny":
			p.Deny = append(p.Deny, rule)
		}
	}
}

func (p *Policy) addFolders(dirs []string) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.start(), dir)
		}
		dir = filepath.Clean(dir)
		if !slices.Contains(p.Folders, dir) {
			p.Folders = append(p.Folders, dir)
		}
	}
}

// start is the folder that relative patterns and words count from.
func (p Policy) start() string {
	if len(p.Folders) == 0 {
		return ""
	}
	return p.Folders[0]
}

// inFolders reports whether path lies in a working folder.
func (p Policy) inFolders(path string) bool {
	return slices.ContainsFunc(p.Folders, func(dir string) bool { return within(dir, path) })
}

// ReadDenied reports whether a deny rule closes path for reading, and which.
// Tools that search a folder ask it for every file they would show, since the
// decision on the call only saw the folder.
func (p Policy) ReadDenied(path string) (rule string, denied bool) {
	for _, r := range p.Deny {
		if r.Content != "" && r.reads() && p.pathRuleMatches(r, path, generous) {
			return r.String(), true
		}
	}
	return "", false
}

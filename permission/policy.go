package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
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
	// Readable are folders that may be read without asking although they are not
	// working folders: what the runtime itself wrote for the agent, like the output
	// of a command.
	Readable []string
	// StateRoots are the folders with agents' state: ours, and ~/.claude. Agents may
	// not write below their teams/ and tasks/; changes to the rest are asked about.
	StateRoots []string
	Home       string // what "~/" stands for; "" when it is unknown
	// Names maps paths that lead over symbolic links to where they lead: of these
	// folders, and of what rules are about. Commands are compared as they are written,
	// and rules too, so both may use such a name.
	Names map[string]string
	// PlanFile may be read and written in every mode, unless a rule says no.
	PlanFile string
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

// Subject is the path that a rule with a path pattern is about: the pattern up to its
// first wildcard. ok is false for other rules, and for a bare name, which is about
// files in any folder.
func (p Policy) Subject(rule SourcedRule) (path string, ok bool) {
	if rule.Content == "" || !rule.reads() && !rule.writes() {
		return "", false
	}
	dir, glob, ok := p.anchor(rule, exact)
	if !ok || strings.HasPrefix(glob, "**") {
		return "", false
	}
	literal, wild := doublestar.SplitPattern(glob)
	if !strings.ContainsAny(wild, `*?[{\\`) {
		literal = literal + "/" + wild
	}
	return filepath.Join(dir, filepath.FromSlash(literal)), true
}

// ReadDenied reports whether a deny rule forbids reading path, and which.
// Tools that search a folder ask it for every file they would show, since the
// decision on the call only saw the folder.
func (p Policy) ReadDenied(path string) (rule string, denied bool) {
	for _, r := range p.Deny {
		if r.Content != "" && r.reads() && p.restrictsPath(r, path) {
			return r.String(), true
		}
	}
	return "", false
}

package permission

import "slices"

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
	// Names maps other paths of these folders, which lead there over symbolic links,
	// to the folders. Command lines may use them, and are compared as they stand.
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

// ReadDenied reports whether a deny rule forbids reading path, and which.
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

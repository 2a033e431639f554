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
	// Readable are folders that may be read without asking though nobody works
	// in them: what the runtime itself wrote for the agent, like the kept output
	// of a command.
	Readable []string
	// StateRoots are the folders with agents' state: ours, and ~/.claude. Their
	// teams/ and tasks/ are closed to agents; the rest is protected.
	StateRoots []string
	Home       string // what "~/" stands for; "" when it is unknown
	// Names are other names of folders, over symbolic links, by the folder's path.
	// Commands use them: nobody resolves what stands in a command line.
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

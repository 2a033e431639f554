package permission

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/shellword"
)

// pathsAllowed allows a call whose every path is allowed, by a rule or because
// of where it lies. It returns nil when no rule contributes to that.
func (r *review) pathsAllowed() *Decision {
	if len(r.Access.Read)+len(r.Access.Write) == 0 {
		return nil
	}
	var helped *SourcedRule
	covered := func(paths []string, free func(string) bool, covers func(Rule) bool) bool {
		for _, path := range paths {
			if free(path) {
				continue
			}
			i := slices.IndexFunc(r.Policy.Allow, func(rule SourcedRule) bool {
				return rule.Content != "" && covers(rule.Rule) && r.pathRuleMatches(rule, path, exact)
			})
			if i < 0 {
				return false
			}
			helped = &r.Policy.Allow[i]
		}
		return true
	}
	// Who may change a file may see it.
	mayRead := func(rule Rule) bool { return rule.reads() || rule.writes() }
	if !covered(r.Access.Read, r.freeToRead, mayRead) || !covered(r.Access.Write, r.freeToWrite, Rule.writes) {
		return nil
	}
	if helped == nil {
		return nil
	}
	return allowedBy(*helped)
}

func (r *review) freeToRead(path string) bool {
	return r.inFolders(path) || path == r.PlanFile ||
		slices.ContainsFunc(r.Readable, func(dir string) bool { return within(dir, path) })
}

func (r *review) freeToWrite(path string) bool {
	return path == r.PlanFile || r.Mode == AcceptEdits && r.inFolders(path)
}

// isPlanFile reports whether the call writes the plan file and nothing else.
func (r *review) isPlanFile() bool {
	return r.PlanFile != "" && len(r.Access.Write) > 0 && r.Access.Command == "" &&
		!slices.ContainsFunc(r.Access.Write, func(path string) bool { return path != r.PlanFile })
}

// byFolders decides a file tool's call that no rule is about.
func (r *review) byFolders() Decision {
	outside := func(path string) bool { return !r.inFolders(path) }
	for _, path := range r.Access.Write {
		if r.freeToWrite(path) {
			continue
		}
		if outside(path) {
			return r.askOutside(path, "write")
		}
		return Decision{
			Behavior: Ask, Reason: fmt.Sprintf("%s wants to change %s, and changes to files need approval.", r.Spec.Name, path),
			Remedy: "--permission-mode acceptEdits", Suggestions: suggestMode(AcceptEdits),
		}
	}
	for _, path := range r.Access.Read {
		if !r.freeToRead(path) {
			return r.askOutside(path, "read")
		}
	}
	return Decision{Behavior: Allow, Reason: "It stays within the folders that this session may use."}
}

func (r *review) askOutside(path, verb string) Decision {
	dir := filepath.Dir(path)
	d := Decision{
		Behavior: Ask, Reason: fmt.Sprintf("%s wants to %s %s, which is outside the working folders.", r.Spec.Name, verb, path),
		Remedy: "--add-dir " + shellword.Quote(dir),
	}
	if verb == "read" {
		d.Suggestions = suggestRule("allow", Rule{Tool: "Read", Content: folderPattern(dir)}, ask.Session)
		return d
	}
	d.Suggestions = append(suggestFolder(dir), suggestMode(AcceptEdits)...)
	d.Remedy += " --permission-mode acceptEdits"
	return d
}

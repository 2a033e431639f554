package permission

import (
	"encoding/json"
	"path/filepath"
	"slices"
)

// verdict is the result of comparing a rule with a call. Rules that restrict (deny,
// ask) need the third value: what is not known may match.
type verdict int

const (
	noMatch verdict = iota
	mayMatch
	matches
)

// restricts compares a deny or ask rule with the call, generously: a rule about
// reading a path also covers searching it and naming it in a command.
func (r *review) restricts(rule SourcedRule) verdict {
	if rule.Content == "" {
		if r.namedBy(rule) {
			return matches
		}
		return noMatch
	}
	switch {
	case rule.reads() || rule.writes():
		return r.restrictsPaths(rule)
	case currentName(rule.Tool) == "Bash":
		if r.Access.Command == "" {
			return noMatch
		}
		return r.script().runs(rule.Content)
	case !r.namedBy(rule):
		return noMatch
	}
	return r.contentMatches(rule)
}

// namedBy reports whether a deny or ask rule is for the tool that was called, or for
// the one by whose rules the call is judged.
func (r *review) namedBy(rule SourcedRule) bool { return rule.names(r.Call) || rule.names(r.made) }

// restrictsPaths compares a path rule with every path that the call touches.
func (r *review) restrictsPaths(rule SourcedRule) verdict {
	touched := r.Access.Read
	if rule.writes() {
		touched = r.Access.Write
	}
	if len(touched) > 0 {
		touched = slices.Concat(touched, r.Access.Named)
	}
	if r.Access.Command != "" {
		touched = r.commandPaths(rule.writes())
	}
	if slices.ContainsFunc(touched, func(path string) bool { return r.restrictsPath(rule, path) }) {
		return matches
	}
	return noMatch
}

// restrictsPath reports whether a deny or ask rule covers a path, by any of the names
// that it is known to have.
func (p Policy) restrictsPath(rule SourcedRule, path string) bool {
	if p.pathRuleMatches(rule, path, generous) {
		return true
	}
	for name, dir := range p.Names {
		if rel, ok := relative(dir, path, exact); ok && p.pathRuleMatches(rule, filepath.Join(name, filepath.FromSlash(rel)), generous) {
			return true
		}
	}
	return false
}

// contentFields are the input fields that a rule's content stands for, by tool.
var contentFields = map[string][]string{
	"Agent": {"subagent_type", "name"},
	"Skill": {"skill"},
}

// contentMatches compares the content of a rule for a tool that has neither
// paths nor a command. The rule already names the tool.
func (r *review) contentMatches(rule SourcedRule) verdict {
	fields, known := contentFields[currentName(r.Spec.Name)]
	if !known {
		return mayMatch
	}
	var input map[string]json.RawMessage
	if err := json.Unmarshal(r.Input, &input); err != nil {
		return mayMatch
	}
	for _, field := range fields {
		var value string
		if raw, ok := input[field]; ok && json.Unmarshal(raw, &value) == nil && value == rule.Content {
			return matches
		}
	}
	return noMatch
}

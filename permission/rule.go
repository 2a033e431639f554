package permission

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Rule names a tool and, optionally, what of it (facts: sdk-contract §4).
type Rule struct {
	Tool    string
	Content string // "" means every call of the tool
}

// SourcedRule is a rule and where it came from.
type SourcedRule struct {
	Rule
	// Source is named in reasons: "user settings", "--allowedTools".
	Source string
	// Base is the folder that a path pattern with a leading "/" starts from:
	// the project that the settings file belongs to. "" means the first working
	// folder.
	Base string
}

// ParseRule reads "Tool" or "Tool(content)". "Tool(*)" is the same as "Tool".
func ParseRule(text string) (Rule, error) {
	text = strings.TrimSpace(text)
	name, content, hasContent := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	if err := checkToolName(name); err != nil {
		return Rule{}, fmt.Errorf("permission rule %q: %w", text, err)
	}
	if !hasContent {
		return Rule{Tool: name}, nil
	}
	content, closed := strings.CutSuffix(content, ")")
	switch {
	case !closed:
		return Rule{}, fmt.Errorf("permission rule %q: no closing parenthesis at the end", text)
	case strings.TrimSpace(content) == "":
		return Rule{}, fmt.Errorf("permission rule %q: nothing between the parentheses; write %s for every call", text, name)
	case content == "*":
		content = ""
	}
	return Rule{Tool: name, Content: content}, nil
}

func checkToolName(name string) error {
	if name == "" {
		return errors.New("no tool name")
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.*", r):
		default:
			return fmt.Errorf("a tool name cannot contain %q", r)
		}
	}
	return nil
}

// ParseRules reads a list as flags carry it: rules separated by commas or
// spaces, both of which may also stand inside parentheses. It returns the rules
// that could be read, and the errors of the others joined.
func ParseRules(list string) ([]Rule, error) {
	var rules []Rule
	var errs []error
	for _, text := range splitList(list) {
		rule, err := ParseRule(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		rules = append(rules, rule)
	}
	return rules, errors.Join(errs...)
}

func splitList(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && (r == ',' || r == ' ' || r == '\t' || r == '\n')
	})
}

// String is the rule as settings files write it.
func (r Rule) String() string {
	if r.Content == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Content + ")"
}

// from names rule and source for a reason.
func (r SourcedRule) from() string {
	if r.Source == "" {
		return r.String()
	}
	return r.String() + " (" + r.Source + ")"
}

// renamed are tool names of older versions that rules and models still use
// (facts: sdk-contract §4, §2.4).
var renamed = map[string]string{
	"Task":            "Agent",
	"MultiEdit":       "Edit",
	"KillShell":       "TaskStop",
	"KillBash":        "TaskStop",
	"BashOutput":      "TaskOutput",
	"AgentOutputTool": "TaskOutput",
	"BashOutputTool":  "TaskOutput",
}

// foreign are the tools that rules name for other programs and that this one has
// not (facts: sdk-contract §2.4).
var foreign = []string{"NotebookEdit", "Skill", "TodoWrite", "WebFetch", "WebSearch"}

// IsForeign reports whether rules know a tool by this name though no tool of this
// program need have it: a name of older versions, a tool of other programs, or a
// tool that a server brings.
func IsForeign(name string) bool {
	_, old := renamed[name]
	return old || slices.Contains(foreign, name) || strings.HasPrefix(name, "mcp__")
}

func currentName(tool string) string {
	if name, ok := renamed[tool]; ok {
		return name
	}
	return tool
}

// names reports whether the rule is for this tool, by its name, an alias, or a
// name of older versions. "mcp__server" names all tools of that server.
func (r Rule) names(c Call) bool {
	return r.namesOne(c.Spec.Name) || slices.ContainsFunc(c.Spec.Aliases, r.namesOne)
}

func (r Rule) namesOne(tool string) bool {
	want, have := currentName(r.Tool), currentName(tool)
	if strings.EqualFold(want, have) {
		return true
	}
	if strings.Contains(want, "*") {
		ok, err := path.Match(want, have)
		return err == nil && ok
	}
	return strings.HasPrefix(want, "mcp__") && strings.Count(want, "__") == 1 && strings.HasPrefix(have, want+"__")
}

package main

import (
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
)

// listFlags take a list that may also be written as several arguments:
// --allowedTools "Bash(git *)" Read (facts: sdk-contract §1).
var listFlags = []string{
	"--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools", "--tools",
}

// spreadLists joins the further arguments of a list to its value, so that each
// flag has one.
func spreadLists(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if (arg == "--resume" || arg == "-r") && (i+1 == len(args) || strings.HasPrefix(args[i+1], "-")) {
			arg = "--resume=" // without an id: the person chooses
		}
		out = append(out, arg)
		if !slices.Contains(listFlags, arg) || i+1 >= len(args) {
			continue
		}
		i++
		value := args[i]
		for i+1 < len(args) && isRule(args[i+1]) {
			i++
			value += "," + args[i]
		}
		out = append(out, value)
	}
	return out
}

// isRule reports whether an argument can only be a permission rule: one that names
// a tool. Any other word may be the prompt (facts: claude-code §1).
func isRule(arg string) bool {
	name, content, found := strings.Cut(arg, "(")
	if found && !strings.HasSuffix(content, ")") {
		return false
	}
	if _, err := permission.ParseRule(arg); err != nil {
		return false
	}
	return isTool(name) || permission.IsForeign(name)
}

// isTool reports whether a tool of this program has the name.
func isTool(name string) bool {
	return slices.ContainsFunc(builtin.Specs(), func(s tool.Spec) bool { return s.Name == name || slices.Contains(s.Aliases, name) })
}

package main

import (
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/permission"
)

// listFlags take a list that may also be written as several arguments:
// --allowedTools "Bash(git *)" Read (facts: sdk-contract §1).
var listFlags = []string{
	"--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools", "--tools",
}

// toolNames are the tools that a rule without parentheses is known by when it
// follows a list: any other word may be the prompt (facts: claude-code §1).
var toolNames = []string{
	"Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "SendMessage", "Skill",
	"Task", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TeamCreate", "TeamDelete", "TodoWrite",
	"WebFetch", "WebSearch", "Write",
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

// isRule reports whether an argument can only be a permission rule.
func isRule(arg string) bool {
	name, content, found := strings.Cut(arg, "(")
	if found && !strings.HasSuffix(content, ")") {
		return false
	}
	if _, err := permission.ParseRule(arg); err != nil {
		return false
	}
	return slices.Contains(toolNames, name) || strings.HasPrefix(name, "mcp__")
}

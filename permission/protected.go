package permission

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// byTeamState denies changes to rosters, inboxes and task lists except through the
// team and task tools: an agent that writes these files can pose as another.
func (r *review) byTeamState() *Decision {
	touched := r.Access.Write
	if r.Access.Command != "" {
		touched = r.commandPaths(true)
	}
	for _, file := range touched {
		if r.isTeamState(file) {
			return &Decision{
				Behavior: Deny,
				Reason:   fmt.Sprintf("%s belongs to the state of a team; use the task and message tools to change it.", file),
			}
		}
	}
	return nil
}

func (p Policy) isTeamState(file string) bool {
	for _, root := range p.StateRoots {
		rel, ok := relative(root, file, generous)
		if !ok {
			continue
		}
		if first, _, _ := strings.Cut(rel, "/"); first == "teams" || first == "tasks" {
			return true
		}
	}
	return false
}

// byProtectedPath asks before a change of a file that could widen what agents
// may do, or that runs by itself later. No allow rule overrides it; the mode
// bypassPermissions does.
func (r *review) byProtectedPath() *Decision {
	if r.Mode == Bypass || r.isPlanFile() {
		return nil
	}
	touched := r.Access.Write
	if r.Access.Command != "" {
		touched = r.commandPaths(true)
	}
	for _, file := range touched {
		if what := r.protected(file); what != "" {
			return &Decision{
				Behavior: Ask,
				Reason:   fmt.Sprintf("%s is protected (%s), so a person has to approve this call of %s.", file, what, r.made.Spec.Name),
				Remedy:   "approve it in an interactive session, or --dangerously-skip-permissions",
			}
		}
	}
	return nil
}

// protectedFolders, protectedFiles and protectedNames list what a change could
// turn against its owner (facts: reliability-security §3.3, N06). Folders and
// names are looked for below the working folder that holds the file, so that
// work inside a checkout under ~/.claude is possible; files everywhere.
var (
	protectedFolders = map[string]string{
		".git": "git's own files", ".husky": "git hooks",
		".claude": "agents' settings", ".cadre": "agents' settings",
		".ssh": "keys", ".gnupg": "keys", ".idea": "editor tasks", ".devcontainer": "editor tasks",
	}
	protectedFiles = map[string]string{
		".git/config": "git's own files", ".git/hooks/*": "git hooks",
		".claude/settings.json": "agents' settings", ".claude/settings.local.json": "agents' settings",
		".cadre/settings.json": "agents' settings", ".cadre/settings.local.json": "agents' settings",
		".vscode/tasks.json": "editor tasks", ".vscode/settings.json": "editor tasks", ".vscode/launch.json": "editor tasks",
		".vscode/mcp.json": "MCP servers", ".cursor/mcp.json": "MCP servers",
		".config/git/*": "git's own files", ".config/fish/*": "shell start-up",
	}
	protectedNames = map[string]string{
		".mcp.json": "MCP servers", ".claude.json": "agents' settings", ".gitconfig": "git's own files", ".gitmodules": "git's own files",
		".bashrc": "shell start-up", ".bash_profile": "shell start-up", ".bash_login": "shell start-up", ".bash_logout": "shell start-up",
		".bash_aliases": "shell start-up", ".profile": "shell start-up", ".zshrc": "shell start-up", ".zshenv": "shell start-up",
		".zprofile": "shell start-up", ".zlogin": "shell start-up", ".zlogout": "shell start-up", ".kshrc": "shell start-up",
		".cshrc": "shell start-up", ".tcshrc": "shell start-up", ".login": "shell start-up", ".envrc": "shell start-up",
	}
)

// protected says why a file may not be changed unasked, or "".
func (p Policy) protected(file string) string {
	if p.isOwnState(file) {
		return "agents' state"
	}
	full := strings.Split(strings.ToLower(filepath.ToSlash(filepath.Clean(file))), "/")
	if what := protectedNames[full[len(full)-1]]; what != "" {
		return what
	}
	for pattern, what := range protectedFiles {
		depth := strings.Count(pattern, "/") + 1
		if len(full) < depth {
			continue
		}
		if ok, _ := path.Match(pattern, strings.Join(full[len(full)-depth:], "/")); ok {
			return what
		}
	}
	for _, part := range p.belowFolder(file) {
		if what := protectedFolders[part]; what != "" {
			return what
		}
	}
	return ""
}

// belowFolder is the parts of file below the innermost working folder that
// holds it, or all of its parts.
func (p Policy) belowFolder(file string) []string {
	rest := strings.ToLower(filepath.ToSlash(filepath.Clean(file)))
	for _, dir := range p.Folders {
		if rel, ok := relative(dir, file, generous); ok && len(rel) < len(rest) {
			rest = rel
		}
	}
	return strings.Split(rest, "/")
}

// isOwnState reports whether file lies in a state root and not in a working
// folder inside it.
func (p Policy) isOwnState(file string) bool {
	for _, root := range p.StateRoots {
		_, inRoot := relative(root, file, generous)
		inner := func(dir string) bool {
			rel, ok := relative(root, dir, generous)
			return ok && rel != "" && within(dir, file)
		}
		if inRoot && !slices.ContainsFunc(p.Folders, inner) {
			return true
		}
	}
	return false
}

package cadre

import (
	"os"
	"path/filepath"
	"strings"
)

// gitBranch reads the branch of the repository that holds dir, without running
// git: "HEAD" when detached, "" outside of a repository (facts: claude-code
// §11, field gitBranch).
func gitBranch(dir string) string {
	for {
		data, err := os.ReadFile(headFile(filepath.Join(dir, ".git")))
		if err == nil {
			if ref, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: refs/heads/"); ok {
				return ref
			}
			return "HEAD"
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// headFile is where HEAD stands: in .git, or where the .git file of a linked
// worktree points.
func headFile(git string) string {
	data, err := os.ReadFile(git)
	if err != nil {
		return filepath.Join(git, "HEAD")
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok {
		return filepath.Join(git, "HEAD")
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(git), target)
	}
	return filepath.Join(target, "HEAD")
}

package permission

import (
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/ask"
)

func suggestRule(behavior string, rule Rule, destination string) []ask.Suggestion {
	return []ask.Suggestion{{
		Type: ask.AddRules, Behavior: behavior, Destination: destination,
		Rules: []ask.Rule{{ToolName: rule.Tool, RuleContent: rule.Content}},
	}}
}

func suggestMode(mode Mode) []ask.Suggestion {
	return []ask.Suggestion{{Type: ask.SetMode, Mode: string(mode), Destination: ask.Session}}
}

func suggestFolder(dir string) []ask.Suggestion {
	return []ask.Suggestion{{Type: ask.AddDirectories, Directories: []string{dir}, Destination: ask.Session}}
}

// folderPattern is the path pattern for everything below dir.
func folderPattern(dir string) string {
	slashed := escapeGlob.Replace(filepath.ToSlash(dir))
	if filepath.VolumeName(dir) != "" {
		return strings.TrimSuffix(slashed, "/") + "/**"
	}
	return "/" + strings.TrimSuffix(slashed, "/") + "/**"
}

var escapeGlob = strings.NewReplacer(
	`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`,
)

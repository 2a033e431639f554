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

// quote makes text one word of a POSIX shell, for remedies that people paste.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+,=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

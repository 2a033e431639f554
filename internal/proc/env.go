package proc

import (
	"os"
	"strings"
)

// secretNames are variables that give access to cadre's models. Programs get all other
// credentials (GITHUB_TOKEN, GEMINI_API_KEY, cloud accounts), as from the user's shell: their
// own work may need them. docs/privacy.md lists these names.
var secretNames = map[string]bool{
	"ANTHROPIC_API_KEY": true, "ANTHROPIC_AUTH_TOKEN": true, "ANTHROPIC_CUSTOM_HEADERS": true,
	"CLAUDE_CODE_OAUTH_TOKEN": true, "OPENAI_API_KEY": true, "OPENAI_ADMIN_KEY": true,
}

// isSecret also recognizes our own variables, by how they are named.
func isSecret(name string) bool {
	if secretNames[name] {
		return true
	}
	if !strings.HasPrefix(name, "CADRE_") {
		return false
	}
	for _, word := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// WithoutSecrets returns env without the variables that give access to models,
// and without all others that hold one of their values, or one of secrets,
// under another name. nil is the environment of this process. env is not
// changed.
func WithoutSecrets(env []string, secrets ...string) []string {
	if env == nil {
		env = os.Environ()
	}
	const least = 8 // a shorter value occurs in others by chance
	var values []string
	for _, value := range secrets {
		if len(value) >= least {
			values = append(values, value)
		}
	}
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); isSecret(name) && len(value) >= least {
			values = append(values, value)
		}
	}
	clean := make([]string, 0, len(env))
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if !isSecret(name) && !containsAny(value, values) {
			clean = append(clean, entry)
		}
	}
	return clean
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

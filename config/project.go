package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// narrow removes from a project's file what a repository must not decide (facts:
// reliability-security T01, T02): always what redirects models, keys or loaders, and
// without trust everything that extends what agents may do. A settings.local.json
// counts as the project's too: it is not committed, but somebody else may have put it
// there. What a person accepted there ([Options.Keep]) counts as trusted.
func (m *merge) narrow(source Source, p *parsed) {
	var never, untrusted []string
	accepted := m.accepted().Permissions
	mode := p.Permissions.DefaultMode
	isAccepted := mode != nil && accepted.DefaultMode != nil && *mode == *accepted.DefaultMode && isTrustable(*mode)
	if mode != nil && !isAccepted && !m.maySetMode(*mode) {
		what := fmt.Sprintf("permissions.defaultMode %q", *mode)
		if isTrustable(*mode) && !m.TrustProject {
			untrusted = append(untrusted, what)
		} else {
			never = append(never, what)
		}
		p.Permissions.DefaultMode = nil
	}
	if p.Model != nil && strings.HasPrefix(*p.Model, "scripted:") {
		never = append(never, fmt.Sprintf("model %q", *p.Model))
		p.Model = nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if isSteering(name) {
			never = append(never, "env."+name)
			delete(p.Env, name)
		}
	}
	if !m.TrustProject {
		untrusted = append(untrusted, p.dropWidening(accepted)...)
	}
	if len(never) > 0 {
		m.warn(source, 0, "ignored "+strings.Join(never, ", ")+": a project cannot set this; set it in your own settings", "")
	}
	if len(untrusted) > 0 {
		m.warn(source, 0, "ignored "+strings.Join(untrusted, ", ")+": this project is not trusted (--trust); its deny and ask rules apply all the same", "")
	}
}

// dropWidening removes what only a trusted project may set and no person has accepted,
// and returns the keys.
func (p *parsed) dropWidening(accepted permissions) []string {
	var dropped []string
	if n := keepOnly(&p.Permissions.Allow, accepted.Allow); n > 0 {
		dropped = append(dropped, fmt.Sprintf("permissions.allow (%d)", n))
	}
	if n := keepOnly(&p.Permissions.AdditionalDirectories, accepted.AdditionalDirectories); n > 0 {
		dropped = append(dropped, fmt.Sprintf("permissions.additionalDirectories (%d)", n))
	}
	if n := len(p.Env); n > 0 {
		dropped = append(dropped, fmt.Sprintf("env (%d)", n))
		p.Env = nil
	}
	drop(&dropped, "printWaitCeilingMs", &p.PrintWaitCeilingMs)
	drop(&dropped, "askDeadlineMs", &p.AskDeadlineMs)
	drop(&dropped, "planApproval", &p.PlanApproval)
	drop(&dropped, "orphanGraceMs", &p.OrphanGraceMs)
	drop(&dropped, "trustUnsignedTeamAnswers", &p.TrustUnsigned)
	drop(&dropped, "modelRetryMs", &p.ModelRetryMs)
	drop(&dropped, "modelFirstByteMs", &p.ModelFirstByteMs)
	drop(&dropped, "modelSilenceMs", &p.ModelSilenceMs)
	drop(&dropped, "repeatReminder", &p.RepeatReminder)
	drop(&dropped, "syncWrites", &p.SyncWrites)
	return dropped
}

// drop removes a value, if there is one, and adds its key to dropped.
func drop[T any](dropped *[]string, key string, value **T) {
	if *value != nil {
		*dropped, *value = append(*dropped, key), nil
	}
}

// keepOnly removes from a list what another one does not have, and returns how many
// elements it removed.
func keepOnly(list *[]string, accepted []string) (dropped int) {
	before := len(*list)
	*list = slices.DeleteFunc(*list, func(value string) bool { return !slices.Contains(accepted, value) })
	return before - len(*list)
}

// strictness orders the modes that a project may ask for at all.
var strictness = map[string]int{"acceptEdits": 1, "": 2, "default": 2, "manual": 2, "dontAsk": 3, "plan": 4}

func isTrustable(mode string) bool { return strictness[mode] > 0 }

// maySetMode reports whether a project may set this mode: one that is at least
// as strict as what the user has, or with trust, any but the widest.
func (m *merge) maySetMode(mode string) bool {
	if !isTrustable(mode) {
		return false
	}
	present, known := strictness[m.into.Permissions.DefaultMode]
	return m.TrustProject || !known && m.into.Permissions.DefaultMode == "bypassPermissions" || known && strictness[mode] >= present
}

// steering are environment variables that decide which model is talked to, with
// which key, what programs load, or which programs run in place of others.
var steering = []string{
	"ANTHROPIC_*", "OPENAI_*", "CLAUDE_*", "CLAUDECODE", "CADRE_*", "AWS_*", "GOOGLE_*", "AZURE_*", "*_API_KEY", "*_TOKEN", "*_SECRET", "*_PROXY",
	"LD_*", "DYLD_*", "NODE_*", "NPM_CONFIG_*", "PYTHON*", "PERL5*", "PERLLIB", "RUBY*", "GEM_*", "BUNDLE_*", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
	"JDK_JAVA_OPTIONS", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "CARGO_*", "RUSTC*", "PIP_*", "SSL_CERT_*", "CURL_*", "WGETRC", "OPENSSL_*", "GCONV_PATH", "MALLOC_*",
	"GIT_*", "SSH_*", "GPG_*", "PATH", "HOME", "USER", "LOGNAME", "SHELL", "SHELLOPTS", "BASHOPTS", "BASH_*", "ENV", "ZDOTDIR", "IFS", "CDPATH", "GLOBIGNORE",
	"PROMPT_COMMAND", "PS4", "TMPDIR", "TMP", "TEMP", "EDITOR", "VISUAL", "PAGER", "*_PAGER", "*_EDITOR", "BROWSER", "LESS*", "MAN*", "TERM*", "XDG_*", "APPDATA", "COMSPEC", "PATHEXT", "WINDIR",
	"SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA", "DOCKER_*", "KUBECONFIG", "TMUX*", "OTEL_*",
}

func isSteering(name string) bool {
	name = strings.ToUpper(name)
	for _, pattern := range steering {
		head, tail, star := strings.Cut(pattern, "*")
		if name == pattern || star && len(name) >= len(head)+len(tail) && strings.HasPrefix(name, head) && strings.HasSuffix(name, tail) {
			return true
		}
	}
	return false
}

package teammate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/internal/lazy"
	"github.com/cadre-dev/cadre/internal/shellword"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
)

// startFiles are what a teammate is started with. All text reaches it through
// them: typing it into a pane would change it.
type startFiles struct {
	script string // run by the pane; removes itself before anything else
	gate   string // the program waits until this one is gone
	exit   string // gets the exit code of the program
}

// write makes the files of a teammate that is to run a command.
func (b *Panes) write(name, dir string, command []string) (startFiles, error) {
	if err := os.MkdirAll(b.cfg.Dir, 0o700); err != nil {
		return startFiles{}, err
	}
	stem := filepath.Join(b.cfg.Dir, ids.Hex(24))
	files := startFiles{stem + ".sh", stem + ".gate", stem + ".exit"}
	err := create(files.gate, "")
	if err == nil {
		err = create(files.script, files.shell(name, dir, b.cfg.Env, command))
	}
	if err != nil {
		files.remove()
		return startFiles{}, err
	}
	return files, nil
}

// create writes a file that must not be there, for its owner's eyes only.
func create(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// open lets the program start.
func (f startFiles) open() error { return os.Remove(f.gate) }

// remove removes what is left.
func (f startFiles) remove() {
	for _, path := range []string{f.script, f.gate, f.exit} {
		if path != "" {
			_ = os.Remove(path)
		}
	}
}

// exited reports whether the program has ended, and how.
func (f startFiles) exited() (code int, ok bool) {
	if f.exit == "" {
		return 0, false
	}
	text, err := os.ReadFile(f.exit)
	if err != nil {
		return 0, false
	}
	code, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return code, err == nil // it may be half written
}

// terminalVariables belong to the pane, not to the lead.
var terminalVariables = []string{
	"TERM", "COLORTERM", "COLORFGBG", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TMUX", "TMUX_PANE",
	"ITERM_SESSION_ID", "ITERM_PROFILE", "LC_TERMINAL", "LC_TERMINAL_VERSION", "WINDOWID", "LINES", "COLUMNS",
}

// shellVariables are a shell's own: it may refuse to have them set, or behave
// otherwise.
var shellVariables = []string{
	"PWD", "OLDPWD", "SHLVL", "_", "PPID", "UID", "EUID", "IFS", "OPTIND", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO", stageVariable,
}

// stageVariable says that the script runs in a clean environment.
const stageVariable = "CADRE_PANE_START"

// variableName is what a shell can export.
var variableName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// shell is the script. It begins anew in an empty environment, since a pane has
// that of the terminal's server, which may be another day's; then it removes
// itself and restores the environment of the lead. The shell stays until the
// program ends, and shows a failure until a person has read it or the lead has ended.
func (f startFiles) shell(name, dir string, env, command []string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`if [ -z "${%s-}" ]; then`, stageVariable)
	line("\texec /usr/bin/env -i %s=1 \\", stageVariable)
	for _, v := range terminalVariables {
		line("\t\t${%[1]s+\"%[1]s=$%[1]s\"} \\", v)
	}
	line("\t\t/bin/sh %s", shellword.Quote(f.script))
	line("fi")
	line("PATH=/usr/bin:/bin")
	line("rm -f -- %s", shellword.Quote(f.script))
	line("unset %s", stageVariable)
	line("trap : INT QUIT # for the program to take")
	// A lead that was killed leaves the gate closed, and nobody else knows of the pane. A
	// shell that does not see the lead's process from the start, as in a container of its
	// own, cannot tell, and waits for a short time only.
	line(`lead=%d tries=0 most=600`, os.Getpid())
	line(`cadre_sees_lead=1`)
	line(`kill -0 "$lead" 2>/dev/null || { most=60; cadre_sees_lead=; }`)
	line(`while [ -e %s ]; do`, shellword.Quote(f.gate))
	line("\tsleep 0.05 2>/dev/null || sleep 1")
	line("\ttries=$((tries + 1))")
	line(`	[ "$tries" -lt "$most" ] || exit 0`)
	line(`	[ "$most" -eq 60 ] || kill -0 "$lead" 2>/dev/null || exit 0`)
	line("done")
	line("unset PATH lead tries most")
	for _, entry := range slices.Concat(env, claudeVariables) {
		v, value, _ := strings.Cut(entry, "=")
		if variableName().MatchString(v) && !slices.Contains(terminalVariables, v) && !slices.Contains(shellVariables, v) {
			line("export %s=%s", v, shellword.Quote(value))
		}
	}
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = shellword.Quote(word)
	}
	line("cd -- %s &&", shellword.Quote(dir))
	line("\t%s", strings.Join(words, " "))
	line("code=$?")
	line(`printf '%%s\n' "$code" 2>/dev/null >%s`, shellword.Quote(f.exit))
	line(`if [ "$code" -ne 0 ]; then`)
	line("\tprintf '\\n%%s has ended with exit code %%s. Press Enter to close this pane.\\n' %s \"$code\"", shellword.Quote(name))
	// A lead closes such panes at its end; when it was killed, nobody knows of them.
	line("\tlead=%d", os.Getpid())
	line(`	if [ -n "$cadre_sees_lead" ]; then`)
	line(`		kill -0 "$lead" 2>/dev/null || exit 0`)
	line(`		(while kill -0 "$lead" 2>/dev/null; do sleep 1; done; kill -HUP $$) &`)
	line("\tfi")
	line("\tread -r code")
	line("fi")
	return b.String()
}

// claudeVariables are what programs look at to know where they are (seed
// claude-code-teams §7.3).
var claudeVariables = []string{"CLAUDECODE=1", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDE_CODE_ENTRYPOINT=cli"}

// flags are the flags of a teammate (facts: claude-code §4.3, §0 row 6): its mode
// is the lead's, and one that must plan has no other.
func (b *Panes) flags(s team.Spawn, session string) []string {
	m := s.Member
	flags := []string{
		"--agent-id", m.AgentID, "--agent-name", m.Name, "--team-name", s.Seat.Team, "--agent-color", m.Color,
		"--parent-session-id", s.LeadSession,
	}
	mode := b.cfg.Mode()
	if s.Record != nil && s.Record.Mode != "" {
		mode = s.Record.Mode
	}
	if m.PlanModeRequired {
		flags, mode = append(flags, "--plan-mode-required"), ""
	}
	if m.AgentType != "" {
		flags = append(flags, "--agent-type", m.AgentType)
	}
	switch mode = protocol.WorkingMode(mode); mode {
	case protocol.ModeDefault:
	case protocol.ModeBypass:
		flags = append(flags, "--dangerously-skip-permissions")
	default:
		flags = append(flags, "--permission-mode", mode)
	}
	flags = append(flags, b.cfg.Flags...)
	if model := b.cfg.Model(m.Model); model != "" {
		flags = append(flags, "--model", model)
	}
	if session != "" {
		flags = append(flags, "--resume", session)
	}
	return flags
}

// Package layout knows where state lies on disk, and nothing else does. The
// layout is the one that Claude Code uses (facts: claude-code §2–§5, §11;
// sdk-contract §2.7), so that other programs find what they expect; what is
// ours alone lies in side folders named "cadre".
package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// Permissions of everything we create: the owner's alone.
const (
	DirMode  os.FileMode = 0o700
	FileMode os.FileMode = 0o600
)

// Root is the absolute path of a state root.
type Root string

// Find returns the root that the environment asks for: $CADRE_HOME, else
// $CLAUDE_CONFIG_DIR, else ~/.cadre. getenv is [os.Getenv] outside tests. A relative
// path is a [*RelativeError]: a teammate, a command of an agent and a resumed team may
// have another working folder, and would find another root there.
func Find(getenv func(string) string) (Root, error) {
	for _, name := range []string{"CADRE_HOME", "CLAUDE_CONFIG_DIR"} {
		switch dir := getenv(name); {
		case dir == "":
		case !filepath.IsAbs(dir):
			return "", &RelativeError{name, dir}
		default:
			return Root(filepath.Clean(dir)), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return Root(filepath.Join(home, ".cadre")), nil
}

// RelativeError says that an environment variable names the root by a relative path.
type RelativeError struct{ Variable, Path string }

// Error implements error.
func (e *RelativeError) Error() string {
	return fmt.Sprintf("%s is the relative path %q: want an absolute one", e.Variable, e.Path)
}

// OfClaude is the root that Claude Code has in this environment; "" when it cannot
// be known.
func OfClaude(getenv func(string) string) Root {
	if dir := getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return Root(dir)
	}
	if home := getenv("HOME"); home != "" {
		return Root(filepath.Join(home, ".claude"))
	}
	return ""
}

func (r Root) join(parts ...string) string {
	return filepath.Join(append([]string{string(r)}, parts...)...)
}

// TeamsDir holds a folder per team.
func (r Root) TeamsDir() string { return r.join("teams") }

// TeamDir is the folder of the team with this raw name.
func (r Root) TeamDir(team string) string { return r.join("teams", DirName(team)) }

// TeamConfig is the roster file of a team.
func (r Root) TeamConfig(team string) string { return r.join("teams", DirName(team), "config.json") }

// Inbox is the mail file of one agent. Mail outside any team goes to the team
// "default".
func (r Root) Inbox(team, agent string) string {
	if team == "" {
		team = "default"
	}
	return r.join("teams", DirName(team), "inboxes", inboxName(agent)+".json")
}

// TasksDir holds a folder per task list.
func (r Root) TasksDir() string { return r.join("tasks") }

// TaskList is the folder of a list: a team's raw name, or a session id.
func (r Root) TaskList(list string) string { return r.join("tasks", DirName(list)) }

// Task is the file of one task.
func (r Root) Task(list, id string) string { return filepath.Join(r.TaskList(list), id+".json") }

// ProjectsDir holds a folder per working folder.
func (r Root) ProjectsDir() string { return r.join("projects") }

// Project is the folder with the sessions of a working folder.
func (r Root) Project(cwd string) string { return r.join("projects", Slug(cwd)) }

// Transcript is the file of a main session, or with an agent id, of one of its
// sub-agents.
func (r Root) Transcript(cwd, session, agent string) string {
	if agent == "" {
		return filepath.Join(r.Project(cwd), session+".jsonl")
	}
	return filepath.Join(r.Project(cwd), session, "subagents", "agent-"+agent+".jsonl")
}

// Lease is the lease of a session or agent. That of a main session lies in a folder of
// its project, which is there already: a session of one turn needs no folder of its own.
func (r Root) Lease(cwd, session, agent string) string {
	if agent != "" {
		return r.Side(cwd, session, agent, "lease")
	}
	return filepath.Join(r.Project(cwd), "cadre", session+".lease")
}

// Side is a file of ours beside a transcript: "receipts", "asks", "jobs".
func (r Root) Side(cwd, session, agent, what string) string {
	name := "main"
	if agent != "" {
		name = "agent-" + agent
	}
	return filepath.Join(r.Project(cwd), session, "cadre", name+"."+what)
}

// JobOutput is the file with the raw output of a job.
func (r Root) JobOutput(cwd, session, job string) string {
	return filepath.Join(r.Project(cwd), session, "cadre", "jobs", job+".output")
}

// MailText is the file with the whole text of a large message that an agent of a main
// session's process got.
func (r Root) MailText(cwd, session, id string) string {
	return filepath.Join(r.SideDir(cwd, session), "mail", id+".txt")
}

// Settings is the user's settings file under this root.
func (r Root) Settings() string { return r.join("settings.json") }

// DebugLog is the debug log of a session.
func (r Root) DebugLog(session string) string { return r.join("debug", session+".txt") }

// History is the file with the prompts a person typed.
func (r Root) History() string { return r.join("history.jsonl") }

// DirName turns the name of a team or list into its folder: every UTF-16 code
// unit outside [A-Za-z0-9] becomes a dash, the rest lower case (facts:
// claude-code §2.2). So no name can leave its parent folder.
func DirName(name string) string {
	return strings.ToLower(replaceUnits(name, false))
}

// inboxName keeps case, underscore and dash (facts: claude-code §5.1).
func inboxName(agent string) string { return replaceUnits(agent, true) }

func replaceUnits(s string, keepUnderscore bool) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		switch {
		case u >= 'a' && u <= 'z', u >= 'A' && u <= 'Z', u >= '0' && u <= '9':
			b.WriteByte(byte(u))
		case keepUnderscore && u == '_':
			b.WriteByte('_')
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

const maxSlug = 200

// Slug names the project folder of a working folder: non-alphanumerics become
// dashes; over 200 characters it is cut and a hash appended (facts:
// sdk-contract §2.7).
func Slug(cwd string) string {
	slug := replaceUnits(cwd, false)
	if len(slug) <= maxSlug {
		return slug
	}
	return slug[:maxSlug] + "-" + djb2(cwd)
}

// djb2 is the 32-bit hash of the UTF-16 code units, in base 36.
func djb2(s string) string {
	var h int32
	for _, u := range utf16.Encode([]rune(s)) {
		h = h<<5 - h + int32(u)
	}
	n := int64(h)
	if n < 0 {
		n = -n
	}
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	if n == 0 {
		return "0"
	}
	var out []byte
	for ; n > 0; n /= 36 {
		out = append([]byte{digits[n%36]}, out...)
	}
	return string(out)
}

// SideDir is the folder with what is ours alone beside a main session.
func (r Root) SideDir(cwd, session string) string {
	return filepath.Join(r.Project(cwd), session, "cadre")
}

// Runs is the folder in which processes list what they are running, for the next
// one to end should they die.
func (r Root) Runs() string { return r.join("cadre", "runs") }

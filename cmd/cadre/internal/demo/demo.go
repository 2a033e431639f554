// Package demo is the main job of cadre in one command: a small project whose
// checks fail, a goal, a team that repairs it, a live view of how it does, and a
// report that the project's own checks decide. The model may be the script that
// is embedded here, or a real one: nothing in this package knows which.
//
// The command puts it together: [Prepare] the project, open a runtime in its
// folder with the [Goal] as prompt, let a [View] consume the events, [Check] the
// project, and print the [Report].
package demo

import (
	_ "embed"
	"fmt"

	"github.com/cadre-dev/cadre/provider/scripted"
)

// Goal is what the lead is asked to do.
const Goal = `The checks of this project fail (sh check.sh). Get them to pass.

Do it as the lead of a team: create a team, write a task list with one task for each part, give each its test as the check that proves it (metadata.check, like sh tests/parse.sh), say which has to wait for which, and spawn three teammates to do the work. They are handed open tasks when they are idle. Let them tell you and each other what matters, and use Wait while they work. check.sh and tests/ must stay as they are. When all tasks are done, read the whole diff and run all checks yourself, then shut every teammate down, delete the team, and tell me what came of it.`

// AllowedTools are the permission rules that the goal needs besides edits in the
// project's folder: its checks, the tool itself, and looking at what changed.
var AllowedTools = []string{
	"Bash(sh check.sh)", "Bash(./check.sh)",
	"Bash(sh tests/parse.sh)", "Bash(sh tests/money.sh)", "Bash(sh tests/report.sh)", "Bash(sh tests/usage.sh)",
	"Bash(sh tally:*)", "Bash(./tally:*)",
	"Bash(git diff)", "Bash(git diff --stat)", "Bash(git status)", "Bash(git log)",
}

//go:embed script.jsonc
var scriptText []byte

// ScriptText is the embedded script as a file of it would read: a copy that was
// changed can be given to [ReadScript].
func ScriptText() []byte { return append([]byte(nil), scriptText...) }

// ReadScript parses a script for a project in dir, which the script names as
// ${dir}.
func ReadScript(text []byte, dir string) (scripted.Script, error) {
	s, err := scripted.Parse(text)
	if err != nil {
		return scripted.Script{}, fmt.Errorf("read the script of the demo: %w", err)
	}
	s.Vars["dir"] = dir
	return s, nil
}

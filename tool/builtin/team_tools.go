package builtin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// TaskTools are the tools of the shared task list. The checks of tasks run as jobs of
// the pool, with the environment of the workspace.
func TaskTools(teams *team.Teams, w *Workspace, jobs *job.Pool) []tool.Tool {
	return []tool.Tool{
		taskCreate{teams}, taskGet{teams}, &taskUpdate{teams: teams, check: checker{w, jobs}}, taskList{teams},
	}
}

// TeamTools are the tools that form a team and talk in it. place says where the
// roster of a team lies, for the result of TeamCreate.
func TeamTools(teams *team.Teams, place func(team string) string) []tool.Tool {
	return []tool.Tool{teamCreate{teams, place}, teamDelete{teams}, sendMessage{teams}}
}

// maxWritten is how many bytes a text for other agents may have: a longer one belongs
// in a file.
const maxWritten = 100_000

// checkLength refuses texts that would fill their readers' context windows.
func checkLength(texts map[string]string) (tool.Result, bool) {
	for name, text := range texts {
		if len(text) > maxWritten {
			return tool.UseError(fmt.Sprintf("%s has %d bytes, more than the %d allowed. Write it to a file and name the file.",
				name, len(text), maxWritten)), false
		}
	}
	return tool.Result{}, true
}

// prettyResult is a result whose content is a list of one text block with
// indented JSON, and its structured twin (facts: claude-code §2.1, §5.3).
func prettyResult(v any) tool.Result {
	pretty, err := jsonx.MarshalIndent(v)
	if err != nil {
		return tool.Error(err.Error())
	}
	return tool.Result{
		Blocks: []transcript.Block{transcript.TextBlock(string(pretty))}, Structured: jsonx.MustMarshal(v),
	}
}

// notInTeam is the result for a caller without a team (facts: claude-code §5.3).
const notInTeam = "Not in a team context. Create a team with Teammate spawnTeam first, or set CLAUDE_CODE_TEAM_NAME."

// teamError is an error of team policy as a result that says what to do next.
func teamError(err error) tool.Result {
	if errors.Is(err, team.ErrNoTeam) {
		return tool.Error(notInTeam)
	}
	if leading, ok := errors.AsType[*team.LeadingError](err); ok {
		return tool.Error(fmt.Sprintf("Already leading team %q. A leader can only manage one team at a time. "+
			"Use TeamDelete to end the current team before creating a new one.", leading.Team))
	}
	if unknown, ok := errors.AsType[*team.UnknownTeamError](err); ok {
		return tool.Error(fmt.Sprintf("Team %q does not exist. Call spawnTeam first to create the team.", unknown.Team))
	}
	if unknown, ok := errors.AsType[*roster.UnknownMemberError](err); ok {
		return tool.Error(unknownMember(unknown))
	}
	if name, ok := errors.AsType[*roster.NameError](err); ok {
		return tool.Error(fmt.Sprintf("The name %q %s. Choose another name.", name.Name, name.Reason))
	}
	switch {
	case errors.Is(err, team.ErrNotLead):
		return tool.Error("Only the team lead can do this. Ask " + mailbox.LeadName + " with SendMessage.")
	case errors.Is(err, team.ErrNotMain):
		return tool.Error("Only a main session can lead a team; you are a teammate or a sub-agent. Do the work yourself, or report what is needed.")
	case errors.Is(err, team.ErrLeft):
		return tool.Error("You have left the team: you can no longer send messages or claim tasks.")
	case errors.Is(err, team.ErrProtocol):
		return tool.Error("The content is JSON in the form of a team protocol message, which only the runtime may send. " +
			"Write it in words, or use the type of SendMessage for it (shutdown_request, shutdown_response, plan_approval_response).")
	}
	return tool.Error(capitalized(err.Error()))
}

func unknownMember(e *roster.UnknownMemberError) string {
	var b strings.Builder
	if e.Departed {
		fmt.Fprintf(&b, "%q has left team %q and reads no more messages.", e.Name, e.Team)
	} else {
		fmt.Fprintf(&b, "There is no %q in team %q.", e.Name, e.Team)
	}
	if len(e.Near) > 0 {
		fmt.Fprintf(&b, " Did you mean %s?", strings.Join(e.Near, " or "))
	}
	fmt.Fprintf(&b, " Members: %s.", strings.Join(e.Members, ", "))
	return b.String()
}

// capitalized turns the text of an error into a sentence.
func capitalized(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

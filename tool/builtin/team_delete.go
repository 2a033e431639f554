package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type teamDelete struct{ teams *team.Teams }

const teamDeleteDescription = `Ends the team that you lead: its roster, mailboxes and task list are removed. Files that the team wrote in the project stay.

It is refused while teammates are active. First ask each of them to shut down (SendMessage, type shutdown_request) and wait until you are notified that it has: end your turn, the answers arrive by themselves. A teammate may decline because it has work left; then let it finish.

Call it when the work of the team is done and checked, and before you form another team.`

const teamDeleteSchema = `{"type":"object","properties":{},"additionalProperties":false}`

var teamDeleteSpec = tool.Spec{
	Name: "TeamDelete", Description: teamDeleteDescription, Schema: tool.NewSchema(teamDeleteSchema),
	Delegates: true,
}

func (teamDelete) Spec() tool.Spec { return teamDeleteSpec }

func (teamDelete) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

func (t teamDelete) Run(ctx context.Context, _ tool.Call) tool.Result {
	deletion, err := t.teams.Delete(ctx, tool.CallerFrom(ctx))
	if err != nil {
		return teamError(err)
	}
	result := teamDeleted{Success: true, TeamName: deletion.Team}
	switch {
	case deletion.Team == "":
		result.Message = "No team name found, nothing to clean up"
	case len(deletion.Active) > 0:
		result.Success = false
		result.Message = fmt.Sprintf("Cannot cleanup team with %d active member(s): %s. "+
			"Use requestShutdown to gracefully terminate teammates first.", len(deletion.Active), strings.Join(deletion.Active, ", "))
	default:
		result.Message = fmt.Sprintf("Cleaned up directories and worktrees for team \"%s\"", deletion.Team)
	}
	return prettyResult(result)
}

// teamDeleted is the result in the form of facts: claude-code §2.4.
type teamDeleted struct {
	Success  bool   `json:"success"`
	Message  string `json:"message"`
	TeamName string `json:"team_name,omitempty"`
}

package builtin

import (
	"context"
	"strings"

	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

type teamCreate struct {
	teams *team.Teams
	place func(team string) string
}

const teamCreateDescription = `Forms a team that you lead: a roster, a mailbox for each member, and one task list that all of them share.

Form a team when the person asks for one, or when the work has several parts that can be done in parallel and depend on each other. For a single question, use the Agent tool without a name. You can lead one team at a time.

How a team works:
1. TeamCreate. The task list of the team starts empty; earlier tasks stay in your own list, so form the team first.
2. TaskCreate for each piece of work, then TaskUpdate with addBlockedBy for what must wait.
3. Start teammates: Agent with name (and a prompt that says what their part is, since they do not see this conversation). Two to five are usually right; more cost more than they contribute.
4. Teammates claim tasks themselves as soon as nothing blocks them, or you assign them with TaskUpdate and owner. Teammates have their own context window and the same tools for files and commands as you.
5. Their messages arrive by themselves, between your tool calls or when your turn is over. You are notified when a teammate goes idle: that is normal, it waits for mail or a task and wakes by itself. So when there is nothing for you to do, end your turn; do not ask for progress and do not do their work yourself.
6. When everything is done, check the result yourself, then ask each teammate to shut down (SendMessage, type shutdown_request), and when they have, call TeamDelete.

If the name is in use, the team gets another one, which is in the result.`

const teamCreateSchema = `{"type":"object","properties":{` +
	`"team_name":{"type":"string","description":"Name of the team, like \"parser-rewrite\""},` +
	`"description":{"type":"string","description":"What the team is for"},` +
	`"agent_type":{"type":"string","description":"Your own role as its lead, if it has a name"}` +
	`},"required":["team_name"],"additionalProperties":false}`

var teamCreateSpec = tool.Spec{
	Name: "TeamCreate", Description: teamCreateDescription, Schema: tool.NewSchema(teamCreateSchema),
	Delegates: true,
}

func (teamCreate) Spec() tool.Spec { return teamCreateSpec }

func (teamCreate) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

type teamCreateInput struct {
	TeamName    string `json:"team_name"`
	Description string `json:"description"`
	AgentType   string `json:"agent_type"`
}

func (t teamCreate) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[teamCreateInput](call)
	if failed != nil {
		return *failed
	}
	if strings.TrimSpace(in.TeamName) == "" {
		return tool.UseError("team_name is required for TeamCreate")
	}
	created, err := t.teams.Create(ctx, tool.CallerFrom(ctx), in.TeamName, in.Description, in.AgentType)
	if err != nil {
		return teamError(err)
	}
	return prettyResult(struct {
		TeamName     string `json:"team_name"`
		TeamFilePath string `json:"team_file_path"`
		LeadAgentID  string `json:"lead_agent_id"`
	}{created.Name, t.place(created.Name), created.LeadAgentID})
}

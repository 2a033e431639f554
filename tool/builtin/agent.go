package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/near"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Spawner runs sub-agents.
type Spawner interface {
	// SpawnSubAgent runs a sub-agent to its end, or with Background set starts
	// it and returns at once. When ctx ends it returns early. After an error the
	// result may still have an AgentID: the sub-agent can be resumed.
	SpawnSubAgent(ctx context.Context, r SubAgentRequest) (SubAgentResult, error)
}

// SubAgentRequest says what sub-agent to run.
type SubAgentRequest struct {
	Caller      tool.Caller // whose sub-agent it is
	Call        string      // the tool_use id
	Type        string
	Model       string // as the model named it; "" for the type's own or the caller's
	Prompt      string
	Description string // in a few words
	MaxTurns    int    // 0: no limit
	Resume      string // agent id of an earlier run to continue; "" for a new one
	Background  bool
}

// SubAgentResult is the outcome of a [SubAgentRequest].
type SubAgentResult struct {
	AgentID   string
	Content   []transcript.Block // its last reply
	Usage     transcript.Usage   // of its last reply
	Tokens    int                // in all
	ToolCalls int
	Took      time.Duration

	Async      bool   // it runs in the background: only AgentID and OutputFile are set
	OutputFile string // where its output can be read
}

// AgentType is a kind of agent that can be started.
type AgentType struct {
	Name        string
	Description string // when to use it, for the model
}

// AgentTool starts sub-agents, and teammates when the caller leads a team. Its
// description lists the types, which must be the same for all agents of a team: they
// share a prompt cache.
func AgentTool(teams *team.Teams, spawner Spawner, types []AgentType) tool.Tool {
	lines := make([]string, len(types))
	for i, t := range types {
		lines[i] = "- " + t.Name + ": " + t.Description
	}
	spec := agentSpec
	spec.Description = fmt.Sprintf(agentDescription, strings.Join(lines, "\n"))
	return agentTool{teams, spawner, types, spec}
}

type agentTool struct {
	teams   *team.Teams
	spawner Spawner
	types   []AgentType
	spec    tool.Spec
}

const agentDescription = `Starts another agent for part of the work. It has a fresh context window: it knows only the prompt that you give it.

Types of agents (subagent_type):
%s

Two ways to use it:

1. A sub-agent (no name): it works, and its last reply is the result of this call. Use it for a broad search that would fill your own context, for a self-contained piece of work, and for several such pieces at once: calls in the same reply run in parallel. It cannot ask you anything while it works.
   - resume: the agentId of an earlier run continues that run with the new prompt; it still knows everything from before.
   - run_in_background: the call returns at once and you are notified when the agent is done.
   - max_turns: the most rounds it may use.

2. A teammate (with name, when you lead a team): it joins the team, keeps running, shares the task list and writes and reads mail. The call returns as soon as it runs; do not wait for it, its messages arrive by themselves. Give it a short name that says what it does ("parser", "tester"), and say in the prompt what its part is, which files belong to it, whom to ask, and what to report.
   - mode "plan": it may only read and search until the plan that it submits is approved. Use it where a wrong start would be expensive.
   - use_splitpane false: where teammates run in panes of a terminal, this one gets a window of its own.

Do not use it for what you can do in a few calls yourself, such as reading a known file or searching for one name.

A good prompt gives the goal and the reason for it, the files and places that you already know, whether to change files or only to read, how to check the result, and in what form to answer. The answer comes to you, not to the person: tell the person what matters in it. Trust but verify: inspect what a sub-agent changed before you call it done.`

const agentSchema = `{"type":"object","properties":{` +
	`"description":{"type":"string","description":"The work in 3 to 5 words"},` +
	`"prompt":{"type":"string","description":"What the agent is to do; this is all that it will know"},` +
	`"subagent_type":{"type":"string","description":"Which type of agent"},` +
	`"model":{"type":"string","enum":["sonnet","opus","haiku"],"description":"Model to use; by default the usual one"},` +
	`"resume":{"type":"string","description":"agentId of an earlier run to continue"},` +
	`"run_in_background":{"type":"boolean","description":"Return at once; you are notified when it is done"},` +
	`"max_turns":{"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991,"description":"Maximum number of rounds"},` +
	`"name":{"type":"string","description":"Name of a teammate to start"},` +
	`"team_name":{"type":"string","description":"The team that it joins; by default your own"},` +
	`"mode":{"type":"string","enum":["acceptEdits","bypassPermissions","default","delegate","dontAsk","plan"],"description":"plan: a teammate must have its plan approved before it changes anything. Other values have no effect: every agent works in the mode of the session that starts it"},` +
	`"use_splitpane":{"type":"boolean","description":"false gives a teammate a window of its own instead of a pane"}` +
	`},"required":["description","prompt","subagent_type"],"additionalProperties":false}`

var agentSpec = tool.Spec{
	Name: "Agent", Aliases: []string{"Task"}, Schema: tool.NewSchema(agentSchema),
	Parallel: true, Delegates: true,
}

func (t agentTool) Spec() tool.Spec { return t.spec }

func (agentTool) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

type agentInput struct {
	Description  string `json:"description"`
	Prompt       string `json:"prompt"`
	SubagentType string `json:"subagent_type"`
	Model        string `json:"model"`
	Resume       string `json:"resume"`
	Background   bool   `json:"run_in_background"`
	MaxTurns     int    `json:"max_turns"`
	Name         string `json:"name"`
	TeamName     string `json:"team_name"`
	Mode         string `json:"mode"`
	SplitPane    *bool  `json:"use_splitpane"`
}

// wantsWindow reports whether a teammate's pane is to be a window of its own.
func (in agentInput) wantsWindow() bool { return in.SplitPane != nil && !*in.SplitPane }

// withoutMode says that the mode that was asked for has no effect; "" when it
// was not asked for, or is honoured (facts: claude-code §0, row 6).
func (in agentInput) withoutMode(planned bool) string {
	if in.Mode == "" || planned {
		return ""
	}
	return fmt.Sprintf("\nThe mode %s had no effect: the agent works in the mode of the session that started it.", in.Mode)
}

func (t agentTool) Run(ctx context.Context, call tool.Call) tool.Result {
	in, failed := parseInput[agentInput](call)
	if failed != nil {
		return *failed
	}
	caller := tool.CallerFrom(ctx)
	if caller.Team != "" && caller.Depth == 0 {
		return tool.Error("Teammates cannot start agents. Do the work yourself, or ask " + mailbox.LeadName +
			" with SendMessage for another teammate.")
	}
	if failed, ok := t.checkType(in.SubagentType); !ok {
		return failed
	}
	place := tool.PlaceFrom(ctx)
	_, leads := t.teams.Seat(caller)
	if in.Name != "" && in.Resume == "" && (leads || in.TeamName != "" && caller.Depth == 0) {
		return t.spawnTeammate(ctx, caller, in, place)
	}
	place.Leave() // later calls need not wait for a sub-agent
	return t.runSubAgent(ctx, caller, call, in)
}

func (t agentTool) checkType(name string) (tool.Result, bool) {
	names := make([]string, len(t.types))
	for i, known := range t.types {
		names[i] = known.Name
	}
	if slices.Contains(names, name) {
		return tool.Result{}, true
	}
	text := fmt.Sprintf("There is no agent type %q.", name)
	if near := near.Names(name, names); len(near) > 0 {
		text += fmt.Sprintf(" Did you mean %s?", strings.Join(near, " or "))
	}
	return tool.Error(text + " Known types: " + strings.Join(names, ", ") + "."), false
}

// teammateSpawned is the structured twin of facts: claude-code §4.
type teammateSpawned struct {
	Status           string `json:"status"`
	Prompt           string `json:"prompt"`
	TeammateID       string `json:"teammate_id"`
	AgentID          string `json:"agent_id"`
	AgentType        string `json:"agent_type"`
	Model            string `json:"model"`
	Name             string `json:"name"`
	Color            string `json:"color"`
	TmuxSessionName  string `json:"tmux_session_name"`
	TmuxWindowName   string `json:"tmux_window_name"`
	TmuxPaneID       string `json:"tmux_pane_id"`
	TeamName         string `json:"team_name"`
	IsSplitpane      bool   `json:"is_splitpane"`
	PlanModeRequired bool   `json:"plan_mode_required"`
}

// spawnTeammate starts a teammate. Teammates of one reply get names, colours and places
// on the screen in the order of the calls; the slow part of their starts runs in parallel.
func (t agentTool) spawnTeammate(ctx context.Context, caller tool.Caller, in agentInput, place *tool.Place) tool.Result {
	if err := place.Await(ctx); err != nil {
		return tool.Error(capitalized(err.Error()))
	}
	spawned, err := t.teams.Spawn(ctx, caller, team.SpawnRequest{
		Team: in.TeamName, Name: in.Name, AgentType: in.SubagentType, Model: in.Model, Prompt: in.Prompt,
		Description: in.Description, PlanMode: in.Mode == "plan", Window: in.wantsWindow(), Placed: place.Leave,
	})
	if err != nil {
		return teamError(err)
	}
	m := spawned.Member
	session, window := placeOf(m, in.wantsWindow())
	return tool.Result{
		Blocks: []transcript.Block{transcript.TextBlock(fmt.Sprintf("Spawned successfully.\nagent_id: %s\nname: %s\nteam_name: %s\n"+
			"The agent is now running and will receive instructions via mailbox.%s",
			m.AgentID, m.Name, spawned.Team, in.withoutMode(m.PlanModeRequired)))},
		Structured: jsonx.MustMarshal(teammateSpawned{
			Status: "teammate_spawned", Prompt: m.Prompt, TeammateID: m.AgentID, AgentID: m.AgentID, AgentType: m.AgentType,
			Model: m.Model, Name: m.Name, Color: m.Color, TmuxSessionName: session, TmuxWindowName: window,
			TmuxPaneID: m.PaneID, TeamName: spawned.Team, IsSplitpane: m.BackendType != roster.InProcess && !in.wantsWindow(),
			PlanModeRequired: m.PlanModeRequired,
		}),
	}
}

// placeOf is how the twin names the session and the window of a pane: those of
// the lead, or a window of the teammate's own (facts: claude-code §4).
func placeOf(m roster.Member, ownWindow bool) (session, window string) {
	switch {
	case m.BackendType == roster.InProcess:
		return roster.InProcess, roster.InProcess
	case ownWindow:
		return "current", m.Name
	}
	return "current", "current"
}

func (t agentTool) runSubAgent(ctx context.Context, caller tool.Caller, call tool.Call, in agentInput) tool.Result {
	if t.spawner == nil {
		return tool.Error("Sub-agents cannot be started here.")
	}
	r, err := t.spawner.SpawnSubAgent(ctx, SubAgentRequest{
		Caller: caller, Call: call.ID, Type: in.SubagentType, Model: in.Model, Prompt: in.Prompt,
		Description: in.Description, MaxTurns: in.MaxTurns, Resume: in.Resume, Background: in.Background,
	})
	switch {
	case err != nil && r.AgentID != "":
		return tool.Error(fmt.Sprintf("%s (agentId: %s, to be continued with resume)", capitalized(err.Error()), r.AgentID))
	case err != nil:
		return tool.Error(capitalized(err.Error()))
	case r.Async:
		return asyncLaunched(in, r)
	}
	return subAgentDone(in, r)
}

// subAgentCompleted is the structured twin of facts: claude-code §10.
type subAgentCompleted struct {
	Status            string             `json:"status"`
	Prompt            string             `json:"prompt"`
	AgentID           string             `json:"agentId"`
	Content           []transcript.Block `json:"content"`
	TotalDurationMs   int64              `json:"totalDurationMs"`
	TotalTokens       int                `json:"totalTokens"`
	TotalToolUseCount int                `json:"totalToolUseCount"`
	Usage             transcript.Usage   `json:"usage"`
}

func subAgentDone(in agentInput, r SubAgentResult) tool.Result {
	content := make([]transcript.Block, 0, len(r.Content))
	for _, b := range r.Content {
		if b.Type == transcript.Text {
			content = append(content, b)
		}
	}
	answer := transcript.JoinText(content)
	if answer == "" {
		answer = "The agent ended without an answer."
	}
	footer := fmt.Sprintf("agentId: %s (for resuming to continue this agent's work if needed)\n"+
		"<usage>total_tokens: %d\ntool_uses: %d\nduration_ms: %d</usage>%s",
		r.AgentID, r.Tokens, r.ToolCalls, r.Took.Milliseconds(), in.withoutMode(false))
	return tool.Result{
		Blocks: []transcript.Block{transcript.TextBlock(answer), transcript.TextBlock(footer)},
		Structured: jsonx.MustMarshal(subAgentCompleted{
			Status: "completed", Prompt: in.Prompt, AgentID: r.AgentID, Content: content,
			TotalDurationMs: r.Took.Milliseconds(), TotalTokens: r.Tokens, TotalToolUseCount: r.ToolCalls, Usage: r.Usage,
		}),
	}
}

// asyncAgent is the structured twin of a start in the background.
type asyncAgent struct {
	IsAsync     bool   `json:"isAsync"`
	Status      string `json:"status"`
	AgentID     string `json:"agentId"`
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	OutputFile  string `json:"outputFile"`
}

func asyncLaunched(in agentInput, r SubAgentResult) tool.Result {
	text := fmt.Sprintf("Async agent launched successfully.\nagentId: %s (an internal id: use it to resume the agent, do not show it to the person)\n"+
		"The agent works in the background; you are notified when it is done.\n"+
		"Continue with other work, and do not do the agent's part yourself.\n"+
		"output_file: %s\nRead that file only if you need to know its progress.%s", r.AgentID, r.OutputFile, in.withoutMode(false))
	return tool.Result{
		Blocks: []transcript.Block{transcript.TextBlock(text)},
		Structured: jsonx.MustMarshal(asyncAgent{
			true, "async_launched", r.AgentID, in.Description, in.Prompt, r.OutputFile,
		}),
	}
}

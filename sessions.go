package cadre

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/config"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/models"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/policy"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

// opener opens the sessions of a process ([subagent.Opener], [teammate.Opener]) and gives
// each what all of them share. Its fields are set before the first session is opened.
type opener struct {
	root     layout.Root
	main     transcript.Ref // the main session's
	settings config.Settings
	offered  []string // names of the tools to offer; nil: all

	stores stores
	tree   *session.Tree
	jobs   *job.Pool
	teams  *team.Teams
	models *models.Choice

	policy    permission.Policy
	approvals *policy.Approvals
	planner   *planner
	system    []string
	line      transcript.Entry // what every transcript line says
	ledger    *builtin.Ledger
	agentTool tool.Tool     // the same for all sessions: its description is long
	opened    chan struct{} // closed when the main session is open: nothing comes to any session before
}

// Open opens the conversation of an agent of this process and starts its session, which
// the caller closes. It is for the rooms that start agents ([subagent.Opener],
// [teammate.Opener]).
func (o *opener) Open(ctx context.Context, s session.Spec) (*session.Session, error) {
	log, err := o.stores.transcripts.Open(ctx, s.Ref)
	if err != nil {
		return nil, err
	}
	past, err := o.adoptJobs(ctx, s)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	model, name := o.models.Named(s.Caller.Model)
	s.Caller.Model = name
	rules := o.policyFor(s)
	switch rules.Mode {
	case permission.Plan:
		s.Preface = o.planner.preface(s.Caller, s.Preface)
	case permission.Delegate:
		s.Preface = prefaced(policy.Delegating, s.Preface)
	}
	mail := &teammate.Mail{Teams: o.teams, Caller: s.Caller, Ready: o.opened, BeforeRead: s.BeforeMailIsRead}
	if o.stores.keepText != nil {
		mail.Keep = func(id mailbox.ID, text string) (string, error) { return o.stores.keepText(o.main, id, text) }
	}
	notices := &notices{jobs: o.jobs, owner: s.Caller.Key(), past: past, ready: o.opened}
	return session.Open(ctx, session.Config{
		Ref: s.Ref, Log: log, Tree: o.tree, Agent: s.Agent, Caller: s.Caller, Line: o.lineOf(s.Caller),
		Model: model, ModelName: name, System: o.system, Tools: o.toolSet(s),
		Limits: session.Limits{Rounds: s.MaxRounds, Repeats: o.settings.RepeatReminder},
		Policy: rules, Asks: o.stores.asks(s.Ref), Gate: o.approvals,
		Voice: &voice{s.Preface, notices}, Life: s.Life,
		Sources: []session.Source{mail, notices},
		Lean:    s.Caller.AgentID != "",
	})
}

// adoptJobs takes over the jobs of a session whose transcript is open. Of a main session,
// nobody else has anything running.
func (o *opener) adoptJobs(ctx context.Context, s session.Spec) (*job.Past, error) {
	kept := o.stores.jobs(s.Ref)
	if s.Ref.Agent == "" {
		if err := kept.EndUnfinished(ctx, job.Lost()); err != nil {
			return nil, err
		}
	}
	return o.jobs.Adopt(ctx, s.Caller.Key(), kept)
}

// policyFor is the policy of the process in the mode of a session: its own, else that
// of the main session at this moment. A lead that only delegates does so to agents that work.
func (o *opener) policyFor(s session.Spec) permission.Policy {
	rules := o.policy
	rules.PlanFile = symlink.Follow(o.planner.PlanFile(s.Caller))
	if s.Mode != "" {
		rules.Mode = s.Mode
	} else if main, ok := o.tree.Sessions.Find(""); ok {
		rules.Mode = policy.WorkMode(main.State().Mode)
	}
	return rules
}

// lineOf fills in what the transcript lines of a session say of it. A lead's
// team is the one that it leads at the moment of the line.
func (o *opener) lineOf(c tool.Caller) func() transcript.Entry {
	line := o.line
	line.Cwd, line.TeamName = c.Cwd, c.Team
	if c.Team != "" {
		line.AgentName = c.AgentName
	}
	return func() transcript.Entry {
		line := line
		if c.Team == "" {
			if seat, ok := o.teams.Seat(c); ok {
				line.TeamName = seat.Team
			}
		}
		return line
	}
}

// toolSet makes the tools of one session. Names, descriptions and schemas are
// the same for every agent of a team, so that they can share a prompt cache.
func (o *opener) toolSet(s session.Spec) *tool.Set {
	space := builtin.NewWorkspace(builtin.WorkspaceConfig{
		Dir: s.Caller.Cwd, Ledger: o.ledger, Env: o.childEnv(), Closed: o.readDenied,
		Output: func(job string) string { return o.root.JobOutput(s.Ref.Project, s.Ref.Session, job) },
	})
	tools := slices.Concat(
		[]tool.Tool{o.agentTool},
		builtin.FileTools(space, o.jobs),
		[]tool.Tool{builtin.AskUserQuestion()},
		builtin.PlanTools(o.planner),
		builtin.TaskTools(o.teams, space, o.jobs),
		builtin.TeamTools(o.teams, o.root.TeamConfig),
		[]tool.Tool{builtin.WaitTool(o.teams, o.jobs)},
	)
	offered := func(t tool.Tool) bool {
		spec := t.Spec()
		return (s.Offers == nil || s.Offers(spec)) && (o.offered == nil || slices.Contains(o.offered, spec.Name))
	}
	return tool.NewSet(slices.DeleteFunc(tools, func(t tool.Tool) bool { return !offered(t) })...)
}

// decideFor is what the rules of the main session say of the call of a teammate in
// another process ([teammate.Relay]). What they neither allow nor deny is for a person,
// and so is what they cannot judge: the zero Decision.
func (o *opener) decideFor(ctx context.Context, from roster.Member, a ask.Ask) permission.Decision {
	if a.Kind != ask.Permission {
		return permission.Decision{}
	}
	caller := tool.Caller{SessionID: o.main.Session, AgentName: from.Name, Cwd: from.Cwd}
	spec := session.Spec{Caller: caller, Ref: o.main}
	t, ok := o.toolSet(spec).Lookup(a.Tool)
	if !ok {
		return permission.Decision{}
	}
	what := t.Spec()
	input, err := what.Schema.Normalize(what.Name, a.Input)
	if err != nil {
		return permission.Decision{}
	}
	call := tool.Call{ID: a.ToolUseID, Name: what.Name, Input: input}
	return permission.Decide(o.policyFor(spec).With(o.tree.Granted()), permission.Call{
		Spec: what, Input: input, Access: t.Access(tool.WithCaller(ctx, caller), call),
	})
}

// readDenied reports whether a rule denies reading a resolved path.
func (o *opener) readDenied(path string) bool {
	p := o.policy
	if granted := o.tree.Granted(); len(granted) > 0 {
		p = p.With(granted)
	}
	_, denied := p.ReadDenied(path)
	return denied
}

// childEnv is the environment of the commands that agents run: that of this
// process and what the settings add.
func (o *opener) childEnv() []string {
	if len(o.settings.Env) == 0 {
		return nil
	}
	env := os.Environ()
	for name, value := range o.settings.Env {
		env = append(env, name+"="+value)
	}
	return env
}

package cadre

import (
	"context"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

// compose makes what all sessions of the tree share beside the stores.
func (r *Runtime) compose(ctx context.Context) {
	r.jobs = job.NewPool(r.publishJob)
	r.teams = team.New(team.Options{
		Store: r.stores.teams, Mail: r.stores.mail, Tasks: r.stores.tasks,
		Backend: newInProcess(r), Publish: r.publishTeam,
	})
	r.tally = event.NewTally()
	events := r.tree.Stream.Subscribe(context.WithoutCancel(ctx), 0)
	r.folding.Go(func() { r.tally.Fold(events) })
}

// publishJob tells of a job in the name of the session that owns it.
func (r *Runtime) publishJob(owner string, body event.Body) {
	agent := r.leadAgent()
	if m, ok := r.members.find(owner); ok {
		agent = m.agent
	}
	r.tree.Stream.Publish(agent, body)
}

// publishTeam tells of a team. The team room knows its agents by name; the lead
// of the tree is its root session.
func (r *Runtime) publishTeam(by event.Agent, body event.Body) {
	agent := r.leadAgent()
	for _, m := range r.members.all() {
		if m.agent.Name == by.Name && m.caller.Team != "" {
			agent = m.agent
		}
	}
	r.tree.Stream.Publish(agent, body)
}

func (r *Runtime) leadAgent() event.Agent { return event.Agent{Session: r.info.SessionID} }

func (r *Runtime) leadCaller() tool.Caller {
	return tool.Caller{SessionID: r.info.SessionID, Cwd: r.cfg.Cwd, Model: r.models.name}
}

// part is what one session of the tree has of its own.
type part struct {
	ref       transcript.Ref
	caller    tool.Caller
	agent     event.Agent
	only      []string // names of the tools it may use; nil: all
	maxRounds int
	mode      permission.Mode // "": the lead's
	begins    func()
	idle      func(context.Context, *event.Outcome) (*session.Input, error)
	wake      <-chan struct{}
}

// open opens the transcript of a part and starts its session, which the caller
// closes.
func (r *Runtime) open(ctx context.Context, p part) (*session.Session, error) {
	log, err := r.stores.transcripts.Open(ctx, p.ref)
	if err != nil {
		return nil, err
	}
	model, name := r.models.named(p.caller.Model)
	p.caller.Model = name
	mail := &mailSource{teams: r.teams, caller: p.caller}
	return session.Open(ctx, session.Config{
		Ref: p.ref, Log: log, Tree: r.tree, Agent: p.agent, Caller: p.caller, Line: r.lineOf(p.caller),
		Model: model, ModelName: name, System: r.system, Tools: r.toolSet(p), MaxRounds: p.maxRounds,
		Policy: r.policyFor(p), Asks: r.stores.asks(p.ref), AskDeadline: r.settings.AskDeadline,
		Sources: []session.Source{mail, noticeSource{r.jobs, p.caller.Key()}}, Recall: mail.recall,
		Begins: p.begins, Idle: p.idle, Wake: p.wake,
	})
}

// policyFor is the tree's policy in the mode of the part: its own, else that of
// the lead at this moment.
func (r *Runtime) policyFor(p part) permission.Policy {
	policy := r.policy
	switch {
	case p.mode != "":
		policy.Mode = p.mode
	case r.lead != nil:
		policy.Mode = r.lead.State().Mode
	}
	return policy
}

// lineOf fills in what the transcript lines of a session say of it. A lead's
// team is the one that it leads at the moment of the line.
func (r *Runtime) lineOf(c tool.Caller) func() transcript.Entry {
	line := r.line
	line.Cwd, line.TeamName = c.Cwd, c.Team
	if c.Team != "" {
		line.AgentName = c.AgentName
	}
	return func() transcript.Entry {
		line := line
		if c.Team == "" {
			if seat, ok := r.teams.Seat(c); ok {
				line.TeamName = seat.Team
			}
		}
		return line
	}
}

// toolSet makes the tools of one session. Names, descriptions and schemas are
// the same for every agent of a team, so that they can share a prompt cache.
func (r *Runtime) toolSet(p part) *tool.Set {
	space := builtin.NewWorkspace(builtin.WorkspaceConfig{
		Dir: p.caller.Cwd, Ledger: r.ledger, Env: r.childEnv(), Closed: r.readDenied,
		Output: func(job string) string { return r.root.JobOutput(p.ref.Project, p.ref.Session, job) },
	})
	tools := slices.Concat(
		[]tool.Tool{builtin.AgentTool(r.teams, r, agentTypes)},
		builtin.FileTools(space, r.jobs),
		[]tool.Tool{builtin.AskUserQuestion()},
		builtin.TaskTools(r.teams),
		builtin.TeamTools(r.teams),
	)
	offered := func(t tool.Tool) bool {
		name := t.Spec().Name
		return (p.only == nil || slices.Contains(p.only, name)) && (r.cfg.Tools == nil || slices.Contains(r.cfg.Tools, name))
	}
	return tool.NewSet(slices.DeleteFunc(tools, func(t tool.Tool) bool { return !offered(t) })...)
}

// openLead opens the main session. A resumed one finds the team that it led.
func (r *Runtime) openLead(ctx context.Context, ref transcript.Ref) error {
	caller := r.leadCaller()
	if r.resumes() {
		if err := r.reopenTeam(ctx, caller); err != nil {
			return err
		}
	}
	p := part{ref: ref, caller: caller, agent: r.leadAgent(), maxRounds: r.cfg.MaxTurns}
	lead, err := r.open(ctx, p)
	if err != nil {
		return err
	}
	r.lead = lead
	r.info.Mode = string(lead.State().Mode)
	for _, t := range r.toolSet(p).All() {
		r.info.Tools = append(r.info.Tools, t.Spec().Name)
	}
	return nil
}

func (r *Runtime) resumes() bool { return (r.cfg.Continue || r.cfg.Resume != "") && !r.cfg.Fork }

// reopenTeam finds the team of a resumed lead. Teammates that ran inside the
// process that is gone have ended with it: their tasks are free again, and the
// lead is told.
func (r *Runtime) reopenTeam(ctx context.Context, caller tool.Caller) error {
	absent, _, err := r.teams.Reopen(ctx, caller)
	if err != nil {
		return err
	}
	seat, ok := r.teams.Seat(caller)
	if !ok {
		return nil
	}
	for _, m := range absent {
		if m.BackendType != "in-process" {
			continue
		}
		who := mailbox.Address{Team: seat.Team, Agent: m.Name}
		if err := r.teams.Gone(ctx, who, "it ran inside a process that has ended"); err != nil {
			return fmt.Errorf("take %s off its team: %w", who, err)
		}
	}
	return nil
}

func agentNames() []string {
	names := make([]string, len(agentTypes))
	for i, t := range agentTypes {
		names[i] = t.Name
	}
	return names
}

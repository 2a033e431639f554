package cadre

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/proc"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/policy"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

// compose makes what all sessions of the tree share beside the stores. What it
// lets run beside them ends with watch.
func (r *Runtime) compose(watch context.Context) {
	proc.Record(r.root.Runs())
	r.watching.Go(func() {
		if err := proc.Sweep(r.root.Runs()); err != nil {
			r.warn(fmt.Errorf("end what a killed process has left running: %w", err))
		}
	})
	r.jobs = job.NewPool(r.publishJob)
	r.planner = newPlanner(r)
	r.approvals = &policy.Approvals{Files: r.settingsFiles(), Cwd: r.cfg.Cwd, Notify: func(text string) {
		r.tree.Stream.Publish(r.leadAgent(), event.Noticed{Level: "info", Text: text})
	}}
	r.teams = team.New(team.Options{
		Store: r.stores.teams, Mail: r.stores.mail, Tasks: r.stores.tasks,
		Seals: r.stores.seals, Records: r.stores.records, Presence: r.stores.presence,
		Backend: r.backend(), Publish: r.publishTeam,
		Policy: team.Policy{PlanApproval: r.settings.PlanApproval, TrustUnsigned: r.settings.TrustUnsigned},
		Mode:   func() string { return string(r.lead.State().Mode) },
		Relay:  r.relayAsk, Settled: r.settledAsk, Answered: r.answeredAsk, Conversed: r.conversed, Shown: r.shownTo,
	})
	r.agentTool = builtin.AgentTool(r.teams, r, agentTypes)
	if r.backends != nil {
		r.watching.Go(func() { r.closePanes(watch) })
	}
	if r.cfg.Interactive {
		r.tree.Questions.Expect()
	}
	r.tally = event.NewTally(provider.Cost)
	whole := context.WithoutCancel(watch)
	figures, following := r.tree.Stream.Subscribe(whole, 0), r.tree.Stream.Subscribe(whole, 0)
	r.folding.Go(func() { r.tally.Fold(figures) })
	r.folding.Go(func() { r.follow(watch, following) })
	r.watching.Go(func() { r.tree.Questions.Serve(watch) })
}

// publishJob tells of a job in the name of the session that owns it.
func (r *Runtime) publishJob(owner string, body event.Body) {
	agent := r.leadAgent()
	if s, ok := r.tree.Sessions.Find(owner); ok {
		agent = s.Agent()
	}
	r.tree.Stream.Publish(agent, body)
}

// publishTeam tells of a team. The team room knows its agents by name; the lead
// of the tree is its root session.
func (r *Runtime) publishTeam(by event.Agent, body event.Body) {
	agent := r.leadAgent()
	for _, s := range r.tree.Sessions.Children() {
		if s.Agent().Name == by.Name && s.Caller().Team != "" {
			agent = s.Agent()
		}
	}
	r.tree.Stream.Publish(agent, body)
}

// leadAgent names the main session in events.
func (r *Runtime) leadAgent() event.Agent {
	agent := event.Agent{Session: r.info.SessionID}
	if mate := r.cfg.Teammate; mate != nil {
		agent.Name, agent.Color = mate.Name, mate.Color
	}
	return agent
}

// leadCaller is the identity of the main session.
func (r *Runtime) leadCaller() tool.Caller {
	caller := tool.Caller{SessionID: r.info.SessionID, Cwd: r.cfg.Cwd, Model: r.models.Name}
	if mate := r.cfg.Teammate; mate != nil {
		caller.AgentName, caller.AgentType, caller.Team = mate.Name, mate.Type, mate.Team
	}
	return caller
}

// part is what one session of the tree has of its own.
type part struct {
	ref       transcript.Ref
	caller    tool.Caller
	agent     event.Agent
	offers    func(tool.Spec) bool // which tools it may use; nil: all
	maxRounds int
	mode      permission.Mode // "": the lead's
	begins    func()
	ready     func(context.Context) // before mail is marked read; nil for nothing
	idle      func(context.Context, *event.Outcome) (*session.Input, error)
	wake      <-chan struct{}
	preface   func(context.Context) string // the runtime's words before its first input; nil for none
}

// open opens the transcript of a part and starts its session, which the caller
// closes.
func (r *Runtime) open(ctx context.Context, p part) (*session.Session, error) {
	log, err := r.stores.transcripts.Open(ctx, p.ref)
	if err != nil {
		return nil, err
	}
	past, err := r.adoptJobs(ctx, p)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	model, name := r.models.Named(p.caller.Model)
	p.caller.Model = name
	rules := r.policyFor(p)
	switch rules.Mode {
	case permission.Plan:
		p.preface = r.planner.preface(p.caller, p.preface)
	case permission.Delegate:
		p.preface = firstSay(policy.Delegating, p.preface)
	}
	mail := &mailSource{teams: r.teams, caller: p.caller, opened: r.opened, ready: p.ready}
	around := &around{part: p, mail: mail, past: past}
	return session.Open(ctx, session.Config{
		Ref: p.ref, Log: log, Tree: r.tree, Agent: p.agent, Caller: p.caller, Line: r.lineOf(p.caller),
		Model: model, ModelName: name, System: r.system, Tools: r.toolSet(p),
		Limits: session.Limits{Rounds: p.maxRounds, Repeats: r.settings.RepeatReminder},
		Policy: rules, Asks: r.stores.asks(p.ref), Gate: r.approvals,
		Voice: around, Life: around,
		Sources: []session.Source{mail, noticeSource{r.jobs, p.caller.Key(), r.opened}},
		Lean:    p.caller.AgentID != "",
	})
}

// adoptJobs takes up the jobs of a part whose transcript is open. Of a main session,
// nobody else has anything running.
func (r *Runtime) adoptJobs(ctx context.Context, p part) (*job.Past, error) {
	kept := r.stores.jobs(p.ref)
	if p.ref.Agent == "" {
		if err := kept.Settle(ctx, job.Lost()); err != nil {
			return nil, err
		}
	}
	return r.jobs.Adopt(ctx, p.caller.Key(), kept)
}

// policyFor is the tree's policy in the mode of the part: its own, else that of
// the lead at this moment. A lead that only delegates does so to agents that work.
func (r *Runtime) policyFor(p part) permission.Policy {
	rules := r.policy
	rules.PlanFile = symlink.Follow(r.planner.PlanFile(p.caller))
	switch {
	case p.mode != "":
		rules.Mode = p.mode
	case r.lead != nil:
		rules.Mode = policy.WorkMode(r.lead.State().Mode)
	}
	return rules
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
		[]tool.Tool{r.agentTool},
		builtin.FileTools(space, r.jobs),
		[]tool.Tool{builtin.AskUserQuestion()},
		builtin.PlanTools(r.planner),
		builtin.TaskTools(r.teams, space, r.jobs),
		builtin.TeamTools(r.teams),
		[]tool.Tool{builtin.WaitTool(r.teams, r.jobs)},
	)
	offered := func(t tool.Tool) bool {
		spec := t.Spec()
		return (p.offers == nil || p.offers(spec)) && (r.cfg.Tools == nil || slices.Contains(r.cfg.Tools, spec.Name))
	}
	return tool.NewSet(slices.DeleteFunc(tools, func(t tool.Tool) bool { return !offered(t) })...)
}

// openLead opens the main session. A resumed one finds the team that it led; one
// that is a teammate takes its place.
func (r *Runtime) openLead(ctx, watch context.Context, ref transcript.Ref) error {
	p := part{ref: ref, caller: r.leadCaller(), agent: r.leadAgent(), maxRounds: r.cfg.MaxTurns}
	var absent []roster.Member
	var err error
	switch {
	case r.cfg.Teammate != nil:
		if err = r.joinTeam(ctx); err == nil {
			err = r.seated(ctx, watch, &p)
		}
	case r.resumes():
		if err := r.tree.Questions.ClearRelayed(ctx, ref.Session); err != nil {
			r.warn(err)
		}
		absent, err = r.reopenTeam(ctx, &p)
	}
	if err != nil {
		return err
	}
	if r.lead, err = r.open(ctx, p); err != nil {
		return err
	}
	r.tree.Sessions.SetMain(r.lead)
	close(r.opened)
	if r.seat != nil {
		r.serveSeat(watch)
	}
	r.bringBack(ctx, absent)
	if r.resumes() {
		if err := r.tree.Questions.ClearOwn(ctx, ref.Session); err != nil {
			r.warn(err)
		}
	}
	r.info.Mode = string(r.lead.State().Mode)
	for _, t := range r.toolSet(p).All() {
		r.info.Tools = append(r.info.Tools, t.Spec().Name)
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

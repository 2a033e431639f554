package cadre

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/proc"
	"github.com/cadre-dev/cadre/internal/symlink"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/policy"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/subagent"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
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
	r.planner = &planner{tree: r.tree, root: r.root, before: make(map[string]permission.Mode)}
	r.approvals = &policy.Approvals{Files: r.settingsFiles(), Cwd: r.cfg.Cwd, Notify: func(text string) {
		r.tree.Stream.Publish(r.mainAgent(), event.Noticed{Level: "info", Text: text})
	}}
	r.tally = event.NewTally(provider.Cost)
	r.composeTeams()
	r.agentTool = builtin.AgentTool(r.teams, &subagent.Runner{
		Sessions: r, Tree: r.tree, Jobs: r.jobs, Transcripts: r.stores.transcripts, Tally: r.tally, Project: r.cfg.Cwd,
		Output: func(ref transcript.Ref) string { return r.root.Transcript(ref.Project, ref.Session, ref.Agent) },
	}, subagent.Types)
	if r.cfg.Interactive {
		r.tree.Questions.Expect()
	}
	if r.settings.AskDeadline > 0 {
		// Whoever looks at the desk may answer until then, also where nobody is
		// in front.
		r.tree.Questions.Elsewhere(func(context.Context, ask.Ask) error { return nil })
	}
	whole := context.WithoutCancel(watch)
	figures, following := r.tree.Stream.Subscribe(whole, 0), r.tree.Stream.Subscribe(whole, 0)
	r.folding.Go(func() { r.tally.Fold(figures) })
	r.folding.Go(func() { r.host.Follow(watch, following) })
	r.watching.Go(func() { r.tree.Questions.Serve(watch) })
	if r.backends != nil {
		r.watching.Go(func() {
			<-watch.Done()
			if err := r.backends.Close(context.WithoutCancel(watch)); err != nil {
				r.warn(err)
			}
		})
	}
}

// composeTeams makes what the process needs for its teams, and for the teammates that
// run here or elsewhere.
func (r *Runtime) composeTeams() {
	r.host = &teammate.Host{
		Sessions: r, Tree: r.tree, Jobs: r.jobs, Project: r.cfg.Cwd, Main: r.mainAgent(), PlanFile: r.planner.PlanFile,
	}
	conversations := teammate.Conversations{
		Transcripts: r.stores.transcripts, Asks: r.stores.asks, Jobs: r.stores.jobs, Desk: r.stores.desk,
	}
	relay := &teammate.Relay{Host: r.host, Decide: r.decideFor, Approvals: r.approvals}
	options := team.Options{
		Store: r.stores.teams, Mail: r.stores.mail, Tasks: r.stores.tasks,
		Seals: r.stores.seals, Records: r.stores.records, Presence: r.stores.presence,
		Publish: r.publishTeam,
		Policy:  team.Policy{PlanApproval: r.settings.PlanApproval, TrustUnsigned: r.settings.TrustUnsigned},
		Mode:    r.mainMode,
		Relay:   relay.Ask, Settled: relay.Withdrawn, Answered: relay.Answered,
		Conversed: conversations.Exists, Shown: conversations.Shown,
	}
	if r.cfg.Teammate == nil { // a teammate starts nobody
		r.backends = teammate.NewBackends(r.host, r.backendOptions(conversations))
		options.Backend = r.backends
	}
	r.teams = team.New(options)
	r.host.Teams, r.planner.teams = r.teams, r.teams
}

// publishJob tells of a job in the name of the session that owns it.
func (r *Runtime) publishJob(owner string, body event.Body) {
	agent := r.mainAgent()
	if s, ok := r.tree.Sessions.Find(owner); ok {
		agent = s.Agent()
	}
	r.tree.Stream.Publish(agent, body)
}

// publishTeam tells of a team. The team room knows its agents by name; the lead
// of the tree is its root session.
func (r *Runtime) publishTeam(by event.Agent, body event.Body) {
	agent := r.mainAgent()
	for _, s := range r.tree.Sessions.Children() {
		if s.Agent().Name == by.Name && s.Caller().Team != "" {
			agent = s.Agent()
		}
	}
	r.tree.Stream.Publish(agent, body)
}

// mainAgent names the main session in events.
func (r *Runtime) mainAgent() event.Agent {
	agent := event.Agent{Session: r.info.SessionID}
	if mate := r.cfg.Teammate; mate != nil {
		agent.Name, agent.Color = mate.Name, mate.Color
	}
	return agent
}

// mainMode is the permission mode of the main session at this moment.
func (r *Runtime) mainMode() string { return string(r.main.State().Mode) }

// mainCaller is the identity of the main session.
func (r *Runtime) mainCaller() tool.Caller {
	caller := tool.Caller{SessionID: r.info.SessionID, Cwd: r.cfg.Cwd, Model: r.models.Name}
	if mate := r.cfg.Teammate; mate != nil {
		caller.AgentName, caller.AgentType, caller.Team = mate.Name, mate.Type, mate.Team
	}
	return caller
}

// Open opens the conversation of an agent of this process and starts its session, which
// the caller closes. It is for the rooms that start agents ([subagent.Opener],
// [teammate.Opener]).
func (r *Runtime) Open(ctx context.Context, s session.Spec) (*session.Session, error) {
	log, err := r.stores.transcripts.Open(ctx, s.Ref)
	if err != nil {
		return nil, err
	}
	past, err := r.adoptJobs(ctx, s)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	model, name := r.models.Named(s.Caller.Model)
	s.Caller.Model = name
	rules := r.policyFor(s)
	switch rules.Mode {
	case permission.Plan:
		s.Preface = r.planner.preface(s.Caller, s.Preface)
	case permission.Delegate:
		s.Preface = firstSay(policy.Delegating, s.Preface)
	}
	mail := &teammate.Mail{Teams: r.teams, Caller: s.Caller, Opened: r.opened, BeforeRead: s.BeforeMailIsRead}
	around := &around{spec: s, mail: mail, past: past}
	return session.Open(ctx, session.Config{
		Ref: s.Ref, Log: log, Tree: r.tree, Agent: s.Agent, Caller: s.Caller, Line: r.lineOf(s.Caller),
		Model: model, ModelName: name, System: r.system, Tools: r.toolSet(s),
		Limits: session.Limits{Rounds: s.MaxRounds, Repeats: r.settings.RepeatReminder},
		Policy: rules, Asks: r.stores.asks(s.Ref), Gate: r.approvals,
		Voice: around, Life: around,
		Sources: []session.Source{mail, noticeSource{r.jobs, s.Caller.Key(), r.opened}},
		Lean:    s.Caller.AgentID != "",
	})
}

// adoptJobs takes over the jobs of a session whose transcript is open. Of a main session,
// nobody else has anything running.
func (r *Runtime) adoptJobs(ctx context.Context, s session.Spec) (*job.Past, error) {
	kept := r.stores.jobs(s.Ref)
	if s.Ref.Agent == "" {
		if err := kept.Settle(ctx, job.Lost()); err != nil {
			return nil, err
		}
	}
	return r.jobs.Adopt(ctx, s.Caller.Key(), kept)
}

// policyFor is the policy of the process in the mode of a session: its own, else that
// of the main session at this moment. A lead that only delegates does so to agents that work.
func (r *Runtime) policyFor(s session.Spec) permission.Policy {
	rules := r.policy
	rules.PlanFile = symlink.Follow(r.planner.PlanFile(s.Caller))
	switch {
	case s.Mode != "":
		rules.Mode = s.Mode
	case r.main != nil:
		rules.Mode = policy.WorkMode(r.main.State().Mode)
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
func (r *Runtime) toolSet(s session.Spec) *tool.Set {
	space := builtin.NewWorkspace(builtin.WorkspaceConfig{
		Dir: s.Caller.Cwd, Ledger: r.ledger, Env: r.childEnv(), Closed: r.readDenied,
		Output: func(job string) string { return r.root.JobOutput(s.Ref.Project, s.Ref.Session, job) },
	})
	tools := slices.Concat(
		[]tool.Tool{r.agentTool},
		builtin.FileTools(space, r.jobs),
		[]tool.Tool{builtin.AskUserQuestion()},
		builtin.PlanTools(r.planner),
		builtin.TaskTools(r.teams, space, r.jobs),
		builtin.TeamTools(r.teams, r.cfg.Root.TeamConfig),
		[]tool.Tool{builtin.WaitTool(r.teams, r.jobs)},
	)
	offered := func(t tool.Tool) bool {
		spec := t.Spec()
		return (s.Offers == nil || s.Offers(spec)) && (r.cfg.Tools == nil || slices.Contains(r.cfg.Tools, spec.Name))
	}
	return tool.NewSet(slices.DeleteFunc(tools, func(t tool.Tool) bool { return !offered(t) })...)
}

// openMain opens the main session. A resumed one finds the team that it led; one that is
// a teammate takes its place.
func (r *Runtime) openMain(ctx, watch context.Context, ref transcript.Ref) error {
	spec := session.Spec{Ref: ref, Caller: r.mainCaller(), Agent: r.mainAgent(), MaxRounds: r.cfg.MaxTurns}
	absent, err := r.takePlace(ctx, watch, &spec)
	if err != nil {
		return err
	}
	if r.main, err = r.Open(ctx, spec); err != nil {
		return err
	}
	r.tree.Sessions.SetMain(r.main)
	close(r.opened)
	if r.own != nil {
		r.watching.Go(func() { r.own.Serve(watch, r.main) })
	}
	if r.backends != nil {
		r.backends.Resume(ctx, spec.Caller, absent)
	}
	if r.resumes() {
		if err := r.tree.Questions.ClearOwn(ctx, ref.Session); err != nil {
			r.warn(err)
		}
	}
	r.info.Mode = r.mainMode()
	for _, t := range r.toolSet(spec).All() {
		r.info.Tools = append(r.info.Tools, t.Spec().Name)
	}
	return nil
}

// takePlace takes the place that the main session has in a team, before it is opened:
// as a teammate, or as the lead of the team that a resumed session led. It returns the
// teammates of that team that run nowhere.
func (r *Runtime) takePlace(ctx, watch context.Context, spec *session.Spec) (absent []roster.Member, err error) {
	mate := r.cfg.Teammate
	switch {
	case mate != nil:
		if r.own, err = teammate.Join(ctx, r.host, spec.Caller, r.settings.OrphanGrace); err != nil {
			return nil, err
		}
		release, err := r.own.Prepare(ctx, spec, mate.MustPlan, r.resumes())
		if err != nil {
			return nil, err
		}
		r.watching.Go(func() {
			<-watch.Done()
			release()
		})
	case r.resumes():
		if err := r.tree.Questions.ClearRelayed(ctx, spec.Ref.Session); err != nil {
			r.warn(err)
		}
		return r.host.ReopenTeam(ctx, spec)
	}
	return nil, nil
}

func agentNames() []string {
	names := make([]string, len(subagent.Types))
	for i, t := range subagent.Types {
		names[i] = t.Name
	}
	return names
}

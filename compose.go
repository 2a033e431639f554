package cadre

import (
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/proc"
	"github.com/cadre-dev/cadre/job"
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
	proc.Record(r.cfg.Root.Runs())
	r.watching.Go(func() {
		if err := proc.Sweep(r.cfg.Root.Runs()); err != nil {
			r.warn(fmt.Errorf("end what a killed process has left running: %w", err))
		}
	})
	r.jobs = job.NewPool(r.publishJob)
	r.sessions.jobs = r.jobs
	r.sessions.planner = newPlanner(r.tree, r.cfg.Root)
	r.sessions.approvals = &policy.Approvals{Files: r.cfg.settingsFiles(), Cwd: r.cfg.Cwd, Notify: func(text string) {
		r.tree.Stream.Publish(r.mainAgent(), event.Noticed{Level: "info", Text: text})
	}}
	r.tally = event.NewTally(provider.Cost)
	r.composeTeams()
	r.sessions.agentTool = builtin.AgentTool(r.teams, &subagent.Runner{
		Sessions: r.sessions, Tree: r.tree, Jobs: r.jobs, Transcripts: r.stores.transcripts, Tally: r.tally, Project: r.cfg.Cwd,
		Output: func(ref transcript.Ref) string { return r.cfg.Root.Transcript(ref.Project, ref.Session, ref.Agent) },
	}, subagent.Types)
	if r.cfg.Interactive {
		r.tree.Questions.Expect()
	}
	if r.settings.AskDeadline > 0 {
		// A person may answer on the desk until then, also where nobody is
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
		Sessions: r.sessions, Tree: r.tree, Jobs: r.jobs, Records: r.stores.records, Tally: r.tally, Project: r.cfg.Cwd, Main: r.mainAgent(), PlanFile: r.sessions.planner.PlanFile,
	}
	conversations := teammate.Conversations{
		Transcripts: r.stores.transcripts, Asks: r.stores.asks, Jobs: r.stores.jobs, Desk: r.stores.desk,
	}
	relay := &teammate.Relay{Host: r.host, Decide: r.sessions.decideFor, Approvals: r.sessions.approvals}
	r.elsewhere = teammate.NewUsageElsewhere(r.stores.records, r.info.SessionID)
	options := team.Options{
		Store: r.stores.teams, Mail: r.stores.mail, Tasks: r.stores.tasks,
		Seals: r.stores.seals, Records: r.stores.records, Presence: r.stores.presence,
		Publish: r.publishTeam,
		Policy:  team.Policy{PlanApproval: r.settings.PlanApproval, TrustUnsigned: r.settings.TrustUnsigned},
		Mode:    r.mainMode,
		Relay:   relay.Ask, Withdrawn: relay.Withdrawn, Answered: relay.Answered,
		Conversed: conversations.Exists, Shown: conversations.Shown, Removing: r.elsewhere.End,
	}
	if r.cfg.Teammate == nil { // a teammate starts nobody
		r.backends = teammate.NewBackends(r.host, r.backendOptions(conversations))
		options.Backend = r.backends
	}
	r.teams = team.New(options)
	r.host.Teams, r.sessions.teams, r.sessions.planner.teams = r.teams, r.teams, r.teams
}

// publishJob publishes an event of a job in the name of the session that owns it.
func (r *Runtime) publishJob(owner string, body event.Body) {
	agent := r.mainAgent()
	if s, ok := r.tree.Sessions.Find(owner); ok {
		agent = s.Agent()
	}
	r.tree.Stream.Publish(agent, body)
}

// publishTeam publishes an event of a team. The team room knows its agents by name; the lead
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
	caller := tool.Caller{SessionID: r.info.SessionID, Cwd: r.cfg.Cwd, Model: r.info.Model}
	if mate := r.cfg.Teammate; mate != nil {
		caller.AgentName, caller.AgentType, caller.Team = mate.Name, mate.Type, mate.Team
	}
	return caller
}

// openMain opens the main session. A resumed one finds the team that it led; one that is
// a teammate takes its place.
func (r *Runtime) openMain(ctx, watch context.Context, ref transcript.Ref) error {
	spec := session.Spec{Ref: ref, Caller: r.mainCaller(), Agent: r.mainAgent(), MaxRounds: r.cfg.MaxTurns}
	absent, err := r.enterTeam(ctx, watch, &spec)
	if err != nil {
		return err
	}
	if r.main, err = r.sessions.Open(ctx, spec); err != nil {
		return err
	}
	r.tree.Sessions.SetMain(r.main)
	close(r.sessions.opened)
	if r.own != nil {
		r.watching.Go(func() { r.own.Serve(watch, r.main) })
	}
	if r.backends != nil {
		r.backends.Resume(ctx, spec.Caller, absent)
	}
	if r.cfg.resumes() {
		if err := r.tree.Questions.ClearOwn(ctx, ref.Session); err != nil {
			r.warn(err)
		}
	}
	r.info.Mode = r.mainMode()
	for _, t := range r.sessions.toolSet(spec).All() {
		r.info.Tools = append(r.info.Tools, t.Spec().Name)
	}
	return nil
}

// enterTeam takes the place of the main session in its team, before it is opened:
// as a teammate, or as the lead of the team that a resumed session led. It returns the
// teammates of that team that run nowhere.
func (r *Runtime) enterTeam(ctx, watch context.Context, spec *session.Spec) (absent []roster.Member, err error) {
	mate := r.cfg.Teammate
	switch {
	case mate != nil:
		if r.own, err = teammate.Join(ctx, r.host, spec.Caller, r.settings.OrphanGrace); err != nil {
			return nil, err
		}
		release, err := r.own.Prepare(ctx, spec, mate.MustPlan, r.cfg.resumes())
		if err != nil {
			return nil, err
		}
		r.watching.Go(func() {
			<-watch.Done()
			release()
		})
	case r.cfg.resumes():
		if err := r.tree.Questions.ClearRelayed(ctx, spec.Ref.Session); err != nil {
			r.warn(err)
		}
		absent, err := r.host.ReopenTeam(ctx, spec)
		if seat, ok := r.teams.Seat(spec.Caller); ok && err == nil {
			if err := r.elsewhere.Begin(ctx, seat.Team); err != nil {
				r.warn(err)
			}
		}
		return absent, err
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

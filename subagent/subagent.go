// Package subagent runs sub-agents: child sessions that do one piece of work for the
// agent that called the Agent tool, and end. A sub-agent is a job, so its caller can wait
// for it, leave it to the background, and stop it like any other job.
package subagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

// Opener opens the sessions of a process. The caller closes them.
type Opener interface {
	Open(ctx context.Context, s session.Spec) (*session.Session, error)
}

// Runner starts the sub-agents of a process. It keeps nothing; its methods may be
// called from any goroutine.
type Runner struct {
	Sessions    Opener
	Tree        *session.Tree
	Jobs        *job.Pool
	Transcripts transcript.Store
	Tally       *event.Tally // of the tree's events
	Project     string       // the working folder that names the transcripts' project
	// Output is the file that shows what a sub-agent does.
	Output func(transcript.Ref) string
}

// Types are the types of agents that can be started.
var Types = []builtin.AgentType{
	{Name: prompt.GeneralPurpose, Description: "works with all tools: for self-contained pieces of work, and for searches that take many steps"},
	{Name: prompt.Explore, Description: "only reads and searches: for questions about the code that need a wide look and whose details you do not need to see"},
}

// maxDepth is how deep sub-agents may start sub-agents.
const maxDepth = 3

// SpawnSubAgent implements [builtin.Spawner]. A sub-agent is a job: moved to the
// background it goes on, and its end becomes a notice.
func (r *Runner) SpawnSubAgent(ctx context.Context, q builtin.SubAgentRequest) (builtin.SubAgentResult, error) {
	if q.Caller.Depth >= maxDepth {
		return builtin.SubAgentResult{}, fmt.Errorf("sub-agents may nest %d deep, and you are that deep: do the work yourself", maxDepth)
	}
	ref := transcript.Ref{Project: r.Project, Session: q.Caller.SessionID, Agent: q.Resume}
	if err := r.checkResume(ctx, ref); err != nil {
		return builtin.SubAgentResult{}, err
	}
	spec := job.Spec{
		Kind: job.Agent, Title: q.Description, Owner: q.Caller.Key(), Call: q.Call, Waited: !q.Background,
		Output: func(string) string { return r.Output(ref) },
	}
	if q.Resume == "" {
		ref.Agent = "a" + ids.Hex(6)
		spec.ID = ref.Agent
	}
	spec.Agent = ref.Agent
	var result builtin.SubAgentResult
	var failed error
	j, err := r.Jobs.Start(ctx, spec, func(ctx context.Context, _ *job.Job) job.Result {
		result, failed = r.runSubAgent(ctx, ref, q)
		return job.Result{Text: transcript.JoinText(result.Content), Tokens: result.Tokens, ToolUses: result.ToolCalls, Err: failed}
	})
	if err != nil {
		return builtin.SubAgentResult{}, err
	}
	launched := builtin.SubAgentResult{AgentID: ref.Agent, Async: true, OutputFile: j.Info().OutputFile}
	if q.Background {
		return launched, nil
	}
	switch _, err := j.WaitOrStop(ctx); {
	case errors.Is(err, job.ErrDetached):
		return launched, nil
	case err != nil:
		return builtin.SubAgentResult{AgentID: ref.Agent}, err
	}
	return result, failed
}

// checkResume refuses to go on with an agent that is not there or still at work.
func (r *Runner) checkResume(ctx context.Context, ref transcript.Ref) error {
	if ref.Agent == "" {
		return nil
	}
	if _, live := r.Tree.Sessions.Find(ref.Agent); live {
		return fmt.Errorf("agent %s is still at work", ref.Agent)
	}
	kept, err := r.Transcripts.Exists(ctx, ref)
	if err == nil && !kept {
		err = transcript.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("resume agent %s: %w", ref.Agent, err)
	}
	return nil
}

// runSubAgent runs a sub-agent until it is idle and its own jobs have ended.
func (r *Runner) runSubAgent(ctx context.Context, ref transcript.Ref, q builtin.SubAgentRequest) (builtin.SubAgentResult, error) {
	started := time.Now()
	caller := tool.Caller{
		SessionID: ref.Session, AgentID: ref.Agent, AgentName: q.Type, AgentType: q.Type, Team: q.Caller.Team,
		Depth: q.Caller.Depth + 1, Cwd: q.Caller.Cwd, Model: q.Model,
	}
	if caller.Model == "" {
		caller.Model = q.Caller.Model
	}
	agent := event.Agent{Session: ref.Session, ID: ref.Agent, Name: q.Type, Call: q.Call}
	ended := make(chan event.Outcome, 1)
	spec := session.Spec{Ref: ref, Caller: caller, Agent: agent, MaxRounds: q.MaxTurns, Life: &errand{r.Jobs, ref.Agent, ended}}
	if parent, ok := r.Tree.Sessions.Find(q.Caller.AgentID); ok && parent.State().Mode == permission.Plan {
		spec.Mode = permission.Plan // who plans cannot have others change things
	}
	if q.Type == prompt.Explore {
		spec.Offers = func(t tool.Spec) bool { return t.Reads }
	}
	result := builtin.SubAgentResult{AgentID: ref.Agent}
	sess, err := r.Sessions.Open(ctx, spec)
	if err != nil {
		return result, err
	}
	gone, err := r.Tree.Sessions.Add(session.Child{
		Session: sess, Ended: func() { r.Jobs.Release(caller.Key(), session.ErrClosed) }, Gone: func() {},
	}, event.AgentStarted{Type: q.Type, Model: caller.Model, Prompt: q.Prompt})
	if err == nil {
		err = sess.Send(ctx, firstInput(q))
	}
	if err != nil {
		return result, errors.Join(err, sess.Close(err))
	}
	select {
	case <-gone:
	case <-ctx.Done():
		_ = sess.Close(context.Cause(ctx))
		<-gone
	}
	r.Tally.Until(r.Tree.Stream.Published(), ctx.Done())
	sum := r.Tally.Of(ref.Agent)
	result.ToolCalls, result.Tokens, result.Took = sum.ToolCalls, sum.Spent().Usage.Total(), time.Since(started)
	select {
	case out := <-ended:
		result.Content = []transcript.Block{transcript.TextBlock(out.Text)}
		return result, outcomeError(out)
	default:
		result.Content = []transcript.Block{transcript.TextBlock(sum.LastText)}
		return result, context.Cause(ctx)
	}
}

func firstInput(q builtin.SubAgentRequest) session.Input {
	in := session.Text(session.Prompt, q.Prompt)
	in.Title = q.Description
	if intro := prompt.SubAgent(q.Type); intro != "" && q.Resume == "" {
		in.Content = append([]transcript.Block{transcript.TextBlock(intro)}, in.Content...)
	}
	return in
}

// errand is the life of a sub-agent ([session.Life]): it leaves as soon as nothing of it
// runs any more.
type errand struct {
	jobs  *job.Pool
	key   string // of the sub-agent, as an owner of jobs
	ended chan<- event.Outcome
}

// Begins implements [session.Life].
func (e *errand) Begins() {}

// Wake implements [session.Life].
func (e *errand) Wake() <-chan struct{} { return nil }

// Idle implements [session.Life].
func (e *errand) Idle(_ context.Context, last *event.Outcome) (*session.Input, error) {
	if len(e.jobs.Active(e.key)) > 0 || e.jobs.Waiting(e.key) > 0 {
		return nil, nil // the notice of their end wakes it
	}
	if last != nil {
		e.ended <- *last
	}
	return nil, session.ErrLeave
}

// outcomeError is why a turn did not end well; nil when it did.
func outcomeError(o event.Outcome) error {
	switch o.Reason {
	case event.Done:
		return nil
	case event.MaxRounds:
		return errors.New("it reached its limit of rounds before it was done")
	case event.Interrupted:
		return session.ErrInterrupt
	}
	return errors.New(o.Err)
}

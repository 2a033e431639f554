package cadre

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// inProcess runs teammates as sessions of this process ([team.Backend]).
type inProcess struct {
	r *Runtime

	mu    sync.Mutex
	mates map[mailbox.Address]*session.Session
}

func newInProcess(r *Runtime) *inProcess {
	return &inProcess{r: r, mates: make(map[mailbox.Address]*session.Session)}
}

// Kind implements [team.Backend].
func (b *inProcess) Kind(context.Context) (string, error) { return roster.InProcess, nil }

// Start implements [team.Backend]: it opens the teammate's session and gives it
// its first input.
func (b *inProcess) Start(ctx context.Context, s team.Spawn) (team.Started, error) {
	ref, agentID := b.conversationOf(s)
	caller := tool.Caller{
		SessionID: s.LeadSession, AgentID: agentID, AgentName: s.Member.Name, AgentType: s.Member.AgentType,
		Team: s.Seat.Team, Cwd: s.Member.Cwd, Model: s.Member.Model,
	}
	mode, err := b.r.mateMode(ctx, s.Seat, s.Member.PlanModeRequired)
	if err != nil {
		return team.Started{}, err
	}
	p := part{
		ref: ref, caller: caller, mode: mode, begins: s.Seat.Working, idle: b.r.idleSeat(s.Seat),
		agent: event.Agent{Session: s.LeadSession, ID: agentID, Name: s.Member.Name, Color: s.Member.Color},
	}
	var unwatch func()
	p.wake, unwatch = s.Seat.WatchTasks()
	sess, err := b.r.open(ctx, p)
	if err != nil {
		unwatch()
		return team.Started{}, err
	}
	if err := b.enter(ctx, s, p, sess, unwatch); err != nil {
		return team.Started{}, errors.Join(err, sess.Close(err))
	}
	if s.Record != nil {
		b.r.dropOldAsks(ctx, s.Seat)
	}
	return team.Started{}, sess.Send(ctx, firstMateInput(s))
}

// conversationOf says where a teammate's conversation lies: of one that comes
// back where it was, also when that was a main session of its own.
func (b *inProcess) conversationOf(s team.Spawn) (ref transcript.Ref, agentID string) {
	agentID = "t" + ids.Hex(6)
	ref = transcript.Ref{Project: b.r.cfg.Cwd, Session: s.LeadSession, Agent: agentID}
	if s.Record != nil {
		ref = transcript.Ref{Project: s.Record.Project, Session: s.Record.SessionID, Agent: s.Record.AgentID}
		if s.Record.AgentID != "" {
			agentID = s.Record.AgentID
		}
	}
	return ref, agentID
}

// enter makes an opened teammate a member of the tree, and keeps what it takes to
// bring it back.
func (b *inProcess) enter(ctx context.Context, s team.Spawn, p part, sess *session.Session, unwatch func()) error {
	err := s.Seat.Remember(ctx, roster.AgentRecord{
		AgentID: p.ref.Agent, SessionID: p.ref.Session, Project: p.ref.Project, Backend: roster.InProcess,
		Description: s.Description, Mode: string(p.mode), PlanFile: b.r.planner.PlanFile(p.caller), Signs: true,
	})
	if err != nil {
		unwatch()
		return err
	}
	who := s.Seat.Address()
	b.mu.Lock()
	b.mates[who] = sess
	b.mu.Unlock()
	gone := context.WithoutCancel(ctx)
	started := event.AgentStarted{Type: s.Member.AgentType, Model: s.Member.Model, Teammate: true, Prompt: s.Member.Prompt}
	_, err = b.r.addChild(sess, started, s.Seat.Stopping(), func() { // lives as long as the teammate, so it holds no more than it needs
		unwatch()
		b.ended(gone, who)
	})
	if err != nil {
		unwatch()
	}
	return err
}

func firstMateInput(s team.Spawn) session.Input {
	in := session.Input{Rank: session.Prompt, Title: s.Description}
	if s.Introduction != "" {
		in.Content = append(in.Content, transcript.TextBlock(s.Introduction))
	}
	in.Content = append(in.Content, transcript.TextBlock(s.Input))
	return in
}

// ended tells the team that a session is over, however that came.
func (b *inProcess) ended(ctx context.Context, who mailbox.Address) {
	b.mu.Lock()
	delete(b.mates, who)
	b.mu.Unlock()
	if b.r.tree.Sessions.Closed() {
		return // the team stays as it is, to be resumed
	}
	if err := b.r.teams.Gone(ctx, who, "its session has ended"); err != nil {
		b.r.tree.Stream.Publish(event.Agent{Name: who.Agent}, event.Noticed{Level: "warning", Text: err.Error()})
	}
}

// leaveTime is how long a teammate that agreed to shut down may take to end its
// turn.
const leaveTime = 5 * time.Second

// Stop implements [team.Backend].
func (b *inProcess) Stop(ctx context.Context, who mailbox.Address, cause error) error {
	b.mu.Lock()
	sess := b.mates[who]
	b.mu.Unlock()
	if sess == nil {
		return nil
	}
	if errors.Is(cause, team.ErrShutdownApproved) {
		grace := time.NewTimer(leaveTime)
		defer grace.Stop()
		select {
		case <-sess.Done():
		case <-grace.C:
		case <-ctx.Done():
		}
	}
	return sess.Close(cause)
}

// mateMode is the permission mode that a teammate begins in: "" is its lead's. One
// that has to plan first plans until a plan of its was approved.
func (r *Runtime) mateMode(ctx context.Context, seat *team.Seat, mustPlan bool) (permission.Mode, error) {
	if !mustPlan {
		return "", nil
	}
	name, approved, err := seat.ApprovedMode(ctx)
	if err != nil || !approved {
		return permission.Plan, err
	}
	return permission.ParseMode(name)
}

// idleSeat is what a teammate does when it becomes idle: it leaves when it has
// agreed to shut down, or would have to and cannot say so; else it takes an open
// task; else it tells the lead.
func (r *Runtime) idleSeat(seat *team.Seat) func(context.Context, *event.Outcome) (*session.Input, error) {
	return func(ctx context.Context, last *event.Outcome) (*session.Input, error) {
		if left, err := hasLeft(ctx, seat, last); left || err != nil {
			return nil, errors.Join(err, leaving(left))
		}
		if last != nil {
			seat.Stall(last.Stalled)
		}
		claimed, ok, err := seat.Claim(ctx)
		if err != nil {
			return nil, fmt.Errorf("take a task: %w", err)
		}
		if ok {
			r.takes(ctx)
			in := mailInput(claimed)
			in.Kept = func(ctx context.Context, err error) {
				if err != nil {
					_ = seat.GiveBackTasks(ctx) // nobody would know that it is ours
				}
			}
			return &in, nil
		}
		if last == nil {
			return nil, nil
		}
		reason, failure := idleReason(*last)
		// Whoever finds it idle in the roster finds its note in the lead's inbox.
		return nil, errors.Join(seat.NotifyIdle(ctx, reason, failure), r.rests(ctx))
	}
}

// hasLeft reports whether a teammate has agreed to shut down. When its model
// cannot answer, since its turns fail, its runtime agrees for it.
func hasLeft(ctx context.Context, seat *team.Seat, last *event.Outcome) (bool, error) {
	select {
	case <-seat.Left():
		return true, nil
	default:
	}
	if last == nil || last.Reason != event.Failed {
		return false, nil
	}
	return seat.TurnFailed(ctx)
}

func leaving(left bool) error {
	if left {
		return session.ErrLeave
	}
	return nil
}

func idleReason(o event.Outcome) (reason protocol.IdleReason, failure string) {
	switch o.Reason {
	case event.Interrupted:
		return protocol.IdleInterrupted, ""
	case event.Failed, event.MaxRounds:
		return protocol.IdleFailed, o.Err
	}
	return protocol.Available, ""
}

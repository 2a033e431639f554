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
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
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
func (b *inProcess) Kind() string { return "in-process" }

// Start implements [team.Backend]: it opens the teammate's session and gives it
// its first input.
func (b *inProcess) Start(ctx context.Context, s team.Spawn) error {
	caller := tool.Caller{
		SessionID: s.LeadSession, AgentID: "t" + ids.Hex(6), AgentName: s.Member.Name, AgentType: s.Member.AgentType,
		Team: s.Seat.Team, Cwd: s.Member.Cwd, Model: s.Member.Model,
	}
	agent := event.Agent{Session: s.LeadSession, ID: caller.AgentID, Name: s.Member.Name, Color: s.Member.Color}
	wake, unwatch := s.Seat.WatchTasks()
	sess, err := b.r.open(ctx, part{
		ref:    transcript.Ref{Project: b.r.cfg.Cwd, Session: s.LeadSession, Agent: caller.AgentID},
		caller: caller, agent: agent, begins: s.Seat.Working, idle: idleTeammate(s.Seat), wake: wake,
	})
	if err != nil {
		unwatch()
		return err
	}
	b.add(s.Seat.Address(), sess)
	gone := context.WithoutCancel(ctx)
	_, err = b.r.addMember(&member{caller, agent, sess}, event.AgentStarted{
		Type: s.Member.AgentType, Model: s.Member.Model, Teammate: true, Prompt: s.Member.Prompt,
	}, func() {
		unwatch()
		b.ended(gone, s.Seat.Address())
	})
	if err != nil {
		unwatch()
		return errors.Join(err, sess.Close(err))
	}
	return sess.Send(ctx, session.Input{
		Rank: session.Prompt, Title: s.Description,
		Content: []transcript.Block{transcript.TextBlock(s.Introduction), transcript.TextBlock(s.Input)},
	})
}

func (b *inProcess) add(who mailbox.Address, sess *session.Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mates[who] = sess
}

// ended tells the team that a session is over, however that came.
func (b *inProcess) ended(ctx context.Context, who mailbox.Address) {
	b.mu.Lock()
	delete(b.mates, who)
	b.mu.Unlock()
	if b.r.members.areClosed() {
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

// idleTeammate is what a teammate does when it becomes idle: it leaves when it
// has agreed to shut down; else it takes an open task; else it tells the lead.
func idleTeammate(seat *team.Seat) func(context.Context, *event.Outcome) (*session.Input, error) {
	return func(ctx context.Context, last *event.Outcome) (*session.Input, error) {
		select {
		case <-seat.Left():
			return nil, session.ErrLeave
		default:
		}
		claimed, ok, err := seat.Claim(ctx)
		if err != nil {
			return nil, fmt.Errorf("take a task: %w", err)
		}
		if ok {
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
		return nil, seat.NotifyIdle(ctx, reason, failure)
	}
}

func idleReason(o event.Outcome) (reason team.IdleReason, failure string) {
	switch o.Reason {
	case event.Interrupted:
		return team.IdleInterrupted, ""
	case event.Failed, event.MaxRounds:
		return team.IdleFailed, o.Err
	}
	return team.Available, ""
}

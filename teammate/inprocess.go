package teammate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// inProcess runs teammates as sessions of this process ([team.Backend]).
type inProcess struct {
	host *Host

	mu    sync.Mutex
	mates map[mailbox.Address]*session.Session
}

func newInProcess(h *Host) *inProcess {
	return &inProcess{host: h, mates: make(map[mailbox.Address]*session.Session)}
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
	mode, err := startingMode(ctx, s.Seat, s.Member.PlanModeRequired)
	if err != nil {
		return team.Started{}, err
	}
	spec := session.Spec{
		Ref: ref, Caller: caller, Mode: mode,
		Agent: event.Agent{Session: s.LeadSession, ID: agentID, Name: s.Member.Name, Color: s.Member.Color},
	}
	life, unwatch := b.host.newLife(s.Seat)
	spec.Life = life
	sess, err := b.host.Sessions.Open(ctx, spec)
	if err != nil {
		unwatch()
		return team.Started{}, err
	}
	if err := b.register(ctx, s, spec, sess, unwatch); err != nil {
		return team.Started{}, errors.Join(err, sess.Close(err))
	}
	if s.Record != nil {
		b.host.withdrawStale(ctx, s.Seat)
	}
	return team.Started{}, sess.Send(ctx, firstInput(s))
}

// conversationOf says where a teammate's conversation is stored. One that comes back
// goes on where it was, also when that was the main session of another process.
func (b *inProcess) conversationOf(s team.Spawn) (ref transcript.Ref, agentID string) {
	agentID = "t" + ids.Hex(6)
	ref = transcript.Ref{Project: b.host.Project, Session: s.LeadSession, Agent: agentID}
	if s.Record != nil {
		ref = transcript.Ref{Project: s.Record.Project, Session: s.Record.SessionID, Agent: s.Record.AgentID}
		if s.Record.AgentID != "" {
			agentID = s.Record.AgentID
		}
	}
	return ref, agentID
}

// register makes the session of a teammate a child of the main one, and stores what it
// takes to bring the teammate back.
func (b *inProcess) register(ctx context.Context, s team.Spawn, spec session.Spec, sess *session.Session, unwatch func()) error {
	err := s.Seat.Remember(ctx, roster.AgentRecord{
		AgentID: spec.Ref.Agent, SessionID: spec.Ref.Session, Project: spec.Ref.Project, Backend: roster.InProcess,
		Description: s.Description, Mode: string(spec.Mode), PlanFile: b.host.PlanFile(spec.Caller), Signs: true,
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
	key := spec.Caller.Key()
	// These live as long as the teammate, so they hold no more than they need.
	_, err = b.host.Tree.Sessions.Add(session.Child{
		Session: sess, Stop: s.Seat.Stopping(), Ended: func() { b.host.Jobs.Release(key, session.ErrClosed) },
		Gone: func() {
			unwatch()
			b.ended(gone, who)
		},
	}, started)
	if err != nil {
		unwatch()
	}
	return err
}

func firstInput(s team.Spawn) session.Input {
	in := session.Input{Rank: session.Prompt, Title: s.Description}
	if s.Introduction != "" {
		in.Content = append(in.Content, transcript.TextBlock(s.Introduction))
	}
	in.Content = append(in.Content, transcript.TextBlock(s.Input))
	return in
}

// ended reports to the team that the session of a teammate has ended, for whatever
// reason.
func (b *inProcess) ended(ctx context.Context, who mailbox.Address) {
	b.mu.Lock()
	delete(b.mates, who)
	b.mu.Unlock()
	if b.host.Tree.Sessions.Closed() {
		return // the team stays as it is, to be resumed
	}
	if err := b.host.Teams.Gone(ctx, who, "its session has ended"); err != nil {
		b.host.Tree.Stream.Publish(event.Agent{Name: who.Agent}, event.Noticed{Level: "warning", Text: err.Error()})
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

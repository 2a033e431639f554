package team

import (
	"context"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Backend is where teammates run: in this process, or in a pane of a terminal.
// Its methods may be called from any goroutine.
type Backend interface {
	// Kind says where the next teammate would run, as rosters name it
	// ("in-process"). An error says what is missing there: nobody is started
	// elsewhere instead.
	Kind(ctx context.Context) (string, error)
	// Start starts a teammate, or brings one back ([Spawn.Record]), and returns
	// when it runs. ctx is for the start only. Before the teammate can act, Start
	// keeps what it takes to bring it back with [Seat.Remember]; the process of a
	// teammate that has its own adds what only it knows ([Teams.Join]).
	//
	// The backend owns the teammate until it ends: when the Seat is left it lets
	// the turn end and closes the session, when it is to stop ([Seat.Stopping])
	// it closes the session at once, and when a session ends in any other way
	// than by leaving it calls [Teams.Gone]. An error names the teammate, and
	// nothing of it runs then.
	Start(ctx context.Context, s Spawn) (Started, error)
	// Stop ends a teammate and returns when nothing of it runs any more; what
	// was still running in its turn is interrupted with cause. With
	// [ErrShutdownApproved] the turn gets a short grace to end by itself first.
	// It may be called more than once, and for agents that do not run: that is
	// no error.
	Stop(ctx context.Context, who mailbox.Address, cause error) error
}

// Started is what a backend knows of a teammate once it runs.
type Started struct {
	PaneID string // the pane that it runs in, for the roster; "" without one
}

// Spawn is what a backend needs to start a teammate.
type Spawn struct {
	Seat        *Seat
	Member      roster.Member // as it stands on the roster
	LeadSession string        // id of the lead's session
	Lead        string        // agent id of the lead's session; "" for a main session
	Description string        // of the work, in a few words
	// Introduction tells the teammate who and where it is. It goes before
	// Input, not into the system prompt: that is the same for all agents. "" for
	// one that comes back and knows.
	Introduction string
	Input        string // the first message of its first turn, wrapped
	// Record is what was kept of a teammate that comes back: its conversation
	// goes on. nil for a new one.
	Record *roster.AgentRecord
	Window bool // a pane of it is to be a window of its own
	// Placed is for the backend to call once the teammate has its place, if it takes
	// much longer until it runs. nil: nobody waits for it.
	Placed func()
}

// DeliverPrompt posts the first message of a teammate that reads it from its inbox,
// in its lead's name and without a summary (facts: claude-code §5.2), and returns it.
// A teammate that comes back gets the note about its return instead of its prompt,
// which it has had. When there is nothing to say, nothing is posted and the message is
// the zero one.
func (s Spawn) DeliverPrompt(ctx context.Context) (mailbox.Message, error) {
	text := s.Member.Prompt
	if s.Record != nil {
		text = prompt.Unremind(s.Input) // as mail it is the lead's word
	}
	if text == "" {
		return mailbox.Message{}, nil
	}
	to := s.Seat.Address()
	first := s.Seat.unique(to, mailbox.Message{From: mailbox.LeadName, Text: text, Timestamp: protocol.Stamp(time.Now())})
	lead := event.Agent{Session: s.LeadSession, Name: mailbox.LeadName}
	return first, s.Seat.teams.post(ctx, lead, to, first, sealedText)
}

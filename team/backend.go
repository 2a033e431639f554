package team

import (
	"context"

	"github.com/cadre-dev/cadre/mailbox"
)

// Backend is where teammates run: in this process, or in a pane of a terminal.
// Its methods may be called from any goroutine.
type Backend interface {
	// Kind names the backend as rosters do ("in-process").
	Kind() string
	// Start starts a teammate and returns when it runs. ctx is for the start
	// only. The backend owns the teammate until it ends: when the Seat is left
	// it lets the turn end and closes the session, and when a session ends in
	// any other way it calls [Teams.Gone]. An error names the teammate, and
	// nothing of it runs then.
	Start(ctx context.Context, s Spawn) error
	// Stop ends a teammate and returns when nothing of it runs any more; what
	// was still running in its turn is interrupted with cause. With
	// [ErrShutdownApproved] the turn gets a short grace to end by itself first.
	// It may be called more than once, and for agents that do not run: that is
	// no error.
	Stop(ctx context.Context, who mailbox.Address, cause error) error
}

// Spawn is what a backend needs to start a teammate.
type Spawn struct {
	Seat        *Seat
	Member      Member // as it stands on the roster
	LeadSession string // id of the lead's session
	Lead        string // agent id of the lead's session; "" for a main session
	Description string // of the work, in a few words
	// Introduction tells the teammate who and where it is. It goes before
	// Input, not into the system prompt: that is the same for all agents.
	Introduction string
	Input        string // the prompt, wrapped: the first message of its first turn
}

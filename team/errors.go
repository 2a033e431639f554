package team

import (
	"errors"
	"fmt"
)

// Errors of team policy; those of the stores say themselves what they were
// about, and pass through. A tool turns them into the result texts of the format.
var (
	// ErrNoTeam: the caller has no place in a team.
	ErrNoTeam = errors.New("not in a team")
	// ErrNotLead: only the lead may do this.
	ErrNotLead = errors.New("only the team lead may do this")
	// ErrNotMain: only a main session may lead a team.
	ErrNotMain = errors.New("only a main session may lead a team")
	// ErrProtocol: the text of a message is JSON that the team protocol uses.
	ErrProtocol = errors.New("the text is a message of the team protocol")
	// ErrTooLong: the text of a message is more than a model is shown of one.
	ErrTooLong = errors.New("the message has more than 128 KiB: write it to a file and send the path")
	// ErrNoRequest: there is no such request to respond to.
	ErrNoRequest = errors.New("no such request")
	// ErrLeft: the agent has left its team.
	ErrLeft = errors.New("left the team")
	// ErrAbandoned is the cause with which the context of [Teams.Shutdown] is cancelled
	// to leave the teammates that still run in their team.
	ErrAbandoned = errors.New("the shutdown of the team was abandoned")
	// ErrShutdownApproved is the cause with which a backend stops an agent that
	// agreed to shut down.
	ErrShutdownApproved = errors.New("the agent approved its shutdown")
)

// LeadingError says that a session leads a team already.
type LeadingError struct{ Team string }

func (e *LeadingError) Error() string { return fmt.Sprintf("already leading team %q", e.Team) }

// UnknownTeamError says that the caller leads no team of this name.
type UnknownTeamError struct{ Team string }

func (e *UnknownTeamError) Error() string { return fmt.Sprintf("no team %q", e.Team) }

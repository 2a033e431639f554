package team

import (
	"context"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Working says that a turn of the agent begins.
func (s *Seat) Working() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = true
}

// lastTurn is how an agent's last turn ended.
type lastTurn struct {
	reason    protocol.IdleReason // "" before the first end
	failure   string
	completed string // the id of the task that was completed last
	stalled   int    // messages that the agent has left unread for now
}

// Stall says how many messages of its inbox the agent, whose last turn has failed,
// is not going to read before something new comes; 0: it reads all that there is.
// Whoever waits for the agent does not wait for those, and the next [Seat.NotifyIdle]
// tells of them.
func (s *Seat) Stall(messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = messages
}

func (s *Seat) stalledNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalled
}

// NotifyIdle tells the lead that the agent's turn is over and it waits for
// input: at most once per turn ([Seat.Working] begins the next), unless it fails.
// The note has the summary of the turn's last mail to a peer, which is all that a
// lead sees of it, and the task that was completed last. failure is for
// [protocol.IdleFailed]. For a lead, and for an agent that has left, it does nothing.
func (s *Seat) NotifyIdle(ctx context.Context, reason protocol.IdleReason, failure string) error {
	if reason != protocol.IdleFailed {
		failure = ""
	}
	at := time.Now()
	note := protocol.IdleNotification{Type: protocol.TypeIdle, From: s.Name, Timestamp: protocol.Stamp(at), IdleReason: reason, FailureReason: failure}
	s.mu.Lock()
	if s.Lead || s.gone || !s.working {
		s.mu.Unlock()
		return nil
	}
	note.Summary, note.CompletedTaskID, note.Unread = s.lastDM, s.completed, s.stalled
	if s.completed != "" {
		note.CompletedStatus = "completed"
	}
	s.working, s.telling = false, true // a second call has nothing to tell
	s.mu.Unlock()
	err := s.postControl(ctx, mailbox.LeadName, at, note)
	s.mu.Lock()
	s.telling = false
	if err != nil {
		s.working = true
	} else {
		s.idle, s.lastDM, s.completed = lastTurn{reason, failure, s.completed, s.stalled}, "", ""
	}
	s.mu.Unlock()
	s.teams.changes.beat()
	return err
}

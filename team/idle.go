package team

import (
	"context"
	"time"
)

// Working says that a turn of the agent begins.
func (s *Seat) Working() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = true
}

// lastTurn is how an agent's last turn ended.
type lastTurn struct {
	reason    IdleReason // "" before the first end
	failure   string
	completed string // the id of the task that was completed last
}

// NotifyIdle tells the lead that the agent's turn is over and it waits for
// input: at most once per turn ([Seat.Working] begins the next), unless it fails.
// The note has the summary of the turn's last mail to a peer, which is all that a
// lead sees of it, and the task that was completed last. failure is for
// [IdleFailed]. For a lead, and for an agent that has left, it does nothing.
func (s *Seat) NotifyIdle(ctx context.Context, reason IdleReason, failure string) error {
	if reason != IdleFailed {
		failure = ""
	}
	at := time.Now()
	note := IdleNotification{Type: typeIdle, From: s.Name, Timestamp: stamp(at), IdleReason: reason, FailureReason: failure}
	s.mu.Lock()
	if s.Lead || s.gone || !s.working {
		s.mu.Unlock()
		return nil
	}
	note.Summary, note.CompletedTaskID = s.lastDM, s.completed
	if s.completed != "" {
		note.CompletedStatus = "completed"
	}
	s.working, s.telling = false, true // a second call has nothing to tell
	s.mu.Unlock()
	err := s.postControl(ctx, LeadName, at, note)
	s.mu.Lock()
	s.telling = false
	if err != nil {
		s.working = true
	} else {
		s.idle, s.lastDM, s.completed = lastTurn{reason, failure, s.completed}, "", ""
	}
	s.mu.Unlock()
	s.teams.changes.beat()
	return err
}

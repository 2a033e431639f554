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

// NotifyIdle tells the lead that the agent's turn is over and it waits for
// input: at most once per turn ([Seat.Working] begins the next). The note has
// the summary of the turn's last mail to a peer, which is all that a lead sees
// of it, and the task that was completed last. failure is for [IdleFailed]. For
// a lead, and for an agent that has left, it does nothing.
func (s *Seat) NotifyIdle(ctx context.Context, reason IdleReason, failure string) error {
	s.mu.Lock()
	if s.Lead || s.gone || !s.working {
		s.mu.Unlock()
		return nil
	}
	at := time.Now()
	note := IdleNotification{
		Type: typeIdle, From: s.Name, Timestamp: stamp(at), IdleReason: reason, Summary: s.lastDM,
		CompletedTaskID: s.completed, FailureReason: failure,
	}
	if s.completed != "" {
		note.CompletedStatus = "completed"
	}
	s.mu.Unlock()
	if err := s.postControl(ctx, LeadName, at, note); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working, s.lastDM, s.completed = false, "", ""
	return nil
}

package team

import (
	"context"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// RequestShutdown asks a teammate to shut down and returns the request's id. Only
// the lead may. The teammate's model answers, by RespondShutdown of its seat.
// Errors: [ErrNotLead], [ErrLeft], [*roster.UnknownMemberError].
func (s *Seat) RequestShutdown(ctx context.Context, to, reason string) (Delivery, string, error) {
	if !s.Lead {
		return Delivery{}, "", ErrNotLead
	}
	if s.hasLeft() {
		return Delivery{}, "", ErrLeft
	}
	member, err := s.recipient(ctx, to)
	if err != nil {
		return Delivery{}, "", err
	}
	if member.Name == s.Name {
		return Delivery{}, "", &roster.NameError{Name: to, Reason: "is the lead itself, which ends with its session"}
	}
	at := time.Now()
	id := protocol.RequestID("shutdown", at, member.Name)
	err = s.postControl(ctx, member.Name, at, protocol.ShutdownRequest{
		Type: protocol.TypeShutdownRequest, RequestID: id, From: s.Name, Reason: reason, Timestamp: protocol.Stamp(at),
	})
	return Delivery{To: member.Name, Color: member.Color}, id, err
}

// RespondShutdown answers a shutdown request that the agent has received. After an
// approval the agent has left ([Seat.Left]). Errors: [ErrLeft], and [ErrNoRequest]
// for an id that no open request has; its text names an open one.
func (s *Seat) RespondShutdown(ctx context.Context, id string, approve bool, reason string) error {
	if s.hasLeft() {
		return ErrLeft
	}
	if err := s.checkShutdown(ctx, id); err != nil {
		return err
	}
	if approve {
		return s.approve(ctx, id)
	}
	at := time.Now()
	err := s.postControl(ctx, mailbox.LeadName, at, protocol.ShutdownRejected{
		Type: protocol.TypeShutdownRejected, RequestID: id, From: s.Name, Reason: reason, Timestamp: protocol.Stamp(at),
	})
	if err == nil {
		s.shutdownAnswered(id)
	}
	return err
}

// approve agrees to shut down: it tells the lead, and the agent has left.
func (s *Seat) approve(ctx context.Context, id string) error {
	at, pane, backend := time.Now(), s.paneID, s.backend
	if s.own { // its lead may have learned of the pane only after it had started
		if config, err := s.config(ctx); err == nil {
			if m := config.Find(s.Name); m != nil {
				pane, backend = m.PaneID, m.BackendType
			}
		}
	}
	err := s.postControl(ctx, mailbox.LeadName, at, protocol.ShutdownApproved{
		Type: protocol.TypeShutdownApproved, RequestID: id, From: s.Name, Timestamp: protocol.Stamp(at), PaneID: pane, BackendType: backend,
	})
	if err != nil {
		return err
	}
	s.shutdownAnswered(id)
	s.leave()
	return nil
}

// shutdownRequested remembers a request that the agent's model is to answer.
func (s *Seat) shutdownRequested(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shutdowns[id] = true
}

func (s *Seat) shutdownAnswered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shutdowns, id)
	s.answered[id] = true
}

// checkShutdown returns nil when a request waits for a response: this process has
// received it, or an earlier one had, which was restarted since.
func (s *Seat) checkShutdown(ctx context.Context, id string) error {
	unknown := s.findShutdown(id)
	if unknown == nil {
		return nil
	}
	all, err := s.teams.mail.All(ctx, s.Address())
	if err != nil {
		return err
	}
	for _, m := range all {
		c, _ := protocol.Parse(m.Text)
		if request, ok := c.(protocol.ShutdownRequest); !ok || !m.Read || request.RequestID != id || s.hasAnsweredShutdown(id) {
			continue
		}
		if v, err := s.teams.verify(ctx, s.Address(), m); err != nil || v.control != nil {
			return err
		}
	}
	return unknown
}

func (s *Seat) hasAnsweredShutdown(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[id]
}

// findShutdown returns nil for a request that this process has received and that
// waits for a response, else the error for the model.
func (s *Seat) findShutdown(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shutdowns[id] {
		return nil
	}
	for open := range s.shutdowns {
		return fmt.Errorf("shutdown request %q: %w (waiting for a response: %s)", id, ErrNoRequest, open)
	}
	return fmt.Errorf("shutdown request %q: %w", id, ErrNoRequest)
}

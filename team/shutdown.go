package team

import (
	"context"
	"fmt"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// RequestShutdown asks a teammate to end and returns the request's id. Only the
// lead may. The teammate's model answers, by RespondShutdown of its seat.
// Errors: [ErrNotLead], [*roster.UnknownMemberError].
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

// RespondShutdown answers a request that the seat's inbox took in. After an
// approval the agent has left ([Seat.Left]). Errors: [ErrNoRequest] for an id
// that nobody sent, whose text names the ones that wait.
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
		s.noteAnswered(id)
	}
	return err
}

// approve tells the lead that the agent ends now, and leaves.
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
	s.noteAnswered(id)
	s.leave()
	return nil
}

func (s *Seat) askedToShutDown(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shutdowns[id] = true
}

func (s *Seat) noteAnswered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.shutdowns, id)
	s.answered[id] = true
}

// checkShutdown returns nil when a request waits for a response: the inbox took
// it in, or had shown it before a restart.
func (s *Seat) checkShutdown(ctx context.Context, id string) error {
	known, unknown := s.knowsShutdown(id)
	if known {
		return nil
	}
	all, err := s.teams.mail.All(ctx, s.Address())
	if err != nil {
		return err
	}
	for _, m := range all {
		c, _ := protocol.Parse(m.Text)
		if request, ok := c.(protocol.ShutdownRequest); !ok || !m.Read || request.RequestID != id || s.wasAnswered(id) {
			continue
		}
		if w, err := s.teams.judge(ctx, s.Address(), m); err != nil || w.control != nil {
			return err
		}
	}
	return unknown
}

func (s *Seat) wasAnswered(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[id]
}

// knowsShutdown reports whether a request waits for a response, and the error
// for one that does not.
func (s *Seat) knowsShutdown(id string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shutdowns[id] {
		return true, nil
	}
	for waiting := range s.shutdowns {
		return false, fmt.Errorf("shutdown request %q: %w (waiting for a response: %s)", id, ErrNoRequest, waiting)
	}
	return false, fmt.Errorf("shutdown request %q: %w", id, ErrNoRequest)
}

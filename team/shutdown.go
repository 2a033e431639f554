package team

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
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
	if err := s.findShutdown(ctx, id); err != nil {
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
		s.shutdowns.close(id)
	}
	return err
}

// approve agrees to shut down: it notifies the lead, and the agent has left.
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
	s.shutdowns.close(id)
	s.leave()
	return nil
}

// shutdownRequests are the shutdown requests that an agent has received. The zero value
// has none.
type shutdownRequests struct {
	mu       sync.Mutex
	open     map[string]bool // by id: they wait for a response
	answered map[string]bool
}

// received notes a request that the agent's model is to answer.
func (r *shutdownRequests) received(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[string]bool)
	}
	r.open[id] = true
}

// close notes that a request was answered.
func (r *shutdownRequests) close(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, id)
	if r.answered == nil {
		r.answered = make(map[string]bool)
	}
	r.answered[id] = true
}

func (r *shutdownRequests) isAnswered(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answered[id]
}

// waiting lists the ids of the open requests.
func (r *shutdownRequests) waiting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.open))
}

// findShutdown returns nil when a request waits for a response: this process has
// received it, or an earlier one had, which was restarted since. Otherwise the error is
// for the model.
func (s *Seat) findShutdown(ctx context.Context, id string) error {
	open := s.shutdowns.waiting()
	if slices.Contains(open, id) {
		return nil
	}
	unknown := fmt.Errorf("shutdown request %q: %w", id, ErrNoRequest)
	if len(open) > 0 {
		unknown = fmt.Errorf("%w (waiting for a response: %s)", unknown, open[0])
	}
	if s.shutdowns.isAnswered(id) {
		return unknown
	}
	all, err := s.teams.options.Mail.All(ctx, s.Address())
	if err != nil {
		return err
	}
	for _, m := range all {
		c, _ := protocol.Parse(m.Text)
		if request, ok := c.(protocol.ShutdownRequest); !ok || !m.Read || request.RequestID != id {
			continue
		}
		if v, err := s.teams.verifier.verify(ctx, s.Address(), m); err != nil || v.control != nil {
			return err
		}
	}
	return unknown
}

// stopTime is how long the agents that did not agree to shut down get to be
// stopped, and the team's files to be written, when ctx is over already.
const stopTime = 10 * time.Second

// Shutdown ends all teammates of the team that the caller leads: each is asked,
// those that agree end by themselves, and when ctx ends the rest is stopped.
// Their open tasks become unassigned. It blocks until no teammate runs; the team itself
// stays, with those that could not be brought back as its members. When ctx is cancelled with [ErrAbandoned] it returns
// that at once, and the rest stays in the team, to be resumed. Without a team it does
// nothing.
func (t *Teams) Shutdown(ctx context.Context, by tool.Caller) error {
	seat, ok := t.Seat(by)
	if !ok {
		return nil
	}
	if !seat.Lead {
		return ErrNotLead
	}
	cause := t.awaitApprovals(ctx, seat)
	if errors.Is(cause, ErrAbandoned) {
		return cause
	}
	if cause == nil {
		cause = errSessionEnds
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return t.stopAll(late, seat, cause)
}

// errSessionEnds is why a teammate is stopped that no longer runs anyway.
var errSessionEnds = errors.New("the lead's session is ending")

// awaitApprovals asks every teammate and returns when all have left, or ctx has
// ended, or waiting makes no sense.
func (t *Teams) awaitApprovals(ctx context.Context, seat *Seat) error {
	signal, stop := t.options.Mail.Watch(seat.Address())
	defer stop()
	alive, err := t.members.running(ctx, seat.Team) // nobody else ever reads a request
	if err != nil {
		return err
	}
	for _, m := range alive {
		_, _, err := seat.RequestShutdown(ctx, m.Name, "The session is ending.")
		if err == nil || isUnknown(err) {
			continue
		}
		who := mailbox.Address{Team: seat.Team, Agent: m.Name} // it cannot be asked, so it is stopped
		if _, err := t.departures.depart(ctx, who, "", func() error { return t.departures.stop(ctx, who, err) }); err != nil {
			return err
		}
	}
	for {
		changed := t.crews.changed(seat.session)
		if err := t.carryOutApprovals(ctx, seat); err != nil {
			return err
		}
		alive, err := t.members.running(ctx, seat.Team)
		if err != nil || len(alive) == 0 {
			return err
		}
		select {
		case <-signal:
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// carryOutApprovals removes the teammates from the team that have agreed to shut down, as
// the lead's unread mail says. The approvals stay unread, so that the lead's model is shown them.
func (t *Teams) carryOutApprovals(ctx context.Context, seat *Seat) error {
	waiting, err := t.options.Mail.Unread(ctx, seat.Address())
	if err != nil {
		return err
	}
	for _, m := range waiting {
		c, _ := protocol.Parse(m.Text)
		if _, ok := c.(protocol.ShutdownApproved); !ok {
			continue
		}
		v, err := t.verifier.verify(ctx, seat.Address(), m)
		if err == nil && v.control != nil {
			_, err = t.departures.approved(ctx, seat.Team, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stopAll stops the teammates that run here or elsewhere, all at once. One that does not
// run, since it could not be brought back, stays a member.
func (t *Teams) stopAll(ctx context.Context, seat *Seat, cause error) error {
	names := t.crews.mates(seat.Team)
	running, err := t.members.running(ctx, seat.Team)
	for _, m := range running {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			who := mailbox.Address{Team: seat.Team, Agent: name}
			_, errs[i] = t.departures.depart(ctx, who, "", func() error { return t.departures.stop(ctx, who, cause) })
		})
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}

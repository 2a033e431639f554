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
	"github.com/cadre-dev/cadre/tool"
)

// RequestShutdown asks a teammate to end and returns the request's id. Only the
// lead may. The teammate's model answers, by RespondShutdown of its seat.
// Errors: [ErrNotLead], [*UnknownMemberError].
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
		return Delivery{}, "", &NameError{to, "is the lead itself, which ends with its session"}
	}
	at := time.Now()
	id := requestID("shutdown", at, member.Name)
	err = s.postControl(ctx, member.Name, at, ShutdownRequest{
		Type: typeShutdownRequest, RequestID: id, From: s.Name, Reason: reason, Timestamp: stamp(at),
	})
	return Delivery{member.Name, member.Color}, id, err
}

// RespondShutdown answers a request that the seat's inbox took in. After an
// approval the agent has left ([Seat.Left]). Errors: [ErrNoRequest] for an id
// that nobody sent, whose text names the ones that wait.
func (s *Seat) RespondShutdown(ctx context.Context, id string, approve bool, reason string) error {
	if s.hasLeft() {
		return ErrLeft
	}
	if err := s.checkShutdown(id); err != nil {
		return err
	}
	at := time.Now()
	var response Control = ShutdownRejected{
		Type: typeShutdownRejected, RequestID: id, From: s.Name, Reason: reason, Timestamp: stamp(at),
	}
	if approve {
		response = ShutdownApproved{
			Type: typeShutdownApproved, RequestID: id, From: s.Name, Timestamp: stamp(at),
			PaneID: s.paneID, BackendType: s.backend,
		}
	}
	if err := s.postControl(ctx, LeadName, at, response); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.shutdowns, id)
	s.mu.Unlock()
	if approve {
		s.leave()
	}
	return nil
}

func (s *Seat) checkShutdown(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shutdowns[id] {
		return nil
	}
	for waiting := range s.shutdowns {
		return fmt.Errorf("shutdown request %q: %w (waiting for a response: %s)", id, ErrNoRequest, waiting)
	}
	return fmt.Errorf("shutdown request %q: %w", id, ErrNoRequest)
}

// stopTime is how long the agents that did not agree to shut down get to be
// stopped, and the team's files to be written, when ctx is over already.
const stopTime = 10 * time.Second

// Shutdown ends all teammates of the team that the caller leads: each is asked,
// those that agree end by themselves, and when ctx ends the rest is stopped.
// Tasks that were theirs are nobody's again. It blocks until no teammate is on
// the roster; the team itself stays. Without a team it does nothing.
func (t *Teams) Shutdown(ctx context.Context, by tool.Caller) error {
	seat, ok := t.Seat(by)
	if !ok {
		return nil
	}
	if !seat.Lead {
		return ErrNotLead
	}
	cause := t.awaitApprovals(ctx, seat)
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
	signal, stop := t.mail.Watch(seat.Address())
	defer stop()
	config, err := seat.config(ctx)
	if err != nil {
		return err
	}
	for _, m := range config.Teammates() {
		if !t.runs(seat.Team, m.Name) {
			continue // never reads a request
		}
		_, _, err := seat.RequestShutdown(ctx, m.Name, "The session is ending.")
		if err == nil || isUnknown(err) {
			continue
		}
		who := mailbox.Address{Team: seat.Team, Agent: m.Name} // it cannot be asked, so it is stopped
		if _, err := t.depart(ctx, who, func() error { return t.stop(ctx, who.Team, who.Agent, err) }); err != nil {
			return err
		}
	}
	for {
		t.mu.Lock()
		changed := t.leadOf(seat.session).changed
		t.mu.Unlock()
		if err := t.settleApprovals(ctx, seat); err != nil {
			return err
		}
		if len(t.running(seat.Team)) == 0 {
			return nil
		}
		select {
		case <-signal:
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settleApprovals lets go the teammates whose approval waits in the lead's
// inbox. The approvals stay unread, for the lead's model to be told.
func (t *Teams) settleApprovals(ctx context.Context, seat *Seat) error {
	waiting, err := t.mail.Unread(ctx, seat.Address())
	if err != nil {
		return err
	}
	for _, m := range waiting {
		if _, ok := t.protocol(seat, m).(ShutdownApproved); ok {
			if _, err := t.approved(ctx, seat.Team, m.From); err != nil {
				return err
			}
		}
	}
	return nil
}

// stopAll stops the teammates that are still on the roster or run here, all at
// once.
func (t *Teams) stopAll(ctx context.Context, seat *Seat, cause error) error {
	names := t.running(seat.Team)
	config, err := seat.config(ctx)
	for _, m := range config.Teammates() {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			who := mailbox.Address{Team: seat.Team, Agent: name}
			_, errs[i] = t.depart(ctx, who, func() error { return t.stop(ctx, who.Team, name, cause) })
		})
	}
	wg.Wait()
	if err != nil && !errors.Is(err, ErrNotFound) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// runs reports whether a teammate runs in this process.
func (t *Teams) runs(team, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[team]
	return ok && crew.mates[name] != nil
}

// running lists the teammates that run in this process.
func (t *Teams) running(team string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[team]; ok {
		return slices.Sorted(maps.Keys(crew.mates))
	}
	return nil
}

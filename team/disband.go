package team

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
	"github.com/cadre-dev/cadre/tool"
)

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
	alive, err := t.aliveIn(ctx, seat.Team) // nobody else ever reads a request
	if err != nil {
		return err
	}
	for _, m := range alive {
		_, _, err := seat.RequestShutdown(ctx, m.Name, "The session is ending.")
		if err == nil || isUnknown(err) {
			continue
		}
		who := mailbox.Address{Team: seat.Team, Agent: m.Name} // it cannot be asked, so it is stopped
		if _, err := t.depart(ctx, who, "", func() error { return t.stop(ctx, who.Team, who.Agent, err) }); err != nil {
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
		alive, err := t.aliveIn(ctx, seat.Team)
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

// settleApprovals lets go the teammates whose approval waits in the lead's
// inbox. The approvals stay unread, for the lead's model to be told.
func (t *Teams) settleApprovals(ctx context.Context, seat *Seat) error {
	waiting, err := t.mail.Unread(ctx, seat.Address())
	if err != nil {
		return err
	}
	for _, m := range waiting {
		c, _ := protocol.Parse(m.Text)
		if _, ok := c.(protocol.ShutdownApproved); !ok {
			continue
		}
		v, err := t.verify(ctx, seat.Address(), m)
		if err == nil && v.control != nil {
			_, err = t.approved(ctx, seat.Team, m)
		}
		if err != nil {
			return err
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
			_, errs[i] = t.depart(ctx, who, "", func() error { return t.stop(ctx, who.Team, name, cause) })
		})
	}
	wg.Wait()
	if err != nil && !errors.Is(err, roster.ErrNotFound) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// running lists the teammates that this process started, or is.
func (t *Teams) running(team string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[team]; ok {
		return slices.Sorted(maps.Keys(crew.mates))
	}
	return nil
}

package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
)

// departure is a teammate's leaving of its team, which several may notice at
// once and one carries out.
type departure struct {
	seat     *Seat         // nil when the teammate does not run here
	done     chan struct{} // closed when it was carried out, or went wrong
	err      error         // set before done is closed
	released []task.Task   // what was the teammate's
}

// depart takes a teammate off its team: end stops it, its open tasks become
// nobody's, it goes off the roster. Of several calls the first does the work and
// the others wait for it; after an error the next call tries again. It returns
// the tasks that were released.
func (t *Teams) depart(ctx context.Context, who mailbox.Address, end func() error) ([]task.Task, error) {
	t.mu.Lock()
	crew, ok := t.crews[who.Team]
	if !ok {
		t.mu.Unlock()
		return nil, nil // the team is gone, and everybody with it
	}
	d, ok := crew.departures[who.Agent]
	if ok && !d.failed() {
		t.mu.Unlock()
		select {
		case <-d.done:
			return d.released, d.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	again := &departure{seat: crew.mates[who.Agent], done: make(chan struct{})}
	if ok {
		again.released = d.released
	}
	crew.departures[who.Agent] = again
	t.mu.Unlock()
	if again.seat != nil {
		again.seat.leave()
	}
	again.err = t.carryOut(ctx, again, who, end)
	close(again.done)
	return again.released, again.err
}

// failed reports whether the departure was tried and went wrong.
func (d *departure) failed() bool {
	select {
	case <-d.done:
		return d.err != nil
	default:
		return false
	}
}

// carryOut does the steps of a departure; each may be done twice.
func (t *Teams) carryOut(ctx context.Context, d *departure, who mailbox.Address, end func() error) error {
	if err := end(); err != nil {
		return fmt.Errorf("stop %s: %w", who, err)
	}
	released, err := t.tasks.Release(ctx, who.Team, who.Agent)
	d.released = append(d.released, released...)
	if err != nil {
		return err
	}
	by := event.Agent{Name: LeadName, Session: t.leadSession(who.Team)}
	for _, r := range released {
		t.publish(by, event.TaskChanged{List: who.Team, Task: r})
	}
	t.ledger.removeAll(who)
	_, err = t.updateRoster(ctx, who.Team, by, func(c *Config) error {
		c.Members = slices.DeleteFunc(c.Members, func(m Member) bool { return m.Name == who.Agent && m.AgentID != c.LeadAgentID })
		return nil
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("take %s off the roster: %w", who, err)
	}
	t.mu.Lock()
	// From here on the name can be another's already.
	if crew, ok := t.crews[who.Team]; ok && crew.mates[who.Agent] == d.seat {
		delete(crew.mates, who.Agent)
	}
	if l, ok := t.leads[by.Session]; ok {
		l.change()
	}
	t.mu.Unlock()
	return nil
}

func (t *Teams) leadSession(team string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if crew, ok := t.crews[team]; ok {
		return crew.leadSession
	}
	return ""
}

// stop ends a teammate, wherever it runs.
func (t *Teams) stop(ctx context.Context, team, name string, cause error) error {
	if t.backend == nil {
		return nil
	}
	return t.backend.Stop(ctx, mailbox.Address{Team: team, Agent: name}, cause)
}

// approved lets a teammate go that agreed to shut down, and returns what its
// lead's model is told of it (facts: claude-code §5.6).
func (t *Teams) approved(ctx context.Context, team, name string) (Terminated, error) {
	who := mailbox.Address{Team: team, Agent: name}
	released, err := t.depart(ctx, who, func() error { return t.stop(ctx, team, name, ErrShutdownApproved) })
	return terminated(name+" has shut down.", released), err
}

// Gone tells that a teammate's session has ended by itself, or never came back
// after a restart, and why. The teammate leaves its team, and the lead's model
// is told. The caller must have ended the session; a teammate that has left in
// order needs no report, and one is ignored.
func (t *Teams) Gone(ctx context.Context, who mailbox.Address, why string) error {
	if t.leavesInOrder(who) {
		return nil
	}
	released, err := t.depart(ctx, who, func() error { return nil })
	if err != nil {
		return err
	}
	t.note(t.leadSession(who.Team), Mail{
		Kind: KindSystem, From: who.Agent, Preview: who.Agent + " has ended: " + oneLine(why),
		Text: wrapSystem(terminated(who.Agent+" has ended: "+why+".", released)),
	})
	return nil
}

// leavesInOrder reports whether a teammate's leaving is under way, done, or will
// be when its approval is read.
func (t *Teams) leavesInOrder(who mailbox.Address) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	crew, ok := t.crews[who.Team]
	if !ok {
		return true
	}
	if d, ok := crew.departures[who.Agent]; ok {
		return !d.failed()
	}
	seat, ok := crew.mates[who.Agent]
	return ok && seat.hasLeft()
}

func terminated(what string, released []task.Task) Terminated {
	if len(released) > 0 {
		names := make([]string, len(released))
		for i, r := range released {
			names[i] = "#" + r.ID + ` "` + r.Subject + `"`
		}
		what += fmt.Sprintf(" %d task(s) were unassigned: %s. Use TaskList to check availability and TaskUpdate with owner to reassign them to idle teammates.",
			len(released), strings.Join(names, ", "))
	}
	return Terminated{typeTerminated, what}
}

// note hands mail of the runtime to a lead's inbox.
func (t *Teams) note(session string, mails ...Mail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leadOf(session)
	l.notes = append(l.notes, mails...)
	l.change()
}

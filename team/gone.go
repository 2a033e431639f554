package team

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// approved lets a teammate go that agreed to shut down, and returns what its
// lead's model is told of it (facts: claude-code §5.6). An approval that is older
// than the agent of this name is of a former one.
func (t *Teams) approved(ctx context.Context, team string, m mailbox.Message) (protocol.Terminated, error) {
	who := mailbox.Address{Team: team, Agent: m.From}
	gone := terminated(m.From+" has shut down.", nil)
	config, err := t.store.Load(ctx, team)
	if err != nil {
		return gone, err
	}
	at, timeErr := time.Parse(time.RFC3339, m.Timestamp)
	if now := config.Find(m.From); now != nil && timeErr == nil && at.UnixMilli() < now.JoinedAt {
		return gone, nil
	}
	released, err := t.depart(ctx, who, "", func() error { return t.stop(ctx, team, m.From, ErrShutdownApproved) })
	return terminated(m.From+" has shut down.", released), err
}

// Gone tells that a teammate's session has ended by itself, or never came back
// after a restart, and why. The teammate leaves its team, and the lead's model
// is told. The caller must have ended the session; a teammate that has left in
// order needs no report, and one is ignored.
func (t *Teams) Gone(ctx context.Context, who mailbox.Address, why string) error {
	if t.leavesInOrder(who) {
		return nil
	}
	if taken, err := t.takenOff(ctx, who); taken || err != nil {
		return err
	}
	if seat := t.mate(who); seat != nil {
		if _, stopped, ok := seat.stopped(); ok {
			why = stopped
		}
	}
	_, err := t.depart(ctx, who, why, func() error { return nil })
	return err
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

// takenOff reports whether another process has taken a teammate off the team
// ([Teams.Remove]), and forgets it then.
func (t *Teams) takenOff(ctx context.Context, who mailbox.Address) (bool, error) {
	config, err := t.store.Load(ctx, who.Team)
	if errors.Is(err, roster.ErrNotFound) {
		return false, nil
	}
	if err != nil || config.Find(who.Agent) != nil {
		return false, err
	}
	t.mu.Lock()
	crew, ok := t.crews[who.Team]
	if !ok || crew.departures[who.Agent] != nil {
		t.mu.Unlock()
		return false, nil
	}
	seat := crew.mates[who.Agent]
	delete(crew.mates, who.Agent)
	t.mu.Unlock()
	if seat != nil {
		seat.leave()
	}
	t.changes.beat()
	return true, nil
}

func terminated(what string, released []task.Task) protocol.Terminated {
	if len(released) > 0 {
		names := make([]string, len(released))
		for i, r := range released {
			names[i] = "#" + r.ID + ` "` + r.Subject + `"`
		}
		what += fmt.Sprintf(" %d task(s) were unassigned: %s. Use TaskList to check availability and TaskUpdate with owner to reassign them to idle teammates.",
			len(released), strings.Join(names, ", "))
	}
	return protocol.Terminated{Type: protocol.TypeTerminated, Message: what}
}

// note hands mail of the runtime to a lead's inbox.
func (t *Teams) note(session string, mails ...Mail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leadOf(session)
	l.notes = append(l.notes, mails...)
	l.change()
}

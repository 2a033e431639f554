package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// departure is a teammate's leaving of its team, which several may notice at
// once and one carries out.
type departure struct {
	seat     *Seat         // nil when the teammate does not run here
	why      string        // the reason in the notice to the lead; "": no notice
	done     chan struct{} // closed when it was carried out, or went wrong
	err      error         // set before done is closed
	released []task.Task   // what was the teammate's
}

// depart takes a teammate off its team: end stops it, its open tasks become
// unassigned, it is removed from the roster, and unless why is "" its lead gets a notice by mail.
// Of several calls the first does the work and the others wait for it; after an
// error the next call tries again. It returns the tasks that were released.
func (t *Teams) depart(ctx context.Context, who mailbox.Address, why string, end func() error) ([]task.Task, error) {
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
	again := &departure{seat: crew.mates[who.Agent], why: why, done: make(chan struct{})}
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
	by := event.Agent{Name: mailbox.LeadName, Session: t.leadSession(who.Team)}
	for _, r := range released {
		t.publish(by, event.TaskChanged{List: who.Team, Task: r})
	}
	note, err := t.keepEnding(ctx, who, d)
	if err != nil {
		return err
	}
	if err := t.store.RecordLeaving(ctx, who); err != nil {
		return fmt.Errorf("keep that %s leaves: %w", who, err)
	}
	config, err := t.updateRoster(ctx, who.Team, by, func(c *roster.Roster) error {
		c.Members = slices.DeleteFunc(c.Members, func(m roster.Member) bool { return m.Name == who.Agent && m.AgentID != c.LeadAgentID })
		return nil
	})
	if err != nil && !errors.Is(err, roster.ErrNotFound) {
		return fmt.Errorf("take %s off the roster: %w", who, err)
	}
	if err := t.forgetRequests(ctx, who); err != nil {
		return err
	}
	if err == nil { // else its mail has gone with the team
		if err := t.clearAfter(ctx, &config, who, note); err != nil {
			return err
		}
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
	t.changes.beat()
	return nil
}

// clearAfter returns the mail of an agent that is off the roster, tells its lead
// what is to be told, and forgets what was kept of the agent, last: as long as that
// is there the departure can be finished after a crash.
func (t *Teams) clearAfter(ctx context.Context, c *roster.Roster, who mailbox.Address, note *mailbox.Message) error {
	if err := t.returnMail(ctx, c, who); err != nil {
		return fmt.Errorf("return the mail of %s: %w", who, err)
	}
	if note != nil {
		once := onceMail{teams: t, team: who.Team}
		if err := once.post(ctx, mailbox.LeadName, *note); err != nil {
			return fmt.Errorf("tell the lead of %s: %w", who, err)
		}
	}
	for _, kind := range []string{recordReceipts, roster.RecordActivity, roster.RecordAgent} {
		if err := t.records.Drop(ctx, who.Team, kind, who.Agent); err != nil {
			return err
		}
	}
	return nil
}

// keepEnding keeps what the lead is to be told of a departure, and returns it as
// mail; nil when there is nothing. What was kept already, by a try that went wrong
// or before a crash, stands.
func (t *Teams) keepEnding(ctx context.Context, who mailbox.Address, d *departure) (*mailbox.Message, error) {
	record, _, err := t.record(ctx, who)
	if err != nil || d.why == "" && record.Ended == nil {
		return nil, err
	}
	if record.Ended == nil {
		record.Name = who.Agent
		record.Ended = &roster.Ending{Message: terminated(who.Agent+" has ended: "+d.why+".", d.released).Message, At: time.Now()}
		err = roster.PutRecord(ctx, t.records, who.Team, roster.RecordAgent, who.Agent, record)
		if errors.Is(err, roster.ErrNotFound) {
			return nil, nil // the team is gone, and nobody is left to notify
		}
	}
	return &mailbox.Message{
		From: mailbox.SystemName, Text: protocol.Encode(protocol.Terminated{Type: protocol.TypeTerminated, Message: record.Ended.Message}), Timestamp: protocol.Stamp(record.Ended.At),
	}, err
}

// finishDepartures does what a crash has left undone of departures: of who is
// remembered and not on the roster, or was just leaving.
func (t *Teams) finishDepartures(ctx context.Context, c *roster.Roster) error {
	docs, err := t.records.All(ctx, c.Name, roster.RecordAgent)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		var r roster.AgentRecord
		if json.Unmarshal(doc, &r) != nil || r.Name == "" || c.Find(r.Name) != nil && r.Ended == nil {
			continue
		}
		who := mailbox.Address{Team: c.Name, Agent: r.Name}
		if _, err := t.depart(ctx, who, "", func() error { return nil }); err != nil {
			return fmt.Errorf("finish the departure of %s: %w", who, err)
		}
	}
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

package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team/protocol"
)

// departures remove teammates from their teams. Its methods may be called from any
// goroutine.
type departures struct {
	crews    *crews
	members  *members
	outbox   *outbox
	verifier *verifier
	tasks    task.Store
	backend  Backend // nil: no teammate runs in this process, or was started by it
	changes  *broadcast

	taskChanges *taskChanges
	// shown lists the mail that stands in a teammate's conversation ([Options].Shown).
	shown func(ctx context.Context, r roster.AgentRecord) ([]mailbox.ID, error)
}

// departure is a teammate's leaving of its team, which several may notice at
// once and one carries out.
type departure struct {
	seat     *Seat         // nil when the teammate does not run here
	why      string        // the reason in the notice to the lead; "": no notice
	done     chan struct{} // closed when it was carried out, or went wrong
	err      error         // set before done is closed
	released []task.Task   // what was the teammate's
}

// depart removes a teammate from its team: end stops it, its open tasks become
// unassigned, it is removed from the roster, its unread mail is returned, and unless why
// is "" its lead gets a notice by mail. Of several calls the first does the work and the
// others wait for it; after an error the next call tries again. It returns the tasks
// that were released.
func (ds *departures) depart(ctx context.Context, who mailbox.Address, why string, end func() error) ([]task.Task, error) {
	d, first := ds.crews.beginDeparture(who, why)
	if d == nil {
		return nil, nil
	}
	if !first {
		select {
		case <-d.done:
			return d.released, d.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if d.seat != nil {
		d.seat.leave()
	}
	d.err = ds.carryOut(ctx, d, who, end)
	close(d.done)
	return d.released, d.err
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
func (ds *departures) carryOut(ctx context.Context, d *departure, who mailbox.Address, end func() error) error {
	if err := end(); err != nil {
		return fmt.Errorf("stop %s: %w", who, err)
	}
	released, err := ds.tasks.Release(ctx, who.Team, who.Agent)
	d.released = append(d.released, released...)
	if err != nil {
		return err
	}
	by := event.Agent{Name: mailbox.LeadName, Session: ds.crews.leadSession(who.Team)}
	for _, r := range released {
		ds.taskChanges.report(by, who.Team, r)
	}
	note, err := ds.keepEnding(ctx, who, d)
	if err != nil {
		return err
	}
	if err := ds.members.rosters.RecordLeaving(ctx, who); err != nil {
		return fmt.Errorf("record that %s leaves: %w", who, err)
	}
	config, err := ds.members.update(ctx, who.Team, by, func(c *roster.Roster) error {
		c.Members = slices.DeleteFunc(c.Members, func(m roster.Member) bool { return m.Name == who.Agent && m.AgentID != c.LeadAgentID })
		return nil
	})
	if err != nil && !errors.Is(err, roster.ErrNotFound) {
		return fmt.Errorf("remove %s from the roster: %w", who, err)
	}
	if err := ds.forgetRequests(ctx, who); err != nil {
		return err
	}
	if err == nil { // else its mail has gone with the team
		if err := ds.clearAfter(ctx, &config, who, note); err != nil {
			return err
		}
	}
	ds.crews.endDeparture(who, d.seat)
	ds.changes.announce()
	return nil
}

// clearAfter returns the unread mail of an agent that is no longer on the roster, and
// posts the notice to its lead. The agent's record is dropped last: as long as it is
// there, the departure can be finished after a crash.
func (ds *departures) clearAfter(ctx context.Context, c *roster.Roster, who mailbox.Address, note *mailbox.Message) error {
	if err := ds.returnMail(ctx, c, who); err != nil {
		return fmt.Errorf("return the mail of %s: %w", who, err)
	}
	if note != nil {
		once := onceOutbox{outbox: ds.outbox, team: who.Team}
		if err := once.post(ctx, mailbox.LeadName, *note); err != nil {
			return fmt.Errorf("notify the lead of the end of %s: %w", who, err)
		}
	}
	for _, kind := range []string{recordReceipts, roster.RecordActivity, roster.RecordAgent} {
		if err := ds.members.records.Drop(ctx, who.Team, kind, who.Agent); err != nil {
			return err
		}
	}
	return nil
}

// keepEnding stores the notice of a departure for the lead, and returns it as mail; nil
// when there is none. A notice that was stored before, by a try that went wrong or
// before a crash, stays as it is.
func (ds *departures) keepEnding(ctx context.Context, who mailbox.Address, d *departure) (*mailbox.Message, error) {
	record, _, err := ds.members.record(ctx, who)
	if err != nil || d.why == "" && record.Ended == nil {
		return nil, err
	}
	if record.Ended == nil {
		record.Name = who.Agent
		record.Ended = &roster.Ending{Message: terminated(who.Agent+" has ended: "+d.why+".", d.released).Message, At: time.Now()}
		err = roster.PutRecord(ctx, ds.members.records, who.Team, roster.RecordAgent, who.Agent, record)
		if errors.Is(err, roster.ErrNotFound) {
			return nil, nil // the team is gone, and nobody is left to notify
		}
	}
	return &mailbox.Message{
		From: mailbox.SystemName, Text: protocol.Encode(protocol.Terminated{Type: protocol.TypeTerminated, Message: record.Ended.Message}), Timestamp: protocol.Stamp(record.Ended.At),
	}, err
}

// finishAll carries out the departures that a crash has cut short: those of agents that
// are on record and no longer on the roster, or were just leaving.
func (ds *departures) finishAll(ctx context.Context, c *roster.Roster) error {
	docs, err := ds.members.records.All(ctx, c.Name, roster.RecordAgent)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		var r roster.AgentRecord
		if json.Unmarshal(doc, &r) != nil || r.Name == "" || c.Find(r.Name) != nil && r.Ended == nil {
			continue
		}
		who := mailbox.Address{Team: c.Name, Agent: r.Name}
		if _, err := ds.depart(ctx, who, "", func() error { return nil }); err != nil {
			return fmt.Errorf("finish the departure of %s: %w", who, err)
		}
	}
	return nil
}

// stop ends a teammate, wherever it runs.
func (ds *departures) stop(ctx context.Context, who mailbox.Address, cause error) error {
	if ds.backend == nil {
		return nil
	}
	return ds.backend.Stop(ctx, who, cause)
}

// approved removes a teammate that has agreed to shut down from its team, and returns
// what its lead's model is shown of it (facts: claude-code §5.6). An approval that is
// older than the agent of this name comes from a former agent of that name.
func (ds *departures) approved(ctx context.Context, team string, m mailbox.Message) (protocol.Terminated, error) {
	who := mailbox.Address{Team: team, Agent: m.From}
	gone := terminated(m.From+" has shut down.", nil)
	config, err := ds.members.rosters.Load(ctx, team)
	if err != nil {
		return gone, err
	}
	at, timeErr := time.Parse(time.RFC3339, m.Timestamp)
	if now := config.Find(m.From); now != nil && timeErr == nil && at.UnixMilli() < now.JoinedAt {
		return gone, nil
	}
	released, err := ds.depart(ctx, who, "", func() error { return ds.stop(ctx, who, ErrShutdownApproved) })
	return terminated(m.From+" has shut down.", released), err
}

// Gone reports that a teammate's session has ended by itself, or never came back
// after a restart, and why. The teammate is removed from its team, and the lead's model
// is notified. The caller must have ended the session; a teammate that has left in
// order needs no report, and one is ignored.
func (t *Teams) Gone(ctx context.Context, who mailbox.Address, why string) error {
	if t.crews.leavesInOrder(who) {
		return nil
	}
	if removed, err := t.departures.isRemoved(ctx, who); removed || err != nil {
		return err
	}
	if seat := t.crews.mate(who); seat != nil {
		if _, stopped, ok := seat.stopped(); ok {
			why = stopped
		}
	}
	_, err := t.departures.depart(ctx, who, why, func() error { return nil })
	return err
}

// isRemoved reports whether another process has removed a teammate from its team
// ([Teams.Remove]), and forgets the teammate then.
func (ds *departures) isRemoved(ctx context.Context, who mailbox.Address) (bool, error) {
	config, err := ds.members.rosters.Load(ctx, who.Team)
	if errors.Is(err, roster.ErrNotFound) {
		return false, nil
	}
	if err != nil || config.Find(who.Agent) != nil {
		return false, err
	}
	seat, ok := ds.crews.removeUnlessDeparting(who)
	if !ok {
		return false, nil
	}
	if seat != nil {
		seat.leave()
	}
	ds.changes.announce()
	return true, nil
}

// forgetRequests withdraws the questions of a teammate that has left, and drops
// what was kept of its plan and its questions: the next agent of its name has asked
// nothing, and nothing was approved for it.
func (ds *departures) forgetRequests(ctx context.Context, who mailbox.Address) error {
	if lead := ds.crews.leadSeat(who.Team); lead != nil {
		lead.relays.withdrawAll(ctx, who.Agent, func(string, ask.Kind) bool { return true })
	}
	records := ds.members.records
	asks, err := openAsks(ctx, records, who)
	if err != nil {
		return err
	}
	for _, open := range asks {
		if err := records.Drop(ctx, who.Team, RecordAsk, open.RequestID); err != nil {
			return err
		}
	}
	return records.Drop(ctx, who.Team, RecordPlan, who.Agent)
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

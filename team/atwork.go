package team

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// evidence is everything from which another process can tell whether an agent is at
// work: the mail it was sent, its idle notes, and its isActive flag in the roster.
//
// Mail is the more reliable. It is only appended to, under a lock; the roster is written
// by several programs without one, so a value may be overwritten by a program that had
// read an older version (facts: claude-code §2.3). Therefore an agent counts as working
// from when it is sent something until it says that it is idle. The roster decides in
// the doubtful cases: a program that finds the lead's inbox locked drops its idle note
// (§8).
type evidence struct {
	ours    bool // its program restores its flag when others overwrite it
	apart   bool // it has a process to itself
	present bool // its process runs
	known   bool // present is known: only our own programs show it
	hasTask bool // it owns a task that is in progress

	last lastTurn // how its last turn ended, as its newest idle note says

	flag         *bool  // isActive in the roster now; nil when it was never written
	lastInput    string // when it was last sent something that begins a turn; "" for never
	lastIdleNote string // when it last said that it is idle; "" for never
	queued       bool   // its input before that note came at several times: it may have gone on
	lastRest     string // when its lead last saw isActive change from true to false; "" for never
}

// lagTime is longer than an agent takes to set its flag after it has read its mail or
// sent an idle note (facts: claude-code §15), and longer than a program of ours takes to
// restore a flag that others have overwritten.
const lagTime = 3 * time.Second

// atWork reports whether the agent is at work. Timestamps of mail compare as text.
func (w *evidence) atWork(now time.Time) bool {
	active := w.flag != nil && *w.flag
	switch {
	case active && w.ours:
		return true
	case w.lastInput == "" && w.lastIdleNote == "":
		return active || w.begins()
	case w.lastInput > w.lastIdleNote:
		return active || w.worksUnannounced(now)
	case !w.apart:
		return w.hasTask // it claims tasks without being sent anything
	case w.ours || !w.queued:
		return false
	}
	return active || isRecent(w.lastIdleNote, now)
}

// begins reports whether an agent that was sent nothing and has said nothing is about to
// begin: one in its lead's process gets its prompt without mail.
func (w *evidence) begins() bool { return !w.apart || w.ours && !w.present && w.flag == nil }

// worksUnannounced reports whether an agent that was sent something, and has not said
// since that it is idle, is at work although its flag in the roster does not say so.
func (w *evidence) worksUnannounced(now time.Time) bool {
	switch {
	case !w.apart:
		return true
	case w.ours: // its flag counts, once it had the time to set it
		return isRecent(w.lastInput, now)
	}
	// A flag that another program overwrites is overwritten at once. A value that the
	// lead saw stand for a while was written by the agent itself, and so was the next.
	return w.lastRest <= w.lastInput
}

// isRecent reports whether a time of the format is no more than lagTime ago.
func isRecent(stamp string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, stamp)
	return err == nil && now.Sub(at) < lagTime
}

// beginsTurn reports whether mail is input for a model. The rest its runtime consumes
// (facts: claude-code §4.5).
func beginsTurn(m mailbox.Message) bool {
	c, isProtocol := protocol.Parse(m.Text)
	return !isProtocol || !protocol.IsConsumed(c)
}

// gatherEvidence gathers the evidence about an agent that does not run in this process.
func (o *observation) gatherEvidence(ctx context.Context, who mailbox.Address, m *roster.Member) (w evidence, err error) {
	w = evidence{apart: m.Apart(), flag: m.IsActive, hasTask: hasBegun(o.list, who.Agent)}
	var notes []string
	if notes, w.last, err = o.notes(ctx, who.Agent, joinedAt(m)); err != nil {
		return w, err
	}
	mails, err := o.teams.options.Mail.All(ctx, who)
	if err != nil {
		return w, err
	}
	w.compareTimes(mails, notes, joinedAt(m))
	if w.ours, err = o.teams.members.isOurs(ctx, who); err != nil {
		return w, err
	}
	if w.apart && !w.ours {
		if w.lastRest, err = restedAt(ctx, o.teams.options.Records, who); err != nil {
			return w, err
		}
	}
	w.present, w.known, err = o.teams.members.present(ctx, who)
	return w, err
}

// compareTimes compares what an agent was sent since it joined with the notes that it sent
// itself; both stand in their order.
func (w *evidence) compareTimes(mails []mailbox.Message, notes []string, joined string) {
	before := joined
	if len(notes) > 0 {
		w.lastIdleNote = notes[len(notes)-1]
	}
	if len(notes) > 1 {
		before = notes[len(notes)-2]
	}
	var last string // of those that came before the newest note
	for _, m := range slices.Backward(mails) {
		if w.lastInput != "" && m.Timestamp <= before || m.Timestamp < joined {
			break
		}
		if !beginsTurn(m) {
			continue
		}
		w.lastInput = max(w.lastInput, m.Timestamp)
		if m.Timestamp > before && m.Timestamp <= w.lastIdleNote {
			w.queued = w.queued || last != "" && m.Timestamp != last
			last = m.Timestamp
		}
	}
}

// joinedAt is when a member joined, as mail has times; "" when nobody knows.
func joinedAt(m *roster.Member) string {
	if m.JoinedAt == 0 {
		return ""
	}
	return protocol.Stamp(time.UnixMilli(m.JoinedAt))
}

// notes returns the times of an agent's last idle notes to the lead, two at most, the
// newest last, and what the newest one says. Notes of a former agent of its name do not
// count.
func (o *observation) notes(ctx context.Context, name, joined string) (at []string, last lastTurn, err error) {
	if !o.read {
		o.mail, err = o.teams.options.Mail.All(ctx, mailbox.Address{Team: o.config.Name, Agent: mailbox.LeadName})
		if err != nil {
			return nil, lastTurn{}, err
		}
		o.read = true
	}
	for _, m := range slices.Backward(o.mail) {
		if m.From != name || m.Timestamp < joined {
			continue
		}
		c, _ := protocol.Parse(m.Text)
		note, ok := c.(protocol.IdleNotification)
		if !ok {
			continue
		}
		if at = slices.Insert(at, 0, m.Timestamp); len(at) == 2 {
			break
		}
		last = lastTurn{note.IdleReason, note.FailureReason, note.CompletedTaskID, note.Unread}
	}
	return at, last, nil
}

// restedAt is when isActive of a teammate was last seen to change from true to false; ""
// for never, and while it was last seen as true.
func restedAt(ctx context.Context, records roster.Records, who mailbox.Address) (string, error) {
	var seen roster.Activity
	err := roster.GetRecord(ctx, records, who.Team, roster.RecordActivity, who.Agent, &seen)
	if errors.Is(err, roster.ErrNoRecord) {
		return "", nil
	}
	if seen.Active {
		seen.Since = ""
	}
	return seen.Since, err
}

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

// testimony is all that tells, from outside its process, whether an agent is at work:
// what it was given, what it said of the end of its turns, and what the roster says.
//
// Mail is the better witness. It is only added to, under a lock; the roster is
// written by several programs without one, and what one of them has written there
// may be undone by the next, which had read it before (facts: claude-code §2.3). So
// an agent works from when it is given something until it says that it is idle, and
// the roster decides where that leaves a doubt: a program whose inbox is locked just
// then drops the message that it is idle (§8).
type testimony struct {
	ours    bool // its program corrects what others make of its word in the roster
	apart   bool // it has a process to itself
	present bool // its process runs
	known   bool // whether it does is known: of our own programs it is
	begun   bool // a task of the list is its, and in progress

	last lastTurn // what it said when it last told the lead that it is idle

	flag   *bool  // its word in the roster, as it stands there now
	told   string // when it was last sent something that begins a turn; "" for never
	noted  string // when it last said that it is idle; "" for never
	queued bool   // what it was sent before it said so came at several times: it may have gone on
	rested string // when its lead last saw its word in the roster go from work to rest; "" for never
}

// lagTime is more than an agent takes to say that it is at work, after it has taken
// its mail or has said that it is idle (facts: claude-code §15), and more than a
// program of ours takes to correct what others have made of its word.
const lagTime = 3 * time.Second

// atWork decides. Times of the format sort as text.
func (w *testimony) atWork(now time.Time) bool {
	active := w.flag != nil && *w.flag
	switch {
	case active && w.ours:
		return true
	case w.told == "" && w.noted == "":
		return active || w.begins()
	case w.told > w.noted:
		return active || w.owesNote(now)
	case !w.apart:
		return w.begun // it takes tasks by itself
	case w.ours || !w.queued:
		return false
	}
	return active || isRecent(w.noted, now)
}

// begins reports whether an agent of which nothing was heard is about to begin: one in
// its lead's process has its prompt from there.
func (w *testimony) begins() bool { return !w.apart || w.ours && !w.present && w.flag == nil }

// owesNote reports whether an agent that was given something, and has not said that
// it is idle since, is at work although the roster does not say so.
func (w *testimony) owesNote(now time.Time) bool {
	switch {
	case !w.apart:
		return true
	case w.ours: // its word counts, as soon as it can be there
		return isRecent(w.told, now)
	}
	// A word that somebody has undone is undone at once. One that stood long enough to
	// be seen was the agent's own, and so was its end.
	return w.rested <= w.told
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

// testify gathers what tells of an agent that does not run in this process.
func (o *observation) testify(ctx context.Context, who mailbox.Address, m *roster.Member) (w testimony, err error) {
	w = testimony{apart: m.Apart(), flag: m.IsActive, begun: hasBegun(o.list, who.Agent)}
	var notes []string
	if notes, w.last, err = o.notes(ctx, who.Agent, joinedAt(m)); err != nil {
		return w, err
	}
	mails, err := o.teams.mail.All(ctx, who)
	if err != nil {
		return w, err
	}
	w.weigh(mails, notes, joinedAt(m))
	if w.ours, err = o.teams.isOurs(ctx, who); err != nil {
		return w, err
	}
	if w.apart && !w.ours {
		if w.rested, err = o.teams.restedAt(ctx, who); err != nil {
			return w, err
		}
	}
	w.present, w.known, err = o.teams.Present(ctx, who)
	return w, err
}

// weigh compares what an agent was sent since it joined with the notes that it sent
// itself; both stand in their order.
func (w *testimony) weigh(mails []mailbox.Message, notes []string, joined string) {
	before := joined
	if len(notes) > 0 {
		w.noted = notes[len(notes)-1]
	}
	if len(notes) > 1 {
		before = notes[len(notes)-2]
	}
	var last string // of those that came before the newest note
	for _, m := range slices.Backward(mails) {
		if w.told != "" && m.Timestamp <= before || m.Timestamp < joined {
			break
		}
		if !beginsTurn(m) {
			continue
		}
		w.told = max(w.told, m.Timestamp)
		if m.Timestamp > before && m.Timestamp <= w.noted {
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

// notes is when an agent last told the lead that it is idle, twice at most, the newest
// last, and what it said then. What a former agent of its name said does not count.
func (o *observation) notes(ctx context.Context, name, joined string) (at []string, last lastTurn, err error) {
	if !o.read {
		o.mail, err = o.teams.mail.All(ctx, mailbox.Address{Team: o.config.Name, Agent: mailbox.LeadName})
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

// restedAt is when the word of a teammate was last seen to go from work to rest; ""
// for never, and while it was last seen at work.
func (t *Teams) restedAt(ctx context.Context, who mailbox.Address) (string, error) {
	var seen roster.Activity
	err := roster.GetRecord(ctx, t.records, who.Team, roster.RecordActivity, who.Agent, &seen)
	if errors.Is(err, roster.ErrNoRecord) {
		return "", nil
	}
	if seen.Active {
		seen.Since = ""
	}
	return seen.Since, err
}

package team

import (
	"context"
	"errors"
	"slices"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// returnMail gives what an agent that has left can no longer read back to its
// senders, and to the lead, and marks it read. What the runtime told the agent is
// nobody's any more, and what it was shown before it was killed need only be marked.
// It may be repeated: what was returned before a crash is not returned again.
func (t *Teams) returnMail(ctx context.Context, c *roster.Roster, who mailbox.Address) error {
	unread, err := t.mail.Unread(ctx, who)
	if err != nil || len(unread) == 0 {
		return err
	}
	shown, err := t.shownTo(ctx, who)
	if err != nil {
		return err
	}
	ids := make([]mailbox.ID, len(unread))
	back := onceMail{teams: t, team: who.Team}
	for i, m := range unread {
		ids[i] = m.ID
		if slices.Contains(shown, m.ID) {
			continue
		}
		v, err := t.verify(ctx, who, m)
		if err != nil {
			return err
		}
		if v.control != nil {
			continue
		}
		to := []string{mailbox.LeadName}
		if v.authentic && m.From != mailbox.LeadName && c.Find(m.From) != nil {
			to = append(to, m.From)
		}
		for _, name := range to {
			if err := back.post(ctx, name, returnOf(who, m)); err != nil {
				return err
			}
		}
	}
	return t.mail.MarkRead(ctx, who, ids)
}

// shownTo lists the receipts in the conversation of a teammate, as far as it is
// known where that lies.
func (t *Teams) shownTo(ctx context.Context, who mailbox.Address) ([]mailbox.ID, error) {
	record, kept, err := t.record(ctx, who)
	if err != nil || !kept || record.SessionID == "" || t.options.Shown == nil {
		return nil, err
	}
	return t.options.Shown(ctx, record)
}

// returnOf is the return of a message. It has the message's own timestamp, so that
// a second return of it is equal to the first.
func returnOf(who mailbox.Address, m mailbox.Message) mailbox.Message {
	return mailbox.Message{From: mailbox.SystemName, Timestamp: m.Timestamp, Text: protocol.Encode(protocol.MailReturned{
		Type: protocol.TypeMailReturned, From: m.From, To: who.Agent, Summary: m.Summary, Text: m.Text, Timestamp: m.Timestamp,
	})}
}

// onceMail posts notes of the runtime to members of a team, those that stand in an
// inbox already not again. It reads each inbox once.
type onceMail struct {
	teams  *Teams
	team   string
	stands map[string]map[mailbox.ID]bool // by member
}

func (o *onceMail) post(ctx context.Context, name string, note mailbox.Message) error {
	to := mailbox.Address{Team: o.team, Agent: name}
	if o.stands[name] == nil {
		all, err := o.teams.mail.All(ctx, to)
		if err != nil {
			return err
		}
		if o.stands == nil {
			o.stands = make(map[string]map[mailbox.ID]bool)
		}
		o.stands[name] = idsOf(all)
	}
	id := mailbox.FirstID(note)
	if o.stands[name][id] {
		return nil
	}
	o.stands[name][id] = true
	return o.teams.post(ctx, event.Agent{Name: mailbox.SystemName}, to, note, sealedProtocol)
}

// confirm looks, after a message was posted, whether its recipient is still
// there. A departure returns what it finds in the inbox after it has taken its
// agent off the roster; so either it finds this message, or the message is taken
// back here, and the error says that it was not sent.
func (t *Teams) confirm(ctx context.Context, to mailbox.Address, m mailbox.Message) error {
	config, err := t.store.Load(ctx, to.Team)
	if errors.Is(err, roster.ErrNotFound) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // it was posted; that nobody can say more now is no failure of that
	}
	_, gone := t.member(ctx, &config, to.Agent)
	if gone == nil {
		return nil
	}
	unread, err := t.mail.Unread(ctx, to)
	if err != nil {
		return err
	}
	id := mailbox.FirstID(m)
	if !slices.ContainsFunc(unread, func(u mailbox.Message) bool { return u.ID == id }) {
		return nil // shown in time, or returned
	}
	return errors.Join(gone, t.mail.MarkRead(ctx, to, []mailbox.ID{id}))
}

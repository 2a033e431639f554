package team

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// returnMail returns the unread mail of an agent that has left to its senders, with a
// copy to the lead, and marks it read. Messages of the runtime are only marked, and so
// are those that the agent's model was shown before it was killed. It may be repeated:
// what was returned before a crash is not returned again.
func (ds *departures) returnMail(ctx context.Context, c *roster.Roster, who mailbox.Address) error {
	unread, err := ds.outbox.mail.Unread(ctx, who)
	if err != nil || len(unread) == 0 {
		return err
	}
	shown, err := ds.shownTo(ctx, who)
	if err != nil {
		return err
	}
	ids := make([]mailbox.ID, len(unread))
	back := onceOutbox{outbox: ds.outbox, team: who.Team}
	for i, m := range unread {
		ids[i] = m.ID
		if slices.Contains(shown, m.ID) {
			continue
		}
		v, err := ds.verifier.verify(ctx, who, m)
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
	return ds.outbox.mail.MarkRead(ctx, who, ids)
}

// shownTo lists the mail that stands in the conversation of a teammate, as far as it is
// known where that conversation lies.
func (ds *departures) shownTo(ctx context.Context, who mailbox.Address) ([]mailbox.ID, error) {
	record, kept, err := ds.members.record(ctx, who)
	if err != nil || !kept || record.SessionID == "" || ds.shown == nil {
		return nil, err
	}
	return ds.shown(ctx, record)
}

// returnOf is the return of a message. It has the message's own timestamp, so that
// a second return of it is equal to the first.
func returnOf(who mailbox.Address, m mailbox.Message) mailbox.Message {
	return mailbox.Message{From: mailbox.SystemName, Timestamp: m.Timestamp, Text: protocol.Encode(protocol.MailReturned{
		Type: protocol.TypeMailReturned, From: m.From, To: who.Agent, Summary: m.Summary, Text: m.Text, Timestamp: m.Timestamp,
	})}
}

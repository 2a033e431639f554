package team

import (
	"context"

	"github.com/cadre-dev/cadre/mailbox"
)

// protocol returns what a message in a seat's inbox tells the runtime to do: nil
// unless our own runtime posted it as protocol.
func (t *Teams) protocol(seat *Seat, m mailbox.Message) Control {
	if !t.ledger.has(seat.Address(), m) {
		return nil
	}
	c, _ := Parse(m.Text)
	return c
}

// receive does what a message asks of the runtime and makes it mail for the
// model. show is false for what the runtime consumes.
func (t *Teams) receive(ctx context.Context, seat *Seat, m mailbox.Message) (mail Mail, show bool, err error) {
	c := t.protocol(seat, m)
	mail = Mail{
		Kind: KindPeer, From: m.From, Color: m.Color, Text: Wrap(m), Preview: preview(m, c), IDs: []mailbox.ID{m.ID},
	}
	if m.From == LeadName {
		mail.Kind = KindLead
	}
	switch c := c.(type) {
	case ShutdownRequest:
		mail.Kind = KindShutdown
		seat.mu.Lock()
		seat.shutdowns[c.RequestID] = true
		seat.mu.Unlock()
	case ShutdownApproved:
		if !seat.Lead {
			return Mail{}, false, nil
		}
		end, err := t.approved(ctx, seat.Team, m.From)
		if err != nil {
			return Mail{}, false, err
		}
		mail.Kind, mail.Text, mail.Preview = KindSystem, wrapSystem(end), oneLine(end.Message)
	case PlanRequest:
		seat.mu.Lock()
		seat.plans[c.RequestID] = m.From
		seat.mu.Unlock()
	case OtherControl:
		return mail, !otherTypes[c.Type], nil
	}
	return mail, true, nil
}

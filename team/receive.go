package team

import (
	"context"

	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// arrival is a message that an inbox has taken in.
type arrival struct {
	mail    Mail
	control protocol.Control // what it told the runtime; nil for text
	show    bool             // false: the runtime consumes it
	from    string           // who sent it, as far as that is known
}

// receive does what a message asks of the runtime and makes it mail for the
// model.
func (t *Teams) receive(ctx context.Context, seat *Seat, m mailbox.Message) (arrival, error) {
	v, err := t.verify(ctx, seat.Address(), m)
	if err != nil {
		return arrival{}, err
	}
	if v.control == nil {
		seat.talks.received(m.From)
	}
	if !v.authentic {
		m.From = protocol.Unverified(m.From)
	}
	preview := protocol.Preview(m)
	if v.control != nil {
		preview = protocol.Describe(seat.Name, m, v.control)
	}
	shown := m
	shown.Text = protocol.Shortened(m.Text)
	a := arrival{control: v.control, show: true, from: m.From, mail: Mail{
		Kind: KindPeer, From: m.From, Color: m.Color, Text: protocol.Wrap(shown), Preview: oneline.Of(preview), IDs: []mailbox.ID{m.ID},
	}}
	if v.authentic && (m.From == mailbox.LeadName || m.From == mailbox.UserName) {
		a.mail.Kind = KindLead
	}
	if v.control == nil {
		return a, nil
	}
	err = t.obey(ctx, seat, m, &a)
	return a, err
}

// obey does what a message of the protocol asks of the runtime.
func (t *Teams) obey(ctx context.Context, seat *Seat, m mailbox.Message, a *arrival) (err error) {
	switch c := a.control.(type) {
	case protocol.ShutdownRequest:
		a.mail.Kind, a.mail.Urgent = KindShutdown, true
		seat.shutdownRequested(c.RequestID)
	case protocol.ShutdownApproved:
		if !seat.Lead {
			a.show = false
			return nil
		}
		end, err := t.approved(ctx, seat.Team, m)
		if err != nil {
			return err
		}
		a.mail = systemMail(end, end.Message, m.ID)
	case protocol.PlanRequest:
		a.show, err = seat.Plans.requested(ctx, m, c, &a.mail)
	case protocol.PlanResponse:
		a.show, err = seat.Plans.answered(ctx, m, c, &a.mail)
	case protocol.PermissionRequest:
		a.show, err = seat.relays.requested(ctx, m, c, &a.mail)
	case protocol.PermissionResponse:
		a.show, err = false, seat.Questions.answered(ctx, m, c)
	case protocol.PermissionSettled:
		a.show = false
		seat.relays.withdrawnByAsker(ctx, m.From, c.RequestID)
	case protocol.StopRequest:
		seat.stopBy(c)
		a.show = false
	case protocol.IdleNotification:
		a.mail.Quiet = c.IdleReason == protocol.Available
	case protocol.MailReturned:
		seat.receipts.cancelReturned(c)
		a.mail = systemMail(c, a.mail.Preview, m.ID)
	case protocol.LoopDamped, protocol.Terminated:
		a.mail = systemMail(c, a.mail.Preview, m.ID)
	case protocol.OtherControl:
		a.show = !protocol.IsConsumed(c)
	}
	return err
}

// systemMail is a note of the runtime that a message brought.
func systemMail(c protocol.Control, preview string, id mailbox.ID) Mail {
	return Mail{
		Kind: KindSystem, From: mailbox.SystemName, Text: protocol.WrapSystem(c), Preview: oneline.Of(preview), IDs: []mailbox.ID{id},
	}
}

package team

import (
	"context"

	"github.com/cadre-dev/cadre/mailbox"
)

// arrival is a message that an inbox has taken in.
type arrival struct {
	mail    Mail
	control Control // what it told the runtime; nil for text
	show    bool    // false: the runtime consumes it
	from    string  // who sent it, as far as that is known
}

// receive does what a message asks of the runtime and makes it mail for the
// model.
func (t *Teams) receive(ctx context.Context, seat *Seat, m mailbox.Message) (arrival, error) {
	w, err := t.judge(ctx, seat.Address(), m)
	if err != nil {
		return arrival{}, err
	}
	if w.control == nil {
		seat.talks.received(m.From)
	}
	if !w.believed {
		m.From = unverified(m.From)
	}
	shown := m
	shown.Text = shortened(m.Text)
	a := arrival{control: w.control, show: true, from: m.From, mail: Mail{
		Kind: KindPeer, From: m.From, Color: m.Color, Text: Wrap(shown), Preview: preview(m, w.control), IDs: []mailbox.ID{m.ID},
	}}
	if w.believed && (m.From == LeadName || m.From == UserName) {
		a.mail.Kind = KindLead
	}
	if w.control == nil {
		return a, nil
	}
	handled, show, err := t.handshake(ctx, seat, m, w.control, &a.mail)
	if err != nil || handled {
		a.show = show
		return a, err
	}
	err = t.obey(ctx, seat, m, &a)
	return a, err
}

// obey does what a message of the protocol asks of the runtime.
func (t *Teams) obey(ctx context.Context, seat *Seat, m mailbox.Message, a *arrival) error {
	switch c := a.control.(type) {
	case ShutdownRequest:
		a.mail.Kind, a.mail.Urgent = KindShutdown, true
		seat.askedToShutDown(c.RequestID)
	case ShutdownApproved:
		if !seat.Lead {
			a.show = false
			return nil
		}
		end, err := t.approved(ctx, seat.Team, m)
		if err != nil {
			return err
		}
		a.mail = systemMail(end, end.Message, m.ID)
	case StopRequest:
		seat.stopNow(c)
		a.show = false
	case IdleNotification:
		a.mail.Quiet = c.IdleReason == Available
	case MailReturned:
		seat.wanted.returned(c)
		a.mail = systemMail(c, a.mail.Preview, m.ID)
	case LoopDamped, Terminated:
		a.mail = systemMail(c, a.mail.Preview, m.ID)
	case OtherControl:
		a.show = !otherTypes[c.Type]
	}
	return nil
}

// systemMail is a note of the runtime that a message brought.
func systemMail(c Control, preview string, id mailbox.ID) Mail {
	return Mail{
		Kind: KindSystem, From: systemName, Text: wrapSystem(c), Preview: oneLine(preview), IDs: []mailbox.ID{id},
	}
}

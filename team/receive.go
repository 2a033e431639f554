package team

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// arrival is a message as an inbox has received it.
type arrival struct {
	mail    Mail
	control protocol.Control // what it says to the runtime; nil for text
	show    bool             // false: the runtime consumes it
	from    string           // who sent it, as far as that is known
}

// receive does what a message asks of the runtime and makes it mail for the
// model.
func (t *Teams) receive(ctx context.Context, seat *Seat, m mailbox.Message) (arrival, error) {
	v, err := t.verifier.verify(ctx, seat.Address(), m)
	if err != nil {
		return arrival{}, err
	}
	if v.control == nil {
		seat.exchanges.received(m.From)
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
		a.mail.Whole = m.Text
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
		seat.shutdowns.received(c.RequestID)
	case protocol.ShutdownApproved:
		if !seat.Lead {
			a.show = false
			return nil
		}
		end, err := t.departures.approved(ctx, seat.Team, m)
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

// verifier decides what the messages in an inbox count as. Its methods may be called
// from any goroutine.
type verifier struct {
	seals         mailbox.Seals
	members       *members
	trustUnsigned bool // [Policy].TrustUnsigned
}

// verdict is what a message in an inbox counts as.
type verdict struct {
	control   protocol.Control // what it asks of the runtime; nil when it is text for the model
	authentic bool             // its sender is who it says
}

// verify decides what a message in an inbox counts as. A message with our seal is
// what it says it is. One without counts only when its sender's program cannot
// seal; and of what such a sender asks of the runtime, only what a team of several
// programs cannot do without (facts: reliability-security §3.6).
func (v *verifier) verify(ctx context.Context, at mailbox.Address, m mailbox.Message) (verdict, error) {
	c, isProtocol := protocol.Parse(m.Text)
	about := sealedText
	if isProtocol {
		about = sealedProtocol
	}
	if m.ID == mailbox.FirstID(m) { // a copy of a sealed message does not count
		sealed, err := v.seals.Sealed(ctx, at, m, about)
		if err != nil || sealed {
			return verdict{c, sealed}, err
		}
	}
	foreign, err := v.members.isForeign(ctx, mailbox.Address{Team: at.Team, Agent: m.From})
	if err != nil || !foreign {
		return verdict{}, err
	}
	if isProtocol && v.countsUnsealed(at, m.From, c) {
		return verdict{c, true}, nil
	}
	return verdict{nil, true}, nil
}

// The types of protocol messages that count without a seal, from agents of another
// program.
var (
	// That a permission response is here does not let it pass: [Questions.isTrusted]
	// checks it, so that the person is warned when it is refused.
	unsealedByLead  = []string{protocol.TypeShutdownRequest, protocol.TypePlanResponse, protocol.TypeAssignment, protocol.TypePermissionResponse}
	unsealedAnswers = []string{"sandbox_permission_response", "mode_set_request", "team_permission_update"}
	unsealedToLead  = []string{protocol.TypeIdle, protocol.TypeShutdownApproved, protocol.TypeShutdownRejected, protocol.TypePlanRequest, protocol.TypePermissionRequest, "sandbox_permission_request"}
)

// countsUnsealed reports whether a message of the protocol counts without a seal,
// from an agent whose program cannot seal. One that grants a permission counts only
// when the person trusts such leads ([Policy].TrustUnsigned).
func (v *verifier) countsUnsealed(at mailbox.Address, from string, c protocol.Control) bool {
	switch {
	case at.Agent == mailbox.LeadName:
		return from != mailbox.LeadName && slices.Contains(unsealedToLead, protocol.KindOf(c))
	case from == mailbox.LeadName:
		return slices.Contains(unsealedByLead, protocol.KindOf(c)) ||
			v.trustUnsigned && slices.Contains(unsealedAnswers, protocol.KindOf(c))
	}
	return false
}

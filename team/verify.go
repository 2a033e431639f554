package team

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// verdict is what a message in an inbox counts as.
type verdict struct {
	control   protocol.Control // what it asks of the runtime; nil when it is text for the model
	authentic bool             // its sender is who it says
}

// verify decides what a message in an inbox counts as. A message with our seal is
// what it says it is. One without counts only when its sender's program cannot
// seal; and of what such a sender asks of the runtime, only what a team of several
// programs cannot do without (facts: reliability-security §3.6).
func (t *Teams) verify(ctx context.Context, at mailbox.Address, m mailbox.Message) (verdict, error) {
	c, isProtocol := protocol.Parse(m.Text)
	about := sealedText
	if isProtocol {
		about = sealedProtocol
	}
	if m.ID == mailbox.FirstID(m) { // a copy of a sealed message does not count
		sealed, err := t.seals.Sealed(ctx, at, m, about)
		if err != nil || sealed {
			return verdict{c, sealed}, err
		}
	}
	foreign, err := t.isForeign(ctx, at.Team, m.From)
	if err != nil || !foreign {
		return verdict{}, err
	}
	if isProtocol && t.countsUnsealed(at, m.From, c) {
		return verdict{c, true}, nil
	}
	return verdict{nil, true}, nil
}

// isForeign reports whether an agent is a member of the team whose program is not
// ours, and so cannot seal.
func (t *Teams) isForeign(ctx context.Context, team, agent string) (bool, error) {
	who := mailbox.Address{Team: team, Agent: agent}
	if agent != mailbox.LeadName {
		config, err := t.store.Load(ctx, team)
		if err != nil || config.Find(agent) == nil {
			return false, err
		}
	}
	ours, err := t.isOurs(ctx, who)
	return !ours, err
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
func (t *Teams) countsUnsealed(at mailbox.Address, from string, c protocol.Control) bool {
	switch {
	case at.Agent == mailbox.LeadName:
		return from != mailbox.LeadName && slices.Contains(unsealedToLead, protocol.KindOf(c))
	case from == mailbox.LeadName:
		return slices.Contains(unsealedByLead, protocol.KindOf(c)) ||
			t.options.Policy.TrustUnsigned && slices.Contains(unsealedAnswers, protocol.KindOf(c))
	}
	return false
}

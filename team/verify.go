package team

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// word is what a message in an inbox is worth.
type word struct {
	control  protocol.Control // what it tells the runtime to do; nil when it is text
	believed bool             // that it is from whom it says
}

// judge finds out what a message in an inbox is worth. What carries our seal is
// what it says it is. Without one it counts only from an agent whose program
// cannot seal; of what such an agent says to the runtime, only what the files of
// a mixed team need (facts: reliability-security §3.6).
func (t *Teams) judge(ctx context.Context, at mailbox.Address, m mailbox.Message) (word, error) {
	c, isProtocol := protocol.Parse(m.Text)
	about := sealedText
	if isProtocol {
		about = sealedProtocol
	}
	if m.ID == mailbox.FirstID(m) { // a copy of a sealed message is no second one
		sealed, err := t.seals.Sealed(ctx, at, m, about)
		if err != nil || sealed {
			return word{c, sealed}, err
		}
	}
	foreign, err := t.isForeign(ctx, at.Team, m.From)
	if err != nil || !foreign {
		return word{}, err
	}
	if isProtocol && t.mayUnsealed(at, m.From, c) {
		return word{c, true}, nil
	}
	return word{nil, true}, nil
}

// isForeign reports whether an agent is a member whose program is not ours.
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

// What another program's agents may say to our runtime without a seal.
var (
	// A permission response is looked at once more before it counts
	// ([Questions.isTrusted]), so that the person is told of a refusal.
	unsealedByLead  = []string{protocol.TypeShutdownRequest, protocol.TypePlanResponse, protocol.TypeAssignment, protocol.TypePermissionResponse}
	unsealedAnswers = []string{"sandbox_permission_response", "mode_set_request", "team_permission_update"}
	unsealedToLead  = []string{protocol.TypeIdle, protocol.TypeShutdownApproved, protocol.TypeShutdownRejected, protocol.TypePlanRequest, protocol.TypePermissionRequest, "sandbox_permission_request"}
)

// mayUnsealed reports whether a message of the protocol counts without a seal,
// from an agent whose program has none. What grants a permission does so only
// when the person has said that it may.
func (t *Teams) mayUnsealed(at mailbox.Address, from string, c protocol.Control) bool {
	switch {
	case at.Agent == mailbox.LeadName:
		return from != mailbox.LeadName && slices.Contains(unsealedToLead, protocol.KindOf(c))
	case from == mailbox.LeadName:
		return slices.Contains(unsealedByLead, protocol.KindOf(c)) ||
			t.options.Policy.TrustUnsigned && slices.Contains(unsealedAnswers, protocol.KindOf(c))
	}
	return false
}

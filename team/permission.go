package team

import (
	"context"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// asked is the question of a request, as the lead puts it before somebody.
func (s *Seat) asked(m mailbox.Message, c protocol.PermissionRequest) ask.Ask {
	a := ask.Ask{
		ID: c.RequestID, Kind: ask.Permission, SessionID: s.session, AgentName: m.From, Team: s.Team,
		Tool: c.ToolName, ToolUseID: c.ToolUseID, Input: c.Input, Digest: ask.DigestOf(c.ToolName, c.Input),
		Question: "May " + c.ToolName + " of " + m.From + " run?", Reason: c.Description,
		Suggestions: protocol.Acceptable(c.Suggestions), Asked: sentAt(m),
	}
	switch c.ToolName {
	case protocol.AskUserQuestion:
		a.Kind, a.Question = ask.Choice, m.From+" has a question."
	case protocol.ExitPlanMode:
		a.Kind, a.Question = ask.Plan, "Is the plan of "+m.From+" good?"
	}
	return a
}

// permissionRequested relays a request in the lead's inbox. Its model is never
// shown one: it may not answer.
func (t *Teams) permissionRequested(ctx context.Context, seat *Seat, m mailbox.Message, c protocol.PermissionRequest, mail *Mail) (show bool, err error) {
	if !seat.Lead {
		return true, nil
	}
	member, err := seat.recipient(ctx, m.From)
	if isUnknown(err) || c.RequestID == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a := seat.asked(m, c)
	if done, err := t.answeredBefore(ctx, seat, member.Name, m, c.RequestID, a.Digest); err != nil {
		return false, err
	} else if done {
		t.consent.settled(ctx, a.ID)
		return false, nil
	}
	// A program that cannot seal its requests suggests nothing that lasts: whoever
	// can write to the inbox can be it.
	if ours, err := t.isOurs(ctx, mailbox.Address{Team: seat.Team, Agent: member.Name}); err != nil {
		return false, err
	} else if !ours {
		a.Suggestions = protocol.ForSession(a.Suggestions)
	}
	held, _, err := t.relayAsk(ctx, seat, member, m, a, func(ctx context.Context, answer ask.Answer) error {
		return seat.respondPermission(ctx, member.Name, a, answer)
	})
	if held {
		mail.IDs = nil
	}
	return false, err
}

// respondPermission posts the answer to a request, bound to the digest of what
// was asked.
func (s *Seat) respondPermission(ctx context.Context, to string, a ask.Ask, answer ask.Answer) error {
	inbox := mailbox.Address{Team: s.Team, Agent: to}
	m := s.unique(inbox, mailbox.Message{
		From: s.Name, Text: protocol.Encode(protocol.NewPermissionResponse(a, answer)), Timestamp: protocol.Stamp(time.Now()),
	})
	if err := s.teams.seals.Seal(ctx, inbox, m, a.Digest); err != nil {
		return err
	}
	return s.teams.post(ctx, s.agent(), inbox, m, sealedProtocol)
}

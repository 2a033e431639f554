package team

import (
	"context"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Say posts what a person writes to a member of a team; to may be a name or
// name@team. It needs no place in the team, and works from any process. To its
// recipient it is as urgent as the lead's mail. Errors: [roster.ErrNotFound] for the
// team, [*roster.UnknownMemberError], [ErrProtocol], [ErrTooLong].
func (t *Teams) Say(ctx context.Context, team, to, text string) (Delivery, error) {
	if err := mayPost(text); err != nil {
		return Delivery{}, err
	}
	config, err := t.store.Load(ctx, team)
	if err != nil {
		return Delivery{}, err
	}
	member, err := t.member(ctx, &config, to)
	if err != nil {
		return Delivery{}, err
	}
	m := mailbox.Message{From: mailbox.UserName, Text: text, Timestamp: protocol.Stamp(time.Now())}
	at := mailbox.Address{Team: config.Name, Agent: member.Name}
	if err := t.post(ctx, event.Agent{Name: mailbox.UserName}, at, m, sealedText); err != nil {
		return Delivery{}, err
	}
	if err := t.confirm(ctx, at, m); err != nil {
		return Delivery{}, err
	}
	return Delivery{To: member.Name, Color: shownColor(member), ID: mailbox.FirstID(m)}, nil
}

package team

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Receipt says what became of a message that the seat's agent sent: sent, it
// stands in the recipient's inbox; shown, the recipient's model has seen it.
func (s *Seat) Receipt(ctx context.Context, to string, id mailbox.ID) (sent, shown bool, err error) {
	all, err := s.teams.mail.All(ctx, mailbox.Address{Team: s.Team, Agent: to})
	if err != nil {
		return false, false, err
	}
	at := slices.IndexFunc(all, func(m mailbox.Message) bool { return m.ID == id && m.From == s.Name })
	if at < 0 {
		return false, false, nil
	}
	if !all[at].Read {
		return true, false, nil
	}
	returned, err := s.wasReturned(ctx, to, all[at])
	return true, !returned, err
}

// wasReturned reports whether a message of the seat's agent came back.
func (s *Seat) wasReturned(ctx context.Context, to string, m mailbox.Message) (bool, error) {
	own, err := s.teams.mail.All(ctx, s.Address())
	if err != nil {
		return false, err
	}
	for _, note := range own {
		c, ok := protocol.Parse(note.Text)
		if back, isReturn := c.(protocol.MailReturned); !ok || !isReturn || !back.Of(to, m) {
			continue
		}
		w, err := s.teams.verify(ctx, s.Address(), note)
		if err != nil || w.control != nil {
			return true, err
		}
	}
	return false, nil
}

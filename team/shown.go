package team

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// readByNow lists the wanted receipts whose messages are no longer unread: shown,
// or returned, which the agent's own inbox tells.
func (s *Seat) readByNow(ctx context.Context) ([]wantedReceipt, error) {
	s.wanted.mu.Lock()
	open := slices.DeleteFunc(slices.Clone(s.wanted.open), func(r wantedReceipt) bool { return s.wanted.told[r.noteID()] })
	s.wanted.mu.Unlock()
	unread := make(map[string]map[mailbox.ID]bool)
	var read []wantedReceipt
	for _, r := range open {
		to := mailbox.Address{Team: s.Team, Agent: r.To}
		if unread[r.To] == nil {
			waiting, err := s.teams.mail.Unread(ctx, to)
			if err != nil {
				return nil, err
			}
			unread[r.To] = idsOf(waiting)
		}
		if unread[r.To][r.ID] {
			continue
		}
		all, err := s.teams.mail.All(ctx, to)
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(all, func(m mailbox.Message) bool { return m.ID == r.ID }); at >= 0 && all[at].Read {
			read = append(read, r) // else it is about to be posted, or a crash has prevented that
		}
	}
	return read, nil
}

func idsOf(mails []mailbox.Message) map[mailbox.ID]bool {
	ids := make(map[mailbox.ID]bool, len(mails))
	for _, m := range mails {
		ids[m.ID] = true
	}
	return ids
}

// receiptNotes makes notes of those wanted receipts that still are, after the agent's
// inbox was read.
func (s *Seat) receiptNotes(read []wantedReceipt) []Mail {
	s.wanted.mu.Lock()
	defer s.wanted.mu.Unlock()
	var notes []Mail
	for _, r := range read {
		if s.wanted.told[r.noteID()] || !slices.Contains(s.wanted.open, r) {
			continue
		}
		s.wanted.told[r.noteID()] = true
		text := fmt.Sprintf("Your message to %s was shown to it", r.To)
		if r.Summary != "" {
			text += fmt.Sprintf(" (%q)", r.Summary)
		}
		notes = append(notes, Mail{
			Kind: KindSystem, From: mailbox.SystemName, Preview: oneline.Of(text), IDs: []mailbox.ID{r.noteID()},
			Text: protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: text + "."}),
		})
	}
	return notes
}

// noteShown forgets the receipts whose notes stand in the transcript.
func (s *Seat) noteShown(ctx context.Context, ids []mailbox.ID) error {
	var done []mailbox.ID
	for _, id := range ids {
		if message, ok := strings.CutPrefix(string(id), noteIDs); ok {
			done = append(done, mailbox.ID(message))
		}
	}
	if len(done) == 0 {
		return nil
	}
	return s.unwant(ctx, done...)
}

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
		v, err := s.teams.verify(ctx, s.Address(), note)
		if err != nil || v.control != nil {
			return true, err
		}
	}
	return false, nil
}

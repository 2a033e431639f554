package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/oneline"
	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// recordReceipts is the record of the read receipts that an agent waits for, under its
// name.
const recordReceipts = "receipt"

// readReceipt is a message whose sender asked to be notified when the recipient's model
// has been shown it.
type readReceipt struct {
	To        string     `json:"to"`
	ID        mailbox.ID `json:"id"`
	Summary   string     `json:"summary,omitempty"`
	Timestamp string     `json:"timestamp"`
}

// noteID identifies the note to the sender.
func (r readReceipt) noteID() mailbox.ID { return noteIDs + r.ID }

// noteIDs begins the ids of such notes: no message's id begins so.
const noteIDs = "shown-"

// readReceipts are the read receipts that an agent waits for. They are stored, so that
// an agent which was killed gets them after it was resumed. All methods may be called
// from any goroutine.
type readReceipts struct {
	of      mailbox.Address // the agent that waits
	mail    mailbox.Store
	records roster.Records
	changed signal.Signal // waiting has changed

	mu      sync.Mutex
	loaded  bool // those of an earlier process are among waiting
	waiting []readReceipt
	version int                 // of waiting
	noted   map[mailbox.ID]bool // notes handed out that may not be in the transcript yet
}

func newReadReceipts(of mailbox.Address, mail mailbox.Store, records roster.Records) *readReceipts {
	return &readReceipts{of: of, mail: mail, records: records, changed: signal.New(), noted: make(map[mailbox.ID]bool)}
}

// replace changes what is waited for; r.mu is held.
func (r *readReceipts) replace(waiting []readReceipt) {
	r.waiting = waiting
	r.version++
	r.changed.Raise()
}

func (r *readReceipts) current() (waiting []readReceipt, version int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting, r.version
}

// add waits for one more receipt, and stores that.
func (r *readReceipts) add(ctx context.Context, one readReceipt) error {
	if err := r.load(ctx, nil); err != nil {
		return err
	}
	r.mu.Lock()
	r.replace(append(slices.Clone(r.waiting), one))
	r.mu.Unlock()
	return r.store(ctx)
}

// remove waits no longer for the receipts of these messages.
func (r *readReceipts) remove(ctx context.Context, ids ...mailbox.ID) error {
	r.mu.Lock()
	r.replace(slices.DeleteFunc(slices.Clone(r.waiting), func(one readReceipt) bool { return slices.Contains(ids, one.ID) }))
	r.mu.Unlock()
	return r.store(ctx)
}

// store writes what is waited for, and again when it has changed meanwhile, so that of
// several writers the last one writes the newest.
func (r *readReceipts) store(ctx context.Context) error {
	for {
		waiting, version := r.current()
		var err error
		if len(waiting) == 0 {
			err = r.records.Drop(ctx, r.of.Team, recordReceipts, r.of.Agent)
		} else {
			err = r.records.Put(ctx, r.of.Team, recordReceipts, r.of.Agent, jsonx.MustMarshal(waiting))
		}
		if _, now := r.current(); err != nil || now == version {
			return err
		}
	}
}

// load reads, once, which receipts an earlier process waited for. shown are the ids of the
// transcript: a receipt whose note is among them is not waited for again.
func (r *readReceipts) load(ctx context.Context, shown []mailbox.ID) error {
	r.mu.Lock()
	loaded := r.loaded
	r.mu.Unlock()
	if loaded {
		return nil
	}
	doc, err := r.records.Get(ctx, r.of.Team, recordReceipts, r.of.Agent)
	if err != nil && !errors.Is(err, roster.ErrNoRecord) {
		return fmt.Errorf("find the receipts that %s waits for: %w", r.of, err)
	}
	var stored []readReceipt
	if err == nil {
		_ = json.Unmarshal(doc, &stored) // a damaged record waits for nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded {
		return nil
	}
	r.loaded = true
	for _, one := range stored {
		if !slices.Contains(shown, one.noteID()) {
			r.waiting = append(r.waiting, one)
		}
	}
	return nil
}

// recipients lists the agents whose inboxes tell when a receipt can be given.
func (r *readReceipts) recipients() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, one := range r.waiting {
		if !r.noted[one.noteID()] && !slices.Contains(names, one.To) {
			names = append(names, one.To)
		}
	}
	return names
}

// cancelReturned waits no longer for the receipt of a message that came back.
func (r *readReceipts) cancelReturned(c protocol.MailReturned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := mailbox.FirstID(mailbox.Message{From: c.From, Timestamp: c.Timestamp, Text: c.Text})
	r.replace(slices.DeleteFunc(slices.Clone(r.waiting), func(one readReceipt) bool { return one.To == c.To && one.ID == id }))
}

// offerAgain makes a note that could not be shown new again.
func (r *readReceipts) offerAgain(note mailbox.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted[note] {
		delete(r.noted, note)
		r.replace(r.waiting)
	}
}

// read lists the receipts whose messages are marked read: they were shown, or returned;
// which of the two, the agent's own inbox says.
func (r *readReceipts) read(ctx context.Context) ([]readReceipt, error) {
	r.mu.Lock()
	waiting := slices.DeleteFunc(slices.Clone(r.waiting), func(one readReceipt) bool { return r.noted[one.noteID()] })
	r.mu.Unlock()
	unread := make(map[string]map[mailbox.ID]bool)
	var read []readReceipt
	for _, one := range waiting {
		to := mailbox.Address{Team: r.of.Team, Agent: one.To}
		if unread[one.To] == nil {
			mails, err := r.mail.Unread(ctx, to)
			if err != nil {
				return nil, err
			}
			unread[one.To] = idsOf(mails)
		}
		if unread[one.To][one.ID] {
			continue
		}
		all, err := r.mail.All(ctx, to)
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(all, func(m mailbox.Message) bool { return m.ID == one.ID }); at >= 0 && all[at].Read {
			read = append(read, one) // else it is about to be posted, or a crash has prevented that
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

// notes makes notes of those receipts that are still waited for, after the agent's own
// inbox was read.
func (r *readReceipts) notes(read []readReceipt) []Mail {
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []Mail
	for _, one := range read {
		if r.noted[one.noteID()] || !slices.Contains(r.waiting, one) {
			continue
		}
		r.noted[one.noteID()] = true
		text := fmt.Sprintf("Your message to %s was shown to it", one.To)
		if one.Summary != "" {
			text += fmt.Sprintf(" (%q)", one.Summary)
		}
		notes = append(notes, Mail{
			Kind: KindSystem, From: mailbox.SystemName, Preview: oneline.Of(text), IDs: []mailbox.ID{one.noteID()},
			Text: protocol.Wrap(mailbox.Message{From: mailbox.SystemName, Text: text + "."}),
		})
	}
	return notes
}

// removeNoted waits no longer for the receipts whose notes are among these ids, which
// stand in the transcript.
func (r *readReceipts) removeNoted(ctx context.Context, ids []mailbox.ID) error {
	var done []mailbox.ID
	for _, id := range ids {
		if message, ok := strings.CutPrefix(string(id), noteIDs); ok {
			done = append(done, mailbox.ID(message))
		}
	}
	if len(done) == 0 {
		return nil
	}
	return r.remove(ctx, done...)
}

// Receipt says what became of a message that the seat's agent sent: sent, it
// stands in the recipient's inbox; shown, the recipient's model has seen it.
func (s *Seat) Receipt(ctx context.Context, to string, id mailbox.ID) (sent, shown bool, err error) {
	all, err := s.teams.options.Mail.All(ctx, mailbox.Address{Team: s.Team, Agent: to})
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
	own, err := s.teams.options.Mail.All(ctx, s.Address())
	if err != nil {
		return false, err
	}
	for _, note := range own {
		c, ok := protocol.Parse(note.Text)
		if back, isReturn := c.(protocol.MailReturned); !ok || !isReturn || !back.Of(to, m) {
			continue
		}
		w, err := s.teams.verifier.verify(ctx, s.Address(), note)
		if err != nil || w.control != nil {
			return true, err
		}
	}
	return false, nil
}

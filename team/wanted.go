package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// recordReceipts holds what receipts an agent waits for, under its name.
const recordReceipts = "receipt"

// wantedReceipt is a message whose sender wants to know when it was shown.
type wantedReceipt struct {
	To        string     `json:"to"`
	ID        mailbox.ID `json:"id"`
	Summary   string     `json:"summary,omitempty"`
	Timestamp string     `json:"timestamp"`
}

// noteID is the receipt of the note that tells the sender.
func (w wantedReceipt) noteID() mailbox.ID { return noteIDs + w.ID }

// noteIDs begins the ids of such notes: no message's id does.
const noteIDs = "shown-"

// wanted are the receipts that an agent waits for.
type wanted struct {
	mu      sync.Mutex
	loaded  bool // what an earlier process wanted is among them
	open    []wantedReceipt
	version int                 // of open
	told    map[mailbox.ID]bool // handed out, and maybe not in the transcript yet
	changed signal.Signal       // open has changed
}

func newWanted() wanted {
	return wanted{told: make(map[mailbox.ID]bool), changed: signal.New()}
}

// change replaces the open receipts; w.mu is held.
func (w *wanted) change(open []wantedReceipt) {
	w.open = open
	w.version++
	w.changed.Raise()
}

// now is what is open, and its version.
func (w *wanted) now() ([]wantedReceipt, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.version
}

// recipients lists whose inboxes are to be watched.
func (w *wanted) recipients() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, r := range w.open {
		if !w.told[r.noteID()] && !slices.Contains(names, r.To) {
			names = append(names, r.To)
		}
	}
	return names
}

// returned drops the receipt for a message that came back.
func (w *wanted) returned(c protocol.MailReturned) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := mailbox.FirstID(mailbox.Message{From: c.From, Timestamp: c.Timestamp, Text: c.Text})
	w.change(slices.DeleteFunc(slices.Clone(w.open), func(r wantedReceipt) bool { return r.To == c.To && r.ID == id }))
}

// giveBack says that a note could not be shown after all.
func (w *wanted) giveBack(note mailbox.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[note] {
		delete(w.told, note)
		w.change(w.open)
	}
}

// want keeps that the agent wants a receipt.
func (s *Seat) want(ctx context.Context, r wantedReceipt) error {
	if err := s.loadWanted(ctx, nil); err != nil {
		return err
	}
	s.wanted.mu.Lock()
	s.wanted.change(append(slices.Clone(s.wanted.open), r))
	s.wanted.mu.Unlock()
	return s.keepWanted(ctx)
}

// unwant forgets wanted receipts.
func (s *Seat) unwant(ctx context.Context, ids ...mailbox.ID) error {
	s.wanted.mu.Lock()
	s.wanted.change(slices.DeleteFunc(slices.Clone(s.wanted.open), func(r wantedReceipt) bool { return slices.Contains(ids, r.ID) }))
	s.wanted.mu.Unlock()
	return s.keepWanted(ctx)
}

// keepWanted writes down what receipts the agent waits for: again when they have
// changed meanwhile, so that of several writers the last one has the newest.
func (s *Seat) keepWanted(ctx context.Context) error {
	for {
		open, version := s.wanted.now()
		var err error
		if len(open) == 0 {
			err = s.teams.records.Drop(ctx, s.Team, recordReceipts, s.Name)
		} else {
			err = s.teams.records.Put(ctx, s.Team, recordReceipts, s.Name, jsonx.MustMarshal(open))
		}
		if _, now := s.wanted.now(); err != nil || now == version {
			return err
		}
	}
}

// loadWanted takes over, once, what an earlier process waited for, without what
// the transcript shows to have been told.
func (s *Seat) loadWanted(ctx context.Context, shown []mailbox.ID) error {
	s.wanted.mu.Lock()
	loaded := s.wanted.loaded
	s.wanted.mu.Unlock()
	if loaded {
		return nil
	}
	doc, err := s.teams.records.Get(ctx, s.Team, recordReceipts, s.Name)
	if err != nil && !errors.Is(err, roster.ErrNoRecord) {
		return fmt.Errorf("find the receipts that %s waits for: %w", s.Address(), err)
	}
	var kept []wantedReceipt
	if err == nil {
		_ = json.Unmarshal(doc, &kept) // what is no list of ours is none
	}
	s.wanted.mu.Lock()
	defer s.wanted.mu.Unlock()
	if s.wanted.loaded {
		return nil
	}
	s.wanted.loaded = true
	for _, r := range kept {
		if !slices.Contains(shown, r.noteID()) {
			s.wanted.open = append(s.wanted.open, r)
		}
	}
	return nil
}

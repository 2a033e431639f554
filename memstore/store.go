// Package memstore keeps what filestore keeps, in memory: for tests, and for
// sessions that are not to leave anything behind.
package memstore

import (
	"sync"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/transcript"
)

// root makes names that are the same file in the layout the same thing here.
const root layout.Root = "memory:"

// Store keeps the state of one process.
type Store struct {
	transcripts transcripts
	mail        mail
	tasks       tasks
	teams       teams

	mu   sync.Mutex
	asks map[transcript.Ref]*asks
}

// New makes an empty store.
func New() *Store { return new(Store) }

// Transcripts keeps the transcripts.
func (s *Store) Transcripts() transcript.Store { return &s.transcripts }

// Mail keeps the inboxes.
func (s *Store) Mail() mailbox.Store { return &s.mail }

// Tasks keeps the task lists.
func (s *Store) Tasks() task.Store { return &s.tasks }

// Teams keeps the rosters; removing a team removes its mail.
func (s *Store) Teams() team.Store { return &teamsWithMail{&s.teams, &s.mail} }

// Asks keeps the asks of one session.
func (s *Store) Asks(ref transcript.Ref) ask.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks == nil {
		s.asks = make(map[transcript.Ref]*asks)
	}
	if s.asks[ref] == nil {
		s.asks[ref] = new(asks)
	}
	return s.asks[ref]
}

// Close is there for the symmetry with filestore; there is nothing to close.
func (s *Store) Close() error { return nil }

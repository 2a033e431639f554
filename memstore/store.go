// Package memstore keeps in memory what filestore keeps in files: for tests, and for
// sessions that must not leave anything behind.
package memstore

import (
	"maps"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// root gives things the paths that they would have as files, so that two names of one file
// are one thing here too.
const root layout.Root = "memory:"

// Store keeps the state of one process.
type Store struct {
	transcripts transcripts
	mail        mail
	tasks       tasks
	teams       teams
	seals       seals
	records     records
	presence    presence
	desk        desk
	jobs        jobs

	mu   sync.Mutex
	asks map[transcript.Ref]*asks
}

// New makes an empty store.
func New() *Store {
	s := new(Store)
	s.records.exists, s.presence.exists = s.teams.exists, s.teams.exists
	return s
}

// Transcripts keeps the transcripts.
func (s *Store) Transcripts() transcript.Store { return &s.transcripts }

// Mail keeps the inboxes.
func (s *Store) Mail() mailbox.Store { return &s.mail }

// Tasks keeps the task lists.
func (s *Store) Tasks() task.Store { return &s.tasks }

// Teams keeps the rosters. With a team, its mail, seals, records and presence are removed.
func (s *Store) Teams() roster.Store { return &wholeTeams{&s.teams, s} }

// Seals keeps which mail our own runtime wrote.
func (s *Store) Seals() mailbox.Seals { return &s.seals }

// Records keeps the private records of a team.
func (s *Store) Records() roster.Records { return &s.records }

// Presence says which agents run, all of them in this process.
func (s *Store) Presence() roster.Presence { return &s.presence }

// Desk is where open questions are found.
func (s *Store) Desk() ask.Desk { return &s.desk }

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

// Jobs keeps the jobs of one session.
func (s *Store) Jobs(ref transcript.Ref) job.Store { return &sessionJobs{&s.jobs, ref} }

// removeBelow drops what would be in a folder.
func removeBelow[T any](byPath map[string]T, folder string) {
	folder += string(filepath.Separator)
	maps.DeleteFunc(byPath, func(path string, _ T) bool { return strings.HasPrefix(path, folder) })
}

// Close does nothing; it makes a Store interchangeable with that of filestore.
func (s *Store) Close() error { return nil }

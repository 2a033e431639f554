package cadre

import (
	"errors"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/transcript"
)

// stores is where the state of a runtime lies.
type stores struct {
	transcripts transcript.Store
	mail        mailbox.Store
	tasks       task.Store
	teams       team.Store
	asks        func(transcript.Ref) ask.Store
	close       func() error
}

// openStores opens files under the root. Without persistence, transcripts and
// asks are kept in memory; teams stay in files, since other processes take part
// in them.
func openStores(root layout.Root, noPersistence bool, options ...filestore.Option) stores {
	files := filestore.New(root, options...)
	s := stores{
		transcripts: files.Transcripts(), mail: files.Mail(), tasks: files.Tasks(), teams: files.Teams(),
		asks: files.Asks, close: files.Close,
	}
	if noPersistence {
		memory := memstore.New()
		s.transcripts, s.asks = memory.Transcripts(), memory.Asks
		s.close = func() error { return errors.Join(files.Close(), memory.Close()) }
	}
	return s
}

// State is what lies under a state root, for programs that look at it without
// running anything.
type State struct{ files *filestore.Store }

// OpenState opens the state under a root, which need not exist. It takes no
// lease and starts nothing.
func OpenState(root layout.Root) *State { return &State{filestore.New(root)} }

// Teams are the rosters.
func (s *State) Teams() team.Store { return s.files.Teams() }

// Tasks are the task lists.
func (s *State) Tasks() task.Store { return s.files.Tasks() }

// Mail are the inboxes.
func (s *State) Mail() mailbox.Store { return s.files.Mail() }

// Transcripts are the sessions.
func (s *State) Transcripts() transcript.Store { return s.files.Transcripts() }

// Close ends what was opened.
func (s *State) Close() error { return s.files.Close() }

package cadre

import (
	"context"
	"errors"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/transcript"
)

// stores is where the state of a runtime lies.
type stores struct {
	transcripts transcript.Store
	mail        mailbox.Store
	tasks       task.Store
	teams       roster.Store
	asks        func(transcript.Ref) ask.Store
	jobs        func(transcript.Ref) job.Store
	desk        ask.Desk
	seals       mailbox.Seals
	records     roster.Records
	presence    roster.Presence
	showTeam    func(ctx context.Context, name string, to layout.Root) error                   // under another root
	keepText    func(main transcript.Ref, id mailbox.ID, text string) (path string, err error) // of a large message
	checkKey    func() error                                                                   // of the seals
	close       func() error
}

// openStores opens files under the root. Without persistence, transcripts, asks and
// jobs are kept in memory; teams stay in files, since other processes take part
// in them.
func openStores(root layout.Root, noPersistence bool, options ...filestore.Option) stores {
	files := filestore.New(root, options...)
	s := stores{
		transcripts: files.Transcripts(), mail: files.Mail(), tasks: files.Tasks(),
		teams: roster.NewRepairingStore(files.LedTeams(), files.Records()), // one, for all that look at a roster
		asks:  files.Asks, jobs: files.Jobs, desk: files.Desk(), seals: files.Seals(), records: files.Records(), presence: files.Presence(),
		showTeam: files.ShowTeam, keepText: files.KeepText, checkKey: files.CheckKey, close: files.Close,
	}
	if noPersistence {
		memory := memstore.New()
		s.transcripts, s.asks, s.jobs, s.keepText = memory.Transcripts(), memory.Asks, memory.Jobs, nil
		s.close = func() error { return errors.Join(files.Close(), memory.Close()) }
	}
	return s
}

// State is what lies under a state root, for programs that look at it without
// running anything.
type State struct {
	files *filestore.Store
	seals mailbox.Seals
}

// OpenState opens the state under a root, which need not exist. It takes no
// lease and starts nothing. warn is called with what is found damaged, from any
// goroutine; nil: nothing is.
func OpenState(root layout.Root, warn ...func(error)) *State {
	files := filestore.New(root, warnings(warn)...)
	return &State{files, files.Seals()}
}

// OpenOthersState opens the state of another program like [OpenState]: what is damaged
// there is not repaired. It has no use for seals: none are written there, nor the key
// for them.
func OpenOthersState(root layout.Root, warn ...func(error)) *State {
	return &State{filestore.New(root, append(warnings(warn), filestore.WithoutRepair())...), memstore.New().Seals()}
}

func warnings(warn []func(error)) []filestore.Option {
	var options []filestore.Option
	for _, w := range warn {
		options = append(options, filestore.WithWarn(w))
	}
	return options
}

// Rosters are the teams' rosters.
func (s *State) Rosters() roster.Store { return s.files.Teams() }

// Teams are what may be done in teams from outside their processes. No teammate
// can be started with them.
func (s *State) Teams() *team.Teams {
	return team.New(team.Options{
		Store: s.files.Teams(), Mail: s.files.Mail(), Tasks: s.files.Tasks(),
		Seals: s.seals, Records: s.files.Records(), Presence: s.files.Presence(),
	})
}

// Finished are the state roots with what is kept of finished teams, one for each.
func (s *State) Finished() ([]layout.Root, error) { return s.files.Finished() }

// Records are what is ours alone about the teams.
func (s *State) Records() roster.Records { return s.files.Records() }

// Presence says which agents have a process of their own.
func (s *State) Presence() roster.Presence { return s.files.Presence() }

// Desk is where open questions lie.
func (s *State) Desk() ask.Desk { return s.files.Desk() }

// Tasks are the task lists.
func (s *State) Tasks() task.Store { return s.files.Tasks() }

// Mail are the inboxes.
func (s *State) Mail() mailbox.Store { return s.files.Mail() }

// Transcripts are the sessions.
func (s *State) Transcripts() transcript.Store { return s.files.Transcripts() }

// Close ends what was opened.
func (s *State) Close() error { return s.files.Close() }

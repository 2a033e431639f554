// Package filestore keeps transcripts, mail, task lists, rosters, asks and jobs as
// files, in the layout and the exact formats that Claude Code uses (facts:
// claude-code §2, §3, §5, §11), so that both may work on the same files at the
// same time. What other programs wrote and we do not know stays where it is.
//
// Every change of a shared file is made under the lock that the others honour
// (internal/dirlock) and takes effect by one rename, or when a message is added
// to an inbox, by one write to its end. A transcript grows by one write per
// append. A process may be killed at any point.
//
// State that only our processes use (leases, receipts, seals, records, the desk of open
// questions, jobs) lies in private folders named "cadre" beside the shared files.
package filestore

import (
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/ctxlock"
	"github.com/cadre-dev/cadre/internal/filewatch"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// defaultPoll is how late a change by another process is noticed where the system does not
// report it.
const defaultPoll = 500 * time.Millisecond

// Store keeps the state under one root. Its stores share caches and one
// watcher, so a process opens one Store per root.
type Store struct {
	*files
	poll     time.Duration
	noRepair bool

	watcher     *filewatch.Watcher
	transcripts *transcripts
	mail        *mail
	tasks       *tasks
	teams       *teams
	keys        *keyring
	seals       *seals
}

// Option sets what is not the default.
type Option func(*Store)

// WithFS keeps the state through another file layer; for tests.
func WithFS(fsys fsx.FS) Option { return func(s *Store) { s.fsys = fsys } }

// WithSync makes what is acknowledged survive a loss of power too, not only the
// kill of a process. Each write then waits for the disk.
func WithSync(sync bool) Option { return func(s *Store) { s.sync = sync } }

// WithPoll sets after which time at the latest a watch notices what another
// process wrote.
func WithPoll(interval time.Duration) Option { return func(s *Store) { s.poll = interval } }

// WithWarn passes on what was found damaged and was worked around: lines that were skipped,
// a file that was set aside. warn is called from any goroutine and must not block.
func WithWarn(warn func(error)) Option { return func(s *Store) { s.warn = warn } }

// WithoutRepair leaves damaged inboxes as they are when they are read, for a root that
// belongs to another program. What is whole of them is read.
func WithoutRepair() Option { return func(s *Store) { s.noRepair = true } }

// New makes a store of the state under root. Nothing is read or made before it
// is needed.
func New(root layout.Root, options ...Option) *Store {
	s := &Store{files: &files{root: root, fsys: fsx.OS, warn: func(error) {}}, poll: defaultPoll}
	for _, set := range options {
		set(s)
	}
	s.tasks = &tasks{files: s.files, poll: s.poll}
	s.watcher = filewatch.New(filewatch.Options{FS: s.fsys, Poll: s.poll, Relevant: isShared, Changed: s.tasks.markStale})
	s.tasks.watcher = s.watcher
	s.transcripts = &transcripts{s.files}
	s.mail = &mail{files: s.files, watcher: s.watcher, noRepair: s.noRepair}
	s.teams = &teams{files: s.files}
	s.keys = &keyring{files: s.files}
	s.seals = &seals{files: s.files, keys: s.keys}
	return s
}

// Transcripts keeps the transcripts.
func (s *Store) Transcripts() transcript.Store { return s.transcripts }

// Mail keeps the inboxes.
func (s *Store) Mail() mailbox.Store { return s.mail }

// Tasks keeps the task lists.
func (s *Store) Tasks() task.Store { return s.tasks }

// Teams keeps the rosters.
func (s *Store) Teams() roster.Store { return s.teams }

// Asks keeps the asks of one session, whose transcript the caller has open.
func (s *Store) Asks(ref transcript.Ref) ask.Store { return &asks{files: s.files, ref: ref} }

// Jobs keeps the jobs of one session, whose transcript the caller has open.
func (s *Store) Jobs(ref transcript.Ref) job.Store {
	return &jobs{files: s.files, ref: ref, writing: ctxlock.New()}
}

// Seals keeps which mail our own runtime wrote.
func (s *Store) Seals() mailbox.Seals { return s.seals }

// CheckKey reports why no message could be sealed, and no seal checked: the key is
// damaged. That there is none yet is no error.
func (s *Store) CheckKey() error {
	_, _, err := s.keys.read()
	return err
}

// Records keeps the private records of a team.
func (s *Store) Records() roster.Records { return &records{s.files} }

// Presence says which agents have a process of their own.
func (s *Store) Presence() roster.Presence { return &presence{s.files, s.mail, s.tasks} }

// Desk is where other processes find open questions.
func (s *Store) Desk() ask.Desk { return &desk{s.files, s.keys, s.watcher} }

// Close ends all watches and waits until nothing of the store runs any more.
func (s *Store) Close() error {
	s.watcher.Close()
	return nil
}

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
// What is ours alone (leases, receipts, seals, records, the desk of open
// questions, jobs) lies in folders named "cadre" beside the shared files.
package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/internal/ctxlock"
	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// defaultPoll is how late a change by another process is noticed where the
// system does not tell.
const defaultPoll = 500 * time.Millisecond

// Store keeps the state under one root. Its stores share caches and one
// watcher, so a process opens one Store per root.
type Store struct {
	root layout.Root
	fsys fsx.FS
	sync bool
	poll time.Duration
	warn func(error)
	// lookOnly says that what is damaged is not repaired by reading it.
	lookOnly bool

	damaged     *damaged
	hub         *hub
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

// WithWarn tells a person what was found broken and was worked around: lines
// that were skipped, a file that was set aside. warn is called from any
// goroutine and must not block.
func WithWarn(warn func(error)) Option { return func(s *Store) { s.warn = warn } }

// WithoutRepair leaves damaged inboxes as they are when they are read, for a root that
// is another program's. What is whole of them is read.
func WithoutRepair() Option { return func(s *Store) { s.lookOnly = true } }

// New makes a store of the state under root. Nothing is read or made before it
// is needed.
func New(root layout.Root, options ...Option) *Store {
	s := &Store{root: root, fsys: fsx.OS, poll: defaultPoll, warn: func(error) {}}
	for _, set := range options {
		set(s)
	}
	s.damaged = &damaged{Store: s}
	s.transcripts = &transcripts{s}
	s.mail = &mail{Store: s}
	s.tasks = &tasks{Store: s}
	s.hub = newHub(s.fsys, s.poll, s.tasks.markStale)
	s.teams = &teams{Store: s}
	s.keys = &keyring{Store: s}
	s.seals = &seals{Store: s}
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
func (s *Store) Asks(ref transcript.Ref) ask.Store { return &asks{Store: s, ref: ref} }

// Jobs keeps the jobs of one session, whose transcript the caller has open.
func (s *Store) Jobs(ref transcript.Ref) job.Store {
	return &jobs{Store: s, ref: ref, writing: ctxlock.New()}
}

// Seals says which mail our own runtime wrote.
func (s *Store) Seals() mailbox.Seals { return s.seals }

// Records keeps what is ours alone about a team.
func (s *Store) Records() roster.Records { return &records{s} }

// Presence says which agents have a process of their own.
func (s *Store) Presence() roster.Presence { return &presence{s} }

// Desk is where open questions lie for other processes.
func (s *Store) Desk() ask.Desk { return &desk{s} }

// Close ends all watches and waits until nothing of the store runs any more.
func (s *Store) Close() error {
	s.hub.close()
	return nil
}

// locked calls change while it holds the lock of target, whose folder exists.
func (s *Store) locked(ctx context.Context, target string, change func(*dirlock.Lock) error) error {
	queue, err := s.queue(target)
	if err != nil {
		return err
	}
	lock, err := dirlock.Acquire(ctx, s.fsys, target, queue)
	if err != nil {
		return err
	}
	if lock.Recovered() {
		if err := fsx.SweepTemps(s.fsys, filepath.Dir(target), filepath.Base(target)); err != nil {
			s.warn(fmt.Errorf("clean up after a killed writer: %w", err))
		}
	}
	err = change(lock)
	if unlockErr := lock.Unlock(); unlockErr != nil {
		// What was changed stands; whoever comes next takes the lock over.
		s.warn(unlockErr)
	}
	return err
}

// queue is where our processes queue for the lock of a shared file.
func (s *Store) queue(target string) (dirlock.Queue, error) {
	below, file := s.root.LockQueue(target)
	if filepath.Dir(filepath.Dir(target)) == s.root.TasksDir() {
		// A list's queue does not lie beside it. Where a link leads to the lists,
		// another root may lead there too, and have another queue.
		lists, err := s.fsys.Lstat(s.root.TasksDir())
		if err == nil && !lists.IsDir() {
			return dirlock.Queue{}, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return dirlock.Queue{}, err
		}
	}
	return dirlock.Queue{Below: below, File: file}, nil
}

// errMoved says that a program that takes no locks wrote to a file between our
// reading and our writing.
var errMoved = errors.New("file was changed by a program that took no lock")

// replace writes a shared file under its lock, if it is still the version was.
func (s *Store) replace(path string, data []byte, was fsx.Key, lock *dirlock.Lock) (fsx.Key, error) {
	ready := func() error {
		if err := lock.Held(); err != nil {
			return err
		}
		now, err := fsx.KeyAt(s.fsys, path)
		if err == nil && now != was {
			err = fmt.Errorf("write %s: %w", path, errMoved)
		}
		return err
	}
	info, err := fsx.WriteAtomic(s.fsys, path, data, fsx.WriteOptions{Mode: layout.FileMode, Sync: s.sync, Ready: ready})
	return fsx.KeyOf(info), err
}

package transcript

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Ref names one transcript.
type Ref struct {
	Project string // the absolute working folder the session was started in
	Session string // the main session's id (a UUID)
	Agent   string // id of the sub-agent or in-process teammate; "" for the main session
}

func (r Ref) String() string {
	if r.Agent == "" {
		return r.Session
	}
	return r.Session + "/" + r.Agent
}

// Info describes a stored main session for a listing.
type Info struct {
	Ref      Ref
	Updated  time.Time
	Size     int64  // bytes
	FirstAsk string // the first prompt, shortened, without what a runtime added to it
	// Of the session of a teammate that has a process of its own; "" for every other.
	Team, Agent string
}

// Store keeps transcripts. Implementations pass the suite in
// internal/storetest. All methods may be called from any goroutine.
type Store interface {
	// Open opens a transcript for writing, made if it does not exist, and takes
	// its lease: until Close, a second Open anywhere fails with a [*HeldError].
	// It does not wait for the lease.
	Open(ctx context.Context, ref Ref) (Log, error)
	// Read loads the entries of a transcript without a lease, whoever holds it:
	// its user and assistant entries in order; what is damaged or of another kind is
	// left out. [ErrNotFound] when there is none.
	Read(ctx context.Context, ref Ref) ([]Entry, error)
	// Exists reports whether an entry of a transcript was kept, and reads no further
	// than that.
	Exists(ctx context.Context, ref Ref) (bool, error)
	// Fork copies a transcript as it is now, whoever holds it, to a session that does not
	// exist yet; every entry of the copy has the id of that session. With receipts, the
	// copy replaces the original: mail that the original was shown is not shown again.
	// [ErrNotFound] when there is nothing to copy; an error that wraps
	// [fs.ErrExist] when there is something already.
	Fork(ctx context.Context, from, to Ref, receipts bool) error
	// List describes the main sessions of a working folder, newest first; of
	// every folder when project is "".
	List(ctx context.Context, project string) ([]Info, error)
	// Remove deletes a main session with everything beside it. A session whose
	// lease is held is not removed ([*HeldError]).
	Remove(ctx context.Context, ref Ref) error
}

// Log is one transcript held open by its only writer. Its methods are called
// by that one goroutine.
type Log interface {
	// Entries loads what is kept so far, receipts included, as Store.Read does.
	Entries(ctx context.Context) ([]Entry, error)
	// Append keeps the entries, all or none of them as far as a reader can
	// tell: after an error, none is in the transcript and the next Append
	// starts on a fresh line. When it returns nil they survive the kill of any
	// process.
	Append(ctx context.Context, entries ...Entry) error
	// Close gives the lease back. The log is of no use after it.
	Close() error
}

// ErrNotFound says that there is no such transcript.
var ErrNotFound = errors.New("no such session")

// HeldError says that another owner has the transcript open.
type HeldError struct {
	Ref   Ref
	PID   int
	Host  string
	Since time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("session %s is open in process %d on %s since %s",
		e.Ref, e.PID, e.Host, e.Since.Local().Format(time.DateTime))
}

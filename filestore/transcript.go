package filestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/journal"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/internal/lease"
	"github.com/cadre-dev/cadre/transcript"
)

// transcripts implements [transcript.Store]: a JSONL file per session (facts:
// claude-code §11), with a lease and receipts in our side folder.
type transcripts struct{ *files }

func (ts *transcripts) Open(ctx context.Context, ref transcript.Ref) (transcript.Log, error) {
	l, err := ts.open(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("open transcript %s: %w", ref, err)
	}
	return l, nil
}

func (ts *transcripts) open(ctx context.Context, ref transcript.Ref) (*log, error) {
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	held, err := ts.acquire(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &log{
		transcripts: ts, ref: ref, lease: held,
		lines:    ts.journal(ts.transcript(ref)),
		receipts: ts.journal(ts.side(ref, "receipts")),
	}, nil
}

func (ts *transcripts) acquire(ctx context.Context, ref transcript.Ref) (*lease.Lease, error) {
	path := ts.root.Lease(ref.Project, ref.Session, ref.Agent)
	held, err := lease.Acquire(ctx, ts.fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := fsx.MkdirAll(ts.fsys, filepath.Dir(path), layout.DirMode); err != nil {
			return nil, err
		}
		held, err = lease.Acquire(ctx, ts.fsys, path)
	}
	if err == nil && ref.Agent == "" {
		err = ts.heldInFolder(ctx, ref, held)
	}
	var other *lease.HeldError
	if errors.As(err, &other) {
		h := other.Holder
		err = &transcript.HeldError{Ref: ref, PID: h.PID, Host: h.Host, Since: h.Since}
	}
	return held, err
}

// heldInFolder gives the lease of a main session back when an older cadre, which had
// it in the session's folder, has the session open.
func (ts *transcripts) heldInFolder(ctx context.Context, ref transcript.Ref, held *lease.Lease) error {
	path := ts.side(ref, "lease")
	holder, older, err := lease.Inspect(ctx, ts.fsys, path)
	if older {
		err = &lease.HeldError{Path: path, Holder: holder}
	}
	if err != nil {
		err = errors.Join(err, held.Release())
	}
	return err
}

// log implements [transcript.Log].
type log struct {
	*transcripts
	ref      transcript.Ref
	lease    *lease.Lease
	lines    *journal.File
	receipts *journal.File
}

func (l *log) Entries(context.Context) (entries []transcript.Entry, err error) {
	defer wrap(&err, "read transcript %s", l.ref)
	entries, err = l.read(l.ref, l.lines.Visible())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

func (l *log) Append(ctx context.Context, entries ...transcript.Entry) (err error) {
	defer wrap(&err, "append to transcript %s", l.ref)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var lines, receipts []byte
	for _, e := range entries {
		line, err := e.MarshalJSON()
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
		if len(e.Receipts) > 0 {
			receipts = append(append(receipts, jsonx.MustMarshal(receipt{e.UUID, e.Receipts})...), '\n')
		}
	}
	if len(lines) == 0 {
		return nil
	}
	// Receipts first: without its entry a receipt does not count, but without its
	// receipts what an entry shows would be shown again after a kill.
	if len(receipts) > 0 {
		if err := l.receipts.Append(receipts); err != nil {
			return err
		}
	}
	return l.lines.Append(lines)
}

// Rest closes the files until the next Append, so that an idle log keeps no file open
// but its lease.
func (l *log) Rest() (err error) {
	defer wrap(&err, "close the files of transcript %s until the next entry", l.ref)
	return errors.Join(l.lines.Close(), l.receipts.Close())
}

func (l *log) Close() (err error) {
	defer wrap(&err, "close transcript %s", l.ref)
	return errors.Join(l.lines.Close(), l.receipts.Close(), l.lease.Release())
}

func (ts *transcripts) Read(_ context.Context, ref transcript.Ref) (entries []transcript.Entry, err error) {
	defer wrap(&err, "read transcript %s", ref)
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	entries, err = ts.read(ref, math.MaxInt64)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, transcript.ErrNotFound
	}
	return entries, err
}

func (ts *transcripts) Exists(_ context.Context, ref transcript.Ref) (exists bool, err error) {
	defer wrap(&err, "find transcript %s", ref)
	if err := checkRef(ref); err != nil {
		return false, err
	}
	return ts.hasEntry(ts.transcript(ref))
}

// hasEntry reports whether a file has an entry of the conversation. A process that is
// killed before it has written its first one leaves an empty file, or a torn line.
func (ts *transcripts) hasEntry(path string) (found bool, err error) {
	err = journal.Scan(ts.fsys, path, math.MaxInt64, func(line []byte) error {
		var e transcript.Entry
		if e.UnmarshalJSON(line) == nil && isKept(e) {
			found = true
			return journal.ErrStop
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}

// isKept reports whether an entry belongs to the conversation. Other programs also write
// lines of other kinds.
func isKept(e transcript.Entry) bool {
	return e.Kind == transcript.KindUser || e.Kind == transcript.KindAssistant
}

// read loads the entries in the first limit bytes, with their receipts.
func (ts *transcripts) read(ref transcript.Ref, limit int64) ([]transcript.Entry, error) {
	receipts, err := ts.readReceipts(ref)
	if err != nil {
		return nil, err
	}
	var entries []transcript.Entry
	skipped := 0
	err = journal.Scan(ts.fsys, ts.transcript(ref), limit, func(line []byte) error {
		var e transcript.Entry
		if e.UnmarshalJSON(line) != nil {
			skipped++
			return nil
		}
		if isKept(e) {
			e.Receipts = receipts[e.UUID]
			entries = append(entries, e)
		}
		return nil
	})
	if err == nil && skipped > 0 {
		ts.warn(fmt.Errorf("%s: %d torn or damaged lines were skipped", ts.transcript(ref), skipped))
	}
	return entries, err
}

// receipt is a line of the receipts file. It is written before its entry, and counts only
// if the transcript has that entry.
type receipt struct {
	UUID     string   `json:"uuid"`
	Receipts []string `json:"receipts"`
}

func (ts *transcripts) readReceipts(ref transcript.Ref) (map[string][]string, error) {
	receipts := make(map[string][]string)
	err := journal.Scan(ts.fsys, ts.side(ref, "receipts"), math.MaxInt64, func(line []byte) error {
		var r receipt
		if json.Unmarshal(line, &r) == nil {
			receipts[r.UUID] = r.Receipts
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return receipts, err
}

func (ts *transcripts) Remove(ctx context.Context, ref transcript.Ref) (err error) {
	defer wrap(&err, "remove session %s", ref)
	if err := checkRef(ref); err != nil {
		return err
	}
	if ref.Agent != "" {
		return errors.New("only a main session can be removed")
	}
	folder, own := ts.sessionFolder(ref), ts.root.Lease(ref.Project, ref.Session, "")
	exists := false
	for _, path := range []string{ts.transcript(ref), folder, own} { // a killed removal leaves the last ones
		if !exists && err == nil {
			exists, err = ts.exists(path)
		}
	}
	if err == nil && !exists {
		err = transcript.ErrNotFound
	}
	if err != nil {
		return err
	}
	leases, err := ts.acquireAll(ctx, ref)
	if err == nil {
		err = ts.removeFiles(ref)
	}
	// The leases of the agents lie in the folder, so it goes last.
	for _, held := range leases {
		err = errors.Join(err, held.Release())
	}
	if err != nil {
		return err
	}
	return errors.Join(fsx.RemoveAll(ts.fsys, folder), fsx.RemoveAll(ts.fsys, own))
}

// acquireAll acquires the leases of a session and of all its agents.
func (ts *transcripts) acquireAll(ctx context.Context, ref transcript.Ref) ([]*lease.Lease, error) {
	held, err := ts.acquire(ctx, ref)
	if err != nil {
		return nil, err
	}
	leases := []*lease.Lease{held}
	entries, err := ts.readDir(ts.sideFolder(ref))
	if err != nil {
		return leases, err
	}
	for _, e := range entries {
		agent, ok := strings.CutSuffix(strings.TrimPrefix(e.Name(), "agent-"), ".lease")
		if !ok || !strings.HasPrefix(e.Name(), "agent-") {
			continue
		}
		held, err := ts.acquire(ctx, transcript.Ref{Project: ref.Project, Session: ref.Session, Agent: agent})
		if err != nil {
			return leases, err
		}
		leases = append(leases, held)
	}
	return leases, nil
}

// removeFiles deletes the files of a session but for its leases, the transcript first:
// without it there is no session.
func (ts *transcripts) removeFiles(ref transcript.Ref) error {
	if err := fsx.RemoveAll(ts.fsys, ts.transcript(ref)); err != nil {
		return err
	}
	folder := ts.sessionFolder(ref)
	entries, err := ts.readDir(folder)
	if err != nil {
		return err
	}
	sides := filepath.Base(ts.sideFolder(ref))
	for _, e := range entries {
		if e.Name() == sides {
			continue
		}
		if err := fsx.RemoveAll(ts.fsys, filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s *files) transcript(ref transcript.Ref) string {
	return s.root.Transcript(ref.Project, ref.Session, ref.Agent)
}

func (s *files) side(ref transcript.Ref, what string) string {
	return s.root.Side(ref.Project, ref.Session, ref.Agent, what)
}

// sessionFolder holds everything beside a main session's transcript.
func (ts *transcripts) sessionFolder(ref transcript.Ref) string {
	return filepath.Dir(ts.sideFolder(ref))
}

// sideFolder holds what is ours alone beside a main session's transcript.
func (ts *transcripts) sideFolder(ref transcript.Ref) string {
	return ts.root.SideDir(ref.Project, ref.Session)
}

// checkRef refuses names that would leave the project's folder.
func checkRef(ref transcript.Ref) error {
	if !validID(ref.Session) {
		return fmt.Errorf("%q is not the id of a session", ref.Session)
	}
	if ref.Agent != "" && !validID(ref.Agent) {
		return fmt.Errorf("%q is not the id of an agent", ref.Agent)
	}
	return nil
}

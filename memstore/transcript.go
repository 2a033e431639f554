package memstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/transcript"
)

type transcripts struct {
	mu   sync.Mutex
	kept map[transcript.Ref]*session
}

type session struct {
	entries []transcript.Entry // nil: it was only opened
	size    int64
	updated time.Time
	held    bool
	since   time.Time
}

func (ts *transcripts) Open(_ context.Context, ref transcript.Ref) (transcript.Log, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s := ts.kept[ref]
	if s == nil {
		if ref.Session == "" {
			return nil, errors.New("open transcript: the session's id is empty")
		}
		if ts.kept == nil {
			ts.kept = make(map[transcript.Ref]*session)
		}
		s = new(session)
		ts.kept[ref] = s
	}
	if s.held {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		return nil, fmt.Errorf("open transcript %s: %w", ref,
			&transcript.HeldError{Ref: ref, PID: os.Getpid(), Host: host, Since: s.since})
	}
	s.held, s.since = true, time.Now()
	return &log{ts, ref, s}, nil
}

func (ts *transcripts) Read(_ context.Context, ref transcript.Ref) ([]transcript.Entry, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s := ts.kept[ref]
	if s == nil || s.entries == nil {
		return nil, fmt.Errorf("read transcript %s: %w", ref, transcript.ErrNotFound)
	}
	return slices.Clone(s.entries), nil
}

func (ts *transcripts) Exists(_ context.Context, ref transcript.Ref) (bool, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s := ts.kept[ref]
	return s != nil && s.entries != nil, nil
}

func (ts *transcripts) Fork(_ context.Context, from, to transcript.Ref, receipts bool) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	original := ts.kept[from]
	if original == nil || original.entries == nil {
		return fmt.Errorf("fork session %s: %w", from, transcript.ErrNotFound)
	}
	if there := ts.kept[to]; there != nil && there.entries != nil {
		return fmt.Errorf("fork session %s to %s: %w", from, to, fs.ErrExist)
	}
	copied := &session{entries: slices.Clone(original.entries), size: original.size, updated: time.Now()}
	for i := range copied.entries {
		e := &copied.entries[i]
		e.SessionID, e.AgentID, e.Sidechain = to.Session, to.Agent, to.Agent != ""
		if !receipts {
			e.Receipts = nil
		}
	}
	ts.kept[to] = copied
	return nil
}

func (ts *transcripts) List(_ context.Context, project string) ([]transcript.Info, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var infos []transcript.Info
	for ref, s := range ts.kept {
		if ref.Agent != "" || s.entries == nil || project != "" && ref.Project != project {
			continue
		}
		info := transcript.Info{Ref: ref, Updated: s.updated, Size: s.size}
		for _, e := range s.entries {
			if info.FirstAsk == "" {
				info.FirstAsk = e.Ask()
			}
			if info.Team == "" && e.TeamName != "" && e.AgentName != "" {
				info.Team, info.Agent = e.TeamName, e.AgentName
			}
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b transcript.Info) int { return b.Updated.Compare(a.Updated) })
	return infos, nil
}

func (ts *transcripts) Remove(_ context.Context, ref transcript.Ref) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ref.Agent != "" {
		return fmt.Errorf("remove session %s: only a main session can be removed", ref)
	}
	if s := ts.kept[ref]; s == nil {
		return fmt.Errorf("remove session %s: %w", ref, transcript.ErrNotFound)
	}
	same := func(other transcript.Ref) bool { return other.Project == ref.Project && other.Session == ref.Session }
	for other, s := range ts.kept {
		if same(other) && s.held {
			return fmt.Errorf("remove session %s: %w", ref, &transcript.HeldError{Ref: other, PID: os.Getpid(), Since: s.since})
		}
	}
	for other := range ts.kept {
		if same(other) {
			delete(ts.kept, other)
		}
	}
	return nil
}

// log is a transcript held open.
type log struct {
	store   *transcripts
	ref     transcript.Ref
	session *session
}

func (l *log) Entries(context.Context) ([]transcript.Entry, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return slices.Clone(l.session.entries), nil
}

func (l *log) Append(ctx context.Context, entries ...transcript.Entry) error {
	if ctx.Err() != nil {
		return fmt.Errorf("append to transcript %s: %w", l.ref, context.Cause(ctx))
	}
	size := int64(0)
	for _, e := range entries { // also checks that it can be written at all
		line, err := e.MarshalJSON()
		if err != nil {
			return fmt.Errorf("append to transcript %s: %w", l.ref, err)
		}
		size += int64(len(line)) + 1
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.session.entries = append(l.session.entries, entries...)
	l.session.size += size
	l.session.updated = time.Now()
	return nil
}

func (l *log) Close() error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.session.held = false
	return nil
}

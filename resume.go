package cadre

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/transcript"
)

// pickSession decides which transcript the main session has.
func (r *Runtime) pickSession(ctx context.Context) (transcript.Ref, error) {
	fresh := transcript.Ref{Project: r.cfg.Cwd, Session: r.cfg.SessionID}
	if fresh.Session == "" {
		fresh.Session = ids.UUID()
	} else if !ids.IsUUID(fresh.Session) {
		return fresh, fmt.Errorf("session id %q is not a UUID", fresh.Session)
	}
	from, err := r.resumed(ctx)
	if err != nil || from == nil {
		return fresh, err
	}
	if !r.cfg.Fork {
		return *from, nil
	}
	return fresh, r.stores.transcripts.Fork(ctx, *from, fresh, false)
}

// resumable makes the conversation of a teammate one that a process of its own can
// resume, and returns its session id ([teammate.PanesConfig]). What it was told inside
// its lead's process is copied into a main session, with the marks of the mail
// that it has seen, its open questions and what became of its jobs.
func (r *Runtime) resumable(ctx context.Context, record roster.AgentRecord) (string, error) {
	if record.AgentID == "" {
		return record.SessionID, nil
	}
	kept := conversationRef(record)
	own := transcript.Ref{Project: record.Project, Session: ids.UUID()}
	if err := r.stores.transcripts.Fork(ctx, kept, own, true); err != nil {
		return "", err
	}
	return own.Session, errors.Join(r.copyAsks(ctx, kept, own), r.copyJobs(ctx, kept, own))
}

// conversationRef is where a teammate's conversation lies.
func conversationRef(record roster.AgentRecord) transcript.Ref {
	return transcript.Ref{Project: record.Project, Session: record.SessionID, Agent: record.AgentID}
}

// shownTo lists the receipts in a teammate's conversation; none when nothing is kept
// of it.
func (r *Runtime) shownTo(ctx context.Context, record roster.AgentRecord) ([]mailbox.ID, error) {
	entries, err := r.stores.transcripts.Read(ctx, conversationRef(record))
	if errors.Is(err, transcript.ErrNotFound) {
		return nil, nil
	}
	var shown []mailbox.ID
	for _, e := range entries {
		shown = append(shown, mailIDs(e.Receipts)...)
	}
	return shown, err
}

// conversed reports whether anything was kept of what a teammate said and was told.
func (r *Runtime) conversed(ctx context.Context, record roster.AgentRecord) (bool, error) {
	return r.stores.transcripts.Exists(ctx, conversationRef(record))
}

// copyAsks makes the open questions of a session those of its copy.
func (r *Runtime) copyAsks(ctx context.Context, from, to transcript.Ref) error {
	open, err := r.stores.asks(from).Pending(ctx)
	if err != nil {
		return err
	}
	kept := r.stores.asks(to)
	for _, a := range open {
		a.SessionID, a.AgentID = to.Session, to.Agent
		if err := kept.Put(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// copyJobs keeps the jobs of a session for its copy too.
func (r *Runtime) copyJobs(ctx context.Context, from, to transcript.Ref) error {
	past, err := r.stores.jobs(from).All(ctx)
	if err != nil {
		return err
	}
	kept := r.stores.jobs(to)
	for _, j := range past {
		if err := kept.Begin(ctx, j); err != nil {
			return err
		}
		if j.End == nil {
			continue // it is the copy's to settle
		}
		if err := kept.End(ctx, j.ID, *j.End); err != nil {
			return err
		}
	}
	return nil
}

// resumed finds the session to go on with; nil when a new one is wanted.
func (r *Runtime) resumed(ctx context.Context) (*transcript.Ref, error) {
	if !r.cfg.Continue && r.cfg.Resume == "" {
		return nil, nil
	}
	infos, err := r.stores.transcripts.List(ctx, r.cfg.Cwd)
	if err != nil {
		return nil, fmt.Errorf("find the sessions of %s: %w", r.cfg.Cwd, err)
	}
	for _, info := range infos { // the newest first
		if r.cfg.Resume == "" || info.Ref.Session == r.cfg.Resume {
			ref := transcript.Ref{Project: r.cfg.Cwd, Session: info.Ref.Session}
			return &ref, nil
		}
	}
	if r.cfg.Resume != "" {
		return nil, fmt.Errorf("no conversation found with session ID: %s: %w", r.cfg.Resume, transcript.ErrNotFound)
	}
	return nil, fmt.Errorf("no conversation to continue in %s: %w", r.cfg.Cwd, transcript.ErrNotFound)
}

package cadre

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/team"
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
	return fresh, r.fork(ctx, *from, fresh, false)
}

// resumable makes the conversation of a teammate one that a process of its own can
// resume, and returns its session id ([team.PanesConfig]). What it was told inside
// its lead's process is copied into a main session, with the marks of the mail
// that it has seen.
func (r *Runtime) resumable(ctx context.Context, record team.AgentRecord) (string, error) {
	if record.AgentID == "" {
		return record.SessionID, nil
	}
	kept := transcript.Ref{Project: record.Project, Session: record.SessionID, Agent: record.AgentID}
	own := transcript.Ref{Project: record.Project, Session: ids.UUID()}
	return own.Session, r.fork(ctx, kept, own, true)
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

// fork copies a session, which may be open elsewhere, under a new id. Mail that
// the original has seen is the original's, unless the copy takes its place.
func (r *Runtime) fork(ctx context.Context, from, to transcript.Ref, instead bool) error {
	entries, err := r.stores.transcripts.Read(ctx, from)
	if err != nil {
		return fmt.Errorf("fork %s: %w", from, err)
	}
	log, err := r.stores.transcripts.Open(ctx, to)
	if err != nil {
		return fmt.Errorf("fork %s: %w", from, err)
	}
	for i := range entries {
		entries[i].SessionID, entries[i].AgentID, entries[i].Sidechain = to.Session, to.Agent, false
		if !instead {
			entries[i].Receipts = nil
		}
	}
	if err := log.Append(ctx, entries...); err != nil {
		err = fmt.Errorf("fork %s: %w", from, err)
		return errors.Join(err, log.Close())
	}
	return log.Close()
}

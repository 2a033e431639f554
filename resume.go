package cadre

import (
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/internal/ids"
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

// resumes reports whether an earlier session goes on, and not a copy of it.
func (r *Runtime) resumes() bool { return (r.cfg.Continue || r.cfg.Resume != "") && !r.cfg.Fork }

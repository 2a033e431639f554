package cadre

import (
	"context"
	"fmt"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/transcript"
)

// pickSession decides which transcript the main session has.
func (c *Config) pickSession(ctx context.Context, kept transcript.Store) (transcript.Ref, error) {
	fresh := transcript.Ref{Project: c.Cwd, Session: c.SessionID}
	if fresh.Session == "" {
		fresh.Session = ids.UUID()
	} else if !ids.IsUUID(fresh.Session) {
		return fresh, fmt.Errorf("session id %q is not a UUID", fresh.Session)
	}
	from, err := c.resumed(ctx, kept)
	if err != nil || from == nil {
		return fresh, err
	}
	if !c.Fork {
		return *from, nil
	}
	return fresh, kept.Fork(ctx, *from, fresh, false)
}

// resumed finds the session to go on with; nil when a new one is wanted.
func (c *Config) resumed(ctx context.Context, kept transcript.Store) (*transcript.Ref, error) {
	if !c.Continue && c.Resume == "" {
		return nil, nil
	}
	infos, err := kept.List(ctx, c.Cwd)
	if err != nil {
		return nil, fmt.Errorf("find the sessions of %s: %w", c.Cwd, err)
	}
	for _, info := range infos { // the newest first
		if c.Resume == "" || info.Ref.Session == c.Resume {
			ref := transcript.Ref{Project: c.Cwd, Session: info.Ref.Session}
			return &ref, nil
		}
	}
	if c.Resume != "" {
		return nil, fmt.Errorf("no conversation found with session ID: %s: %w", c.Resume, transcript.ErrNotFound)
	}
	return nil, fmt.Errorf("no conversation to continue in %s: %w", c.Cwd, transcript.ErrNotFound)
}

// resumes reports whether an earlier session goes on, and not a copy of it.
func (c *Config) resumes() bool { return (c.Continue || c.Resume != "") && !c.Fork }

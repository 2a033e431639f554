package cadre

import (
	"context"
	"fmt"
	"strings"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/transcript"
)

// pickSession decides which transcript the main session has.
func (c *Config) pickSession(ctx context.Context, kept transcript.Store) (transcript.Ref, error) {
	fresh := transcript.Ref{Project: c.Cwd, Session: c.SessionID}
	if fresh.Session == "" {
		fresh.Session = ids.UUID()
	} else if !ids.IsUUID(fresh.Session) {
		return fresh, &ConfigError{Flag: "--session-id", Err: fmt.Errorf("%q is not a UUID", fresh.Session)}
	}
	from, err := c.resumed(ctx, kept)
	if err == nil && from == nil && c.SessionID != "" {
		err = c.checkUnused(ctx, kept, fresh)
	}
	if err != nil || from == nil {
		return fresh, err
	}
	if !c.Fork {
		return *from, nil
	}
	return fresh, kept.Fork(ctx, *from, fresh, false)
}

// checkUnused refuses the id of a session that there is: a new one would go on with it.
func (c *Config) checkUnused(ctx context.Context, kept transcript.Store, fresh transcript.Ref) error {
	used, err := kept.Exists(ctx, fresh)
	if used {
		return &ConfigError{Flag: "--session-id", Err: fmt.Errorf("there is a session %s already; to go on with it: --resume %[1]s", fresh.Session)}
	}
	return err
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
	var found []string
	for _, info := range infos { // the newest first
		switch {
		case c.Resume == "" && info.Agent == "", info.Ref.Session == c.Resume:
			return &transcript.Ref{Project: c.Cwd, Session: info.Ref.Session}, nil
		case c.Resume != "" && strings.HasPrefix(info.Ref.Session, c.Resume):
			found = append(found, info.Ref.Session)
		}
	}
	switch {
	case len(found) == 1:
		return &transcript.Ref{Project: c.Cwd, Session: found[0]}, nil
	case len(found) > 1:
		return nil, &ConfigError{
			Flag: "--resume", Err: fmt.Errorf("%q is the beginning of %d sessions: %s", c.Resume, len(found), strings.Join(found, ", ")),
		}
	case c.Resume != "":
		return nil, &ConfigError{Flag: "--resume", Err: fmt.Errorf("%w in %s: %q", transcript.ErrNotFound, c.Cwd, c.Resume)}
	}
	return nil, &ConfigError{Flag: "--continue", Err: fmt.Errorf("there is nothing to go on with in %s: %w", c.Cwd, transcript.ErrNotFound)}
}

// resumes reports whether an earlier session goes on, and not a copy of it.
func (c *Config) resumes() bool { return (c.Continue || c.Resume != "") && !c.Fork }

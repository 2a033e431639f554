package cadre

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/models"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// pickSession decides which transcript the main session has; from is the one that is
// resumed, nil for none.
func (c *Config) pickSession(ctx context.Context, kept transcript.Store, from *transcript.Ref) (_ transcript.Ref, err error) {
	fresh := transcript.Ref{Project: c.Cwd, Session: c.SessionID}
	if fresh.Session == "" {
		fresh.Session = ids.UUID()
	} else if !ids.IsUUID(fresh.Session) {
		return fresh, &ConfigError{Flag: "--session-id", Err: fmt.Errorf("%q is not a UUID", fresh.Session)}
	}
	if from == nil && c.SessionID != "" {
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
		return nil, &ConfigError{Flag: "--resume", Err: c.missing(ctx, kept)}
	}
	return nil, &ConfigError{Flag: "--continue", Err: fmt.Errorf("there is nothing to go on with in %s: %w", c.Cwd, transcript.ErrNotFound)}
}

// missing says why no session of this folder has the id in Resume.
func (c *Config) missing(ctx context.Context, kept transcript.Store) error {
	infos, err := kept.List(ctx, "")
	if err != nil {
		return fmt.Errorf("find the sessions of other folders: %w", err)
	}
	var found []transcript.Ref
	for _, info := range infos {
		if strings.HasPrefix(info.Ref.Session, c.Resume) && info.Ref.Project != "" {
			found = append(found, info.Ref)
		}
	}
	if len(found) == 1 {
		return &ElsewhereError{Ref: found[0]}
	}
	return fmt.Errorf("%w in %s: %q", transcript.ErrNotFound, c.Cwd, c.Resume)
}

// ElsewhereError is a session that belongs to another folder than the one it was to be
// resumed in. It wraps [transcript.ErrNotFound]: this folder has no such session.
type ElsewhereError struct{ Ref transcript.Ref }

// Error implements error.
func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("session %s belongs to another folder, %s", e.Ref.Session, e.Ref.Project)
}

// Unwrap implements the interface of [errors.Is].
func (*ElsewhereError) Unwrap() error { return transcript.ErrNotFound }

// chooseModel decides which model the main session has. from is the session that is
// resumed, nil for none: its model answers again when nobody names another.
func (r *Runtime) chooseModel(ctx context.Context, from *transcript.Ref) (*models.Choice, error) {
	options := models.Options{
		Name: r.cfg.Model, Provider: r.cfg.Provider, Getenv: r.cfg.Getenv, Version: r.cfg.Version,
		Interactive: r.cfg.Interactive, Settings: r.settings, Dir: r.cfg.Cwd,
	}
	if from != nil && options.Unnamed() {
		past, err := r.pastModel(ctx, *from)
		if err != nil {
			return nil, err
		}
		options.Past = past
	}
	choice, err := models.Choose(options)
	if err != nil && options.Past != "" && !errors.Is(err, provider.ErrNoModel) {
		return nil, &ConfigError{Flag: "--resume", Err: fmt.Errorf("%w; --model gives the session another model", err)}
	}
	if err != nil {
		return nil, r.cfg.modelError(err)
	}
	return choice, nil
}

// pastModel is the model that a session had last: what its transcript says, else the
// roster of the team that it leads; "" when neither does.
func (r *Runtime) pastModel(ctx context.Context, ref transcript.Ref) (string, error) {
	entries, err := r.stores.transcripts.Read(ctx, ref)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) {
		if e.Kind == transcript.KindAssistant && e.Message.Model != "" && !strings.HasPrefix(e.Message.Model, "<") { // other programs write <synthetic>
			return e.Message.Model, nil
		}
	}
	rosters, err := r.stores.teams.List(ctx)
	if err != nil {
		return "", nil //nolint:nilerr // whoever opens the team says what is wrong with its roster
	}
	for _, team := range rosters {
		if lead := team.Find(mailbox.LeadName); lead != nil && team.LeadSessionID == ref.Session {
			return lead.Model, nil
		}
	}
	return "", nil
}

// resumes reports whether an earlier session goes on, and not a copy of it.
func (c *Config) resumes() bool { return (c.Continue || c.Resume != "") && !c.Fork }

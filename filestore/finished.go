package filestore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/transcript"
)

// LedTeams are the teams for the process that leads them. Other programs must see that a
// deleted team does not exist any more, but people want to read what it did: Remove first
// copies its roster, mail, tasks and records into the folder of its lead's session, with
// which they are removed. A copy that cannot be made is a warning, so that a full disk
// keeps no team alive.
func (s *Store) LedTeams() roster.Store { return ledTeams{s.teams, s.transcripts} }

type ledTeams struct {
	*teams
	transcripts *transcripts
}

// Remove implements [roster.Store].
func (ts ledTeams) Remove(ctx context.Context, name string) error {
	if err := ts.archive(ctx, name); err != nil {
		ts.warn(fmt.Errorf("keep a copy of team %q: %w", name, err))
	}
	return ts.teams.Remove(ctx, name)
}

// maxArchived is the largest file of a finished team that is copied.
const maxArchived = 256 << 20

func (ts ledTeams) archive(ctx context.Context, name string) error {
	c, err := ts.Load(ctx, name)
	if err != nil {
		if errors.Is(err, roster.ErrNotFound) {
			err = nil
		}
		return err
	}
	lead, ok := leadOf(c)
	if !ok {
		return nil
	}
	if kept, err := ts.transcripts.Exists(ctx, lead); err != nil || !kept {
		return err
	}
	from, err := ts.filesOf(name)
	if err != nil || len(from) == 0 {
		return err // the team has done nothing
	}
	folder := ts.transcripts.sessionFolder(lead)
	to := filepath.Join(layout.FinishedTeams(folder), layout.DirName(name)+"-"+strconv.FormatInt(c.CreatedAt, 10))
	for _, path := range append(from, ts.root.TeamConfig(name)) { // last: a copy without its roster does not count
		if err := ts.copyInto(to, path); err != nil {
			return err
		}
	}
	return nil
}

// leadOf is the session of a team's lead.
func leadOf(c roster.Roster) (transcript.Ref, bool) {
	for _, m := range c.Members {
		ref := transcript.Ref{Project: m.Cwd, Session: c.LeadSessionID}
		if m.AgentID == c.LeadAgentID && m.Cwd != "" && checkRef(ref) == nil {
			return ref, true
		}
	}
	return transcript.Ref{}, false
}

// filesOf lists the files that show what a team did: inboxes, tasks and its members'
// records; none when it has neither mail nor tasks.
func (ts ledTeams) filesOf(name string) ([]string, error) {
	var files []string
	for _, folder := range []string{
		filepath.Dir(ts.root.Inbox(name, "x")), ts.root.TaskList(name),
		ts.root.TeamSide(name, roster.RecordMember), ts.root.TeamSide(name, roster.RecordAgent),
	} {
		entries, err := ts.readDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && isShared(e.Name()) {
				files = append(files, filepath.Join(folder, e.Name()))
			}
		}
		if folder == ts.root.TaskList(name) && len(files) == 0 {
			return nil, nil
		}
	}
	return files, nil
}

// copyInto copies a file to the same place under another state root.
func (ts ledTeams) copyInto(root, path string) error {
	below, err := filepath.Rel(string(ts.root), path)
	if err != nil {
		return err
	}
	data, _, err := fsx.ReadFile(ts.fsys, path, maxArchived)
	if err != nil {
		return err
	}
	return ts.writeNew(filepath.Join(root, below), data)
}

// Finished lists the state roots with the copies of finished teams, one for each
// ([Store.LedTeams]).
func (s *Store) Finished() (roots []layout.Root, err error) {
	defer wrap(&err, "list finished teams")
	projects, err := foldersIn(s, s.root.ProjectsDir())
	for _, project := range projects {
		sessions, e := foldersIn(s, project)
		err = errors.Join(err, e)
		for _, session := range sessions {
			finished, e := foldersIn(s, layout.FinishedTeams(session))
			err = errors.Join(err, e)
			for _, root := range finished {
				roots = append(roots, layout.Root(root))
			}
		}
	}
	return roots, err
}

// foldersIn lists the paths of the folders in a folder; none when it is missing.
func foldersIn(s *Store, folder string) ([]string, error) {
	entries, err := s.readDir(folder)
	var paths []string
	for _, e := range entries {
		if e.IsDir() {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	return paths, err
}

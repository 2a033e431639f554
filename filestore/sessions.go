package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/internal/journal"
	"github.com/cadre-dev/cadre/transcript"
)

// headBytes is how much of each transcript a listing reads at most.
const headBytes = 1 << 20

func (ts *transcripts) List(ctx context.Context, project string) (infos []transcript.Info, err error) {
	defer wrap(&err, "list sessions")
	if project != "" {
		infos, err = ts.listFolder(ctx, ts.root.Project(project), project)
	} else {
		infos, err = ts.listAll(ctx)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(infos, func(a, b transcript.Info) int { return b.Updated.Compare(a.Updated) })
	return infos, nil
}

func (ts *transcripts) listAll(ctx context.Context) ([]transcript.Info, error) {
	folders, err := ts.readDir(ts.root.ProjectsDir())
	if err != nil {
		return nil, err
	}
	var all []transcript.Info
	for _, f := range folders {
		if f.Type().IsRegular() {
			continue
		}
		infos, err := ts.listFolder(ctx, filepath.Join(ts.root.ProjectsDir(), f.Name()), "")
		if err != nil {
			return nil, err
		}
		all = append(all, infos...)
	}
	return all, nil
}

// listFolder lists the sessions of one project folder. When project is "", the
// transcripts say which project it is.
func (ts *transcripts) listFolder(ctx context.Context, folder, project string) ([]transcript.Info, error) {
	files, err := ts.readDir(folder)
	if err != nil {
		return nil, err
	}
	var infos []transcript.Info
	for _, f := range files {
		session, ok := strings.CutSuffix(f.Name(), ".jsonl")
		if !ok || !validID(session) || !f.Type().IsRegular() {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		info, err := ts.describe(filepath.Join(folder, f.Name()), transcript.Ref{Project: project, Session: session})
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			ts.warn(fmt.Errorf("list session %s: %w", session, err))
			continue
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (ts *transcripts) describe(path string, ref transcript.Ref) (transcript.Info, error) {
	stat, err := ts.fsys.Lstat(path)
	if err != nil {
		return transcript.Info{}, err
	}
	info := transcript.Info{Ref: ref, Updated: stat.ModTime(), Size: stat.Size()}
	err = journal.Scan(ts.fsys, path, headBytes, func(line []byte) error {
		var e transcript.Entry
		if e.UnmarshalJSON(line) != nil {
			return nil
		}
		if info.Ref.Project == "" {
			info.Ref.Project = e.Cwd
		}
		if e.TeamName != "" && e.AgentName != "" {
			info.Team, info.Agent = e.TeamName, e.AgentName
		}
		if info.FirstAsk == "" {
			info.FirstAsk = e.Ask()
		}
		if info.FirstAsk != "" && info.Ref.Project != "" {
			return journal.ErrStop
		}
		return nil
	})
	return info, err
}

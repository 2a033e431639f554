package filestore

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/cadre-dev/cadre/internal/ctxlock"
	"github.com/cadre-dev/cadre/internal/journal"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/transcript"
)

// jobs implements [job.Store]: lines in a side file of the session, one for the
// start of a job and one for its end.
type jobs struct {
	*files
	ref     transcript.Ref
	writing ctxlock.Mutex // held while lines are written: jobs end at any time
	running int           // jobs begun and not ended
	file    *journal.File // open while some run, nil otherwise
}

// jobLine is one line: a job, or the end of one.
type jobLine struct {
	Job *job.Record `json:"job,omitempty"`
	ID  string      `json:"id,omitempty"`
	End *job.End    `json:"end,omitempty"`
}

// jobsSide is what the file is called.
const jobsSide = "jobs"

func (s *jobs) Begin(ctx context.Context, r job.Record) (err error) {
	defer wrap(&err, "keep job %s of session %s", r.ID, s.ref)
	r.End = nil
	return s.append(ctx, s.ref, 1, jobLine{Job: &r})
}

func (s *jobs) End(ctx context.Context, id string, e job.End) (err error) {
	defer wrap(&err, "keep the end of job %s of session %s", id, s.ref)
	return s.append(ctx, s.ref, -1, jobLine{ID: id, End: &e})
}

func (s *jobs) All(ctx context.Context) (records []job.Record, err error) {
	defer wrap(&err, "read the jobs of session %s", s.ref)
	return s.read(ctx, s.ref)
}

func (s *jobs) EndUnfinished(ctx context.Context, e job.End) (err error) {
	defer wrap(&err, "end the jobs of session %s that its last process left running", s.ref)
	refs, err := s.tree()
	for i := 0; i < len(refs) && err == nil; i++ {
		err = s.endUnfinished(ctx, refs[i], e)
	}
	return err
}

func (s *jobs) endUnfinished(ctx context.Context, ref transcript.Ref, e job.End) error {
	records, err := s.read(ctx, ref)
	if err != nil {
		return err
	}
	var ends []jobLine
	for _, r := range records {
		if r.End == nil {
			ends = append(ends, jobLine{ID: r.ID, End: &e})
		}
	}
	if len(ends) == 0 {
		return nil
	}
	return s.append(ctx, ref, 0, ends...)
}

// tree is the session and, when it is a main session, those of its agents that have jobs.
func (s *jobs) tree() ([]transcript.Ref, error) {
	refs := []transcript.Ref{s.ref}
	if s.ref.Agent != "" {
		return refs, nil
	}
	entries, err := s.readDir(filepath.Dir(s.side(s.ref, jobsSide)))
	for _, e := range entries {
		agent, isAgent := strings.CutPrefix(e.Name(), "agent-")
		agent, isJobs := strings.CutSuffix(agent, "."+jobsSide)
		if isAgent && isJobs {
			refs = append(refs, transcript.Ref{Project: s.ref.Project, Session: s.ref.Session, Agent: agent})
		}
	}
	return refs, err
}

// append writes lines in one write, about so many more or fewer jobs that run. The file
// stays open for their ends, and only for them: most sessions have few jobs, and nobody
// closes this store.
func (s *jobs) append(ctx context.Context, ref transcript.Ref, more int, lines ...jobLine) error {
	if err := checkRef(ref); err != nil {
		return err
	}
	var text []byte
	for _, line := range lines {
		data, err := jsonx.Marshal(line)
		if err != nil {
			return err
		}
		text = append(append(text, data...), '\n')
	}
	if err := s.writing.Lock(ctx); err != nil {
		return err
	}
	defer s.writing.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	path := s.side(ref, jobsSide)
	file := s.file
	if file == nil || ref != s.ref {
		file = s.journal(path)
	}
	err := s.writeOverDamage(path, func() error { return file.Append(text) })
	if ref == s.ref {
		if err == nil {
			s.running = max(s.running+more, 0)
		}
		if s.file = nil; err == nil && s.running > 0 {
			s.file = file
			return nil
		}
	}
	if closeErr := file.Close(); err == nil && closeErr != nil {
		s.warn(closeErr) // the lines are in the file
	}
	return err
}

func (s *jobs) read(ctx context.Context, ref transcript.Ref) ([]job.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	var records []job.Record
	at := make(map[string]int) // index in records, by id
	err := s.scanPrivate(s.side(ref, jobsSide), func(text []byte) bool {
		var line jobLine
		if json.Unmarshal(text, &line) != nil {
			return false
		}
		if line.Job != nil {
			if _, known := at[line.Job.ID]; !known {
				at[line.Job.ID] = len(records)
				records = append(records, *line.Job)
			}
			return true
		}
		if i, known := at[line.ID]; known && records[i].End == nil {
			records[i].End = line.End
		}
		return true
	})
	return records, err
}

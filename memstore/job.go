package memstore

import (
	"context"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/transcript"
)

// jobs are those of all sessions.
type jobs struct {
	mu   sync.Mutex
	kept map[transcript.Ref][]job.Record
}

// sessionJobs implements [job.Store].
type sessionJobs struct {
	all *jobs
	ref transcript.Ref
}

// index needs the lock; -1: there is no such job.
func (s *sessionJobs) index(id string) int {
	return slices.IndexFunc(s.all.kept[s.ref], func(r job.Record) bool { return r.ID == id })
}

func (s *sessionJobs) Begin(ctx context.Context, r job.Record) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if s.index(r.ID) >= 0 {
		return nil
	}
	r.End = nil
	if s.all.kept == nil {
		s.all.kept = make(map[transcript.Ref][]job.Record)
	}
	s.all.kept[s.ref] = append(s.all.kept[s.ref], r)
	return nil
}

func (s *sessionJobs) End(ctx context.Context, id string, e job.End) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	if i := s.index(id); i >= 0 && s.all.kept[s.ref][i].End == nil {
		s.all.kept[s.ref][i].End = &e
	}
	return nil
}

func (s *sessionJobs) All(ctx context.Context) ([]job.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return slices.Clone(s.all.kept[s.ref]), nil
}

func (s *sessionJobs) EndUnfinished(ctx context.Context, e job.End) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	for ref, records := range s.all.kept {
		tree := ref.Project == s.ref.Project && ref.Session == s.ref.Session && s.ref.Agent == ""
		if ref != s.ref && !tree {
			continue
		}
		for i := range records {
			if records[i].End == nil {
				records[i].End = &e
			}
		}
	}
	return nil
}

//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/transcript"
)

// jobKillActions are those on jobs.
var jobKillActions = map[string]killAction{
	"begin-job": {
		setup: nothing,
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			id := fmt.Sprint("b", i)
			return id, beginJob(faultRef, id)(ctx, s)
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			return jobIDs(ctx, s, faultRef, false)
		},
		next: beginJob(faultRef, "next"),
	},
	"end-job": {
		setup: inOrder(beginJob(faultRef, "b1"), beginJob(faultRef, "b2"), beginJob(faultRef, "b3")),
		act: func(ctx context.Context, s *filestore.Store, i int) (string, error) {
			id := fmt.Sprint("b", i)
			return id, endJob(id)(ctx, s)
		},
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) { return jobIDs(ctx, s, faultRef, true) },
		next: settleJobs,
	},
	"settle-jobs": {
		setup: inOrder(beginJob(faultRef, "b1"), beginJob(faultAgent, "b2"), beginJob(faultAgent, "b3")),
		act:   func(ctx context.Context, s *filestore.Store, _ int) (string, error) { return "b1", settleJobs(ctx, s) },
		kept: func(ctx context.Context, s *filestore.Store) ([]string, error) {
			return jobIDs(ctx, s, faultRef, true)
		},
		next: func(ctx context.Context, s *filestore.Store) error {
			err := settleJobs(ctx, s)
			if ids, listErr := jobIDs(ctx, s, faultAgent, true); err == nil && len(ids) != 2 {
				err = errors.Join(fmt.Errorf("settled of the agent: %v", ids), listErr)
			}
			return err
		},
	},
}

// jobIDs lists the jobs of a session; only those that have ended, if asked.
func jobIDs(ctx context.Context, s *filestore.Store, ref transcript.Ref, ended bool) ([]string, error) {
	all, err := s.Jobs(ref).All(ctx)
	var ids []string
	for _, r := range all {
		if r.End != nil || !ended {
			ids = append(ids, r.ID)
		}
	}
	return ids, err
}

package filestore_test

import (
	"context"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/transcript"
)

// faultAgent is a sub-agent of the session that faults are made in.
var faultAgent = transcript.Ref{Project: faultRef.Project, Session: faultRef.Session, Agent: "a1"}

var jobEnd = job.End{Status: job.Completed, At: time.UnixMilli(1795231010482).UTC(), Unwaited: true}

func beginJob(ref transcript.Ref, id string) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error {
		return s.Jobs(ref).Begin(ctx, job.Record{ID: id, Kind: job.Shell, Title: strings.Repeat("t", 100), Started: jobEnd.At})
	}
}

func endJob(id string) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error { return s.Jobs(faultRef).End(ctx, id, jobEnd) }
}

func settleJobs(ctx context.Context, s *filestore.Store) error {
	return s.Jobs(faultRef).EndUnfinished(ctx, jobEnd)
}

// jobOperations are those on jobs. Settling several sessions may settle some.
var jobOperations = []operation{
	{name: "begin the first job", setup: nothing, warm: nothing, act: beginJob(faultRef, "b1")},
	{name: "begin a job", setup: beginJob(faultRef, "b1"), warm: nothing, act: beginJob(faultRef, "b2")},
	{name: "end a job", setup: inOrder(beginJob(faultRef, "b1"), beginJob(faultRef, "b2")), warm: nothing, act: endJob("b1")},
	{name: "settle jobs", setup: inOrder(beginJob(faultRef, "b1"), beginJob(faultRef, "b2"), beginJob(faultAgent, "b3")),
		warm: nothing, act: settleJobs, partly: true},
}

package filestore_test

import (
	"sync/atomic"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/job"
)

// Each call of a shell is a job: its file is opened once for its start and its end. It is
// not open while nothing runs.
func TestTheFileOfJobsIsOpenWhileOneRuns(t *testing.T) {
	var opened, closed atomic.Int64
	counted := &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		switch c.Op {
		case "openfile":
			opened.Add(1)
		case "close":
			closed.Add(1)
		}
		return nil
	}}
	store := filestore.New(layout.Root(t.TempDir()), filestore.WithFS(counted))
	t.Cleanup(func() { _ = store.Close() })
	jobs := store.Jobs(faultRef)
	steps := []struct {
		id            string // of the job
		end           bool
		opened, close int64
	}{
		{"b1", false, 2, 0}, // the first try finds no folder
		{"b2", false, 2, 0},
		{"b1", true, 2, 0},
		{"b2", true, 2, 1},
		{"b3", false, 3, 1},
		{"b3", true, 3, 2},
	}
	for i, s := range steps {
		err := error(nil)
		if s.end {
			err = jobs.End(t.Context(), s.id, jobEnd)
		} else {
			err = jobs.Begin(t.Context(), job.Record{ID: s.id, Kind: job.Shell, Started: jobEnd.At})
		}
		if err != nil || opened.Load() != s.opened || closed.Load() != s.close {
			t.Errorf("step %d: opened %d times, closed %d, %v", i, opened.Load(), closed.Load(), err)
		}
	}
	records, err := jobs.All(t.Context())
	if err != nil || len(records) != 3 || records[0].End == nil || records[2].End == nil {
		t.Errorf("kept %+v, %v", records, err)
	}
}

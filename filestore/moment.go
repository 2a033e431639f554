package filestore

import (
	"context"
	"path/filepath"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/pause"
)

// A list is many files. Who looks at them without its lock may see a change in
// one file and not an earlier one in another, which is how the list never was:
// the task that was just added is missing, the one that was claimed after it is
// claimed, and nothing seems left to do.

// quietPauses are how long one waits, look by look, for those who are at a list.
var quietPauses = []time.Duration{200 * time.Microsecond, time.Millisecond, 3 * time.Millisecond}

// maxLookWait bounds how long one who only wants to look waits for the lock.
const maxLookWait = 250 * time.Millisecond

// awaitQuiet brings a listing that was made without the lock up to date, until it
// is the list as it was at one moment. quiet is false when our processes did not
// leave the list alone for long enough.
func (ts *tasks) awaitQuiet(ctx context.Context, folder string, files *listing) (now *listing, quiet bool, err error) {
	for try := 0; ; try++ {
		quiet, err = ts.undisturbed(folder, files.mark)
		if quiet || err != nil || try == len(quietPauses) {
			return files, quiet, err
		}
		if err = pause.For(ctx, quietPauses[try]); err != nil {
			return files, false, err
		}
		if files, err = ts.catchUp(ctx, folder, files, nil); err != nil {
			return nil, false, err
		}
	}
}

// undisturbed reports whether no process of ours changed the list between the
// mark and now: nobody is at it, and nobody has written down a change. In this
// order, since whoever ends a change meanwhile has written it down before.
func (ts *tasks) undisturbed(folder string, mark changeMark) (bool, error) {
	taken, err := dirlock.Taken(ts.fsys, filepath.Join(folder, lockTarget))
	if taken || err != nil {
		return false, err
	}
	_, atEnd, err := ts.nothingSince(folder, mark)
	return atEnd, err
}

// ofOneMoment makes a listing one of the list as it was at one moment, under the
// lock if others are always at it. When the lock is not to be had it is as good as
// a look without it. A list that no process of ours has changed is never locked
// for a look.
func (ts *tasks) ofOneMoment(ctx context.Context, folder string, files *listing) (*listing, error) {
	files, quiet, err := ts.awaitQuiet(ctx, folder, files)
	if quiet || err != nil || files.mark.file == (fsx.Key{}) {
		return files, err
	}
	wait, cancel := context.WithTimeout(ctx, maxLookWait)
	defer cancel()
	var locked *listing
	err = ts.changeExisting(wait, folder, fully, func(tx *taskTx) error {
		locked = tx.base
		return nil
	})
	if err != nil {
		return files, context.Cause(ctx)
	}
	return locked, nil
}

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/filewatch"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/task"
)

// tasks implements [task.Store]: a folder per list, a file per task. Every change is made
// under the list's lock ".lock.lock". The files that it writes are locked too, since other
// programs claim a task under "<id>.json.lock" alone (facts: claude-code §3, §8).
type tasks struct {
	*files
	poll    time.Duration
	watcher *filewatch.Watcher

	mu         sync.Mutex
	lists      map[string]*taskIndex // by folder: as read last
	stale      map[string]staleIDs   // by folder
	staleCount int                   // how often anything became stale
}

func (ts *tasks) Create(ctx context.Context, list string, t task.Task) (created task.Task, err error) {
	defer wrap(&err, "create task in %s", list)
	folder, err := ts.folder(list)
	if err != nil {
		return created, err
	}
	err = ts.change(ctx, folder, loggedChanges, func(tx *taskTx) (err error) {
		created, err = tx.create(t)
		return err
	})
	if err != nil {
		return task.Task{}, err
	}
	return created, nil
}

func (ts *tasks) Get(ctx context.Context, list, id string) (t task.Task, err error) {
	folder, err := ts.folder(list)
	if err != nil {
		return t, err
	}
	defer wrap(&err, "task #%s", id)
	if !validID(id) {
		return t, task.ErrNotFound
	}
	known, _ := ts.remembered(folder)
	f, err := ts.loadFile(ctx, folder, id, known.find(id))
	if err == nil {
		err = f.err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, format.ErrNoTask) {
		err = task.ErrNotFound
	}
	if err != nil {
		return t, err
	}
	return f.task, nil
}

func (ts *tasks) List(ctx context.Context, list string) (all []task.Task, err error) {
	folder, err := ts.folder(list)
	if err != nil {
		return nil, err
	}
	defer wrap(&err, "read task list %s", list)
	files, err := ts.snapshot(ctx, folder)
	if err != nil {
		return nil, err
	}
	return files.tasks(false), nil
}

func (ts *tasks) Update(ctx context.Context, list, id string, c task.Change) (outcome task.Outcome, err error) {
	defer wrap(&err, "update task list %s", list)
	folder, err := ts.folder(list)
	if err != nil {
		return outcome, err
	}
	err = ts.changeExisting(ctx, folder, loggedChanges, func(tx *taskTx) (err error) {
		outcome, err = tx.update(id, c)
		return err
	})
	if errors.Is(err, errNoList) {
		err = fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
	}
	if err != nil {
		return task.Outcome{}, err
	}
	return outcome, nil
}

func (ts *tasks) Claim(ctx context.Context, list, owner string) (t task.Task, ok bool, err error) {
	folder, err := ts.folder(list)
	if err != nil {
		return t, false, err
	}
	defer wrap(&err, "claim from task list %s", list)
	nothing, err := ts.nothingToClaim(ctx, folder)
	if err != nil || nothing {
		return t, false, err
	}
	err = ts.changeExisting(ctx, folder, loggedChanges, func(tx *taskTx) (err error) {
		t, ok, err = tx.claim(owner)
		return err
	})
	if errors.Is(err, errNoList) {
		return t, false, nil
	}
	if err != nil {
		return task.Task{}, false, err
	}
	return t, ok, nil
}

// nothingToClaim reports whether there is certainly nothing to claim. Most who ask find
// nothing, and need no lock to see that.
func (ts *tasks) nothingToClaim(ctx context.Context, folder string) (bool, error) {
	files, err := ts.refresh(ctx, folder)
	if err != nil || files.firstClaimable() != nil {
		return false, err
	}
	return ts.unchangedSince(folder, files.mark)
}

func (ts *tasks) Release(ctx context.Context, list, owner string) (released []task.Task, err error) {
	defer wrap(&err, "release tasks of %s in %s", owner, list)
	folder, err := ts.folder(list)
	if err != nil || owner == "" {
		return nil, err
	}
	err = ts.changeExisting(ctx, folder, everyFile, func(tx *taskTx) (err error) {
		released, err = tx.release(owner)
		return err
	})
	if errors.Is(err, errNoList) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return released, nil
}

func (ts *tasks) Reset(ctx context.Context, list string) (err error) {
	defer wrap(&err, "reset task list %s", list)
	folder, err := ts.folder(list)
	if err != nil {
		return err
	}
	return ts.change(ctx, folder, everyFile, func(tx *taskTx) error {
		if err := tx.raiseHighWater(tx.list.highest()); err != nil {
			return err
		}
		for _, f := range slices.Clone(tx.list.files) {
			if err := tx.remove(f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (ts *tasks) Remove(ctx context.Context, list string) (err error) {
	defer wrap(&err, "remove task list %s", list)
	folder, err := ts.folder(list)
	if err != nil {
		return err
	}
	err = ts.removeFolder(ctx, folder, lockTarget, func() error {
		_, queue := ts.root.LockQueue(filepath.Join(folder, lockTarget))
		return fsx.RemoveAll(ts.fsys, filepath.Dir(queue))
	})
	if err == nil {
		ts.forget(folder)
	}
	return err
}

func (ts *tasks) Lists(context.Context) (lists []string, err error) {
	defer wrap(&err, "list task lists")
	entries, err := ts.readDir(ts.root.TasksDir())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			lists = append(lists, e.Name())
		}
	}
	return lists, nil
}

func (ts *tasks) Watch(list string) (<-chan struct{}, func()) {
	folder, err := ts.folder(list)
	if err != nil {
		return make(chan struct{}), func() {}
	}
	return ts.watcher.Folder(folder)
}

// errNoList says that there is no folder to change anything in.
var errNoList = errors.New("no such task list")

// changeExisting is change for a list that is not to be made.
func (ts *tasks) changeExisting(ctx context.Context, folder string, fresh freshness, step func(*taskTx) error) error {
	exists, err := ts.exists(folder)
	if err == nil && !exists {
		err = errNoList
	}
	if err != nil {
		return err
	}
	return ts.change(ctx, folder, fresh, step)
}

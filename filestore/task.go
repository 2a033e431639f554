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

// tasks implements [task.Store]: a folder per list, a file per task. Every
// change is made under the list's lock ".lock.lock"; files that it writes are
// locked too, since other programs claim under "<id>.json.lock" alone (facts:
// claude-code §3, §8).
type tasks struct {
	*files
	poll    time.Duration
	watcher *filewatch.Watcher

	mu         sync.Mutex
	lists      map[string]*taskIndex // by folder: what we have seen last
	stale      map[string]staleIDs   // by folder
	staleCount int                   // of all that ever were
}

func (ts *tasks) Create(ctx context.Context, list string, t task.Task) (task.Task, error) {
	folder, err := ts.folder(list)
	if err == nil {
		err = ts.change(ctx, folder, loggedChanges, func(tx *taskTx) (err error) {
			t, err = tx.create(t)
			return err
		})
	}
	if err != nil {
		return task.Task{}, fmt.Errorf("create task in %s: %w", list, err)
	}
	return t, nil
}

func (ts *tasks) Get(ctx context.Context, list, id string) (task.Task, error) {
	folder, err := ts.folder(list)
	if err != nil {
		return task.Task{}, err
	}
	if !validID(id) {
		return task.Task{}, fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
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
		return task.Task{}, fmt.Errorf("task #%s: %w", id, err)
	}
	return f.task, nil
}

func (ts *tasks) List(ctx context.Context, list string) ([]task.Task, error) {
	folder, err := ts.folder(list)
	if err != nil {
		return nil, err
	}
	files, err := ts.wholeList(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("read task list %s: %w", list, err)
	}
	return files.tasks(false), nil
}

func (ts *tasks) Update(ctx context.Context, list, id string, c task.Change) (task.Outcome, error) {
	var outcome task.Outcome
	folder, err := ts.folder(list)
	if err == nil {
		err = ts.changeExisting(ctx, folder, loggedChanges, func(tx *taskTx) (err error) {
			outcome, err = tx.update(id, c)
			return err
		})
	}
	if errors.Is(err, errNoList) {
		err = fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
	}
	if err != nil {
		return task.Outcome{}, fmt.Errorf("update task list %s: %w", list, err)
	}
	return outcome, nil
}

func (ts *tasks) Claim(ctx context.Context, list, owner string) (t task.Task, ok bool, err error) {
	folder, err := ts.folder(list)
	if err != nil {
		return t, false, err
	}
	nothing, err := ts.nothingToClaim(ctx, folder)
	if err == nil && nothing {
		return t, false, nil
	}
	if err == nil {
		err = ts.changeExisting(ctx, folder, loggedChanges, func(tx *taskTx) (err error) {
			t, ok, err = tx.claim(owner)
			return err
		})
	}
	if err != nil && !errors.Is(err, errNoList) {
		return task.Task{}, false, fmt.Errorf("claim from task list %s: %w", list, err)
	}
	return t, ok, nil
}

// nothingToClaim reports whether there is nothing to claim for certain. Most who
// ask find nothing: they need no lock to see that.
func (ts *tasks) nothingToClaim(ctx context.Context, folder string) (bool, error) {
	files, err := ts.refresh(ctx, folder)
	if err != nil || files.firstClaimable() != nil {
		return false, err
	}
	return ts.undisturbed(folder, files.mark)
}

func (ts *tasks) Release(ctx context.Context, list, owner string) ([]task.Task, error) {
	var released []task.Task
	folder, err := ts.folder(list)
	if err == nil && owner != "" {
		err = ts.changeExisting(ctx, folder, everyFile, func(tx *taskTx) (err error) {
			released, err = tx.release(owner)
			return err
		})
	}
	if err != nil && !errors.Is(err, errNoList) {
		return nil, fmt.Errorf("release tasks of %s in %s: %w", owner, list, err)
	}
	return released, nil
}

func (ts *tasks) Reset(ctx context.Context, list string) error {
	folder, err := ts.folder(list)
	if err == nil {
		err = ts.change(ctx, folder, everyFile, func(tx *taskTx) error {
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
	if err != nil {
		return fmt.Errorf("reset task list %s: %w", list, err)
	}
	return nil
}

func (ts *tasks) Remove(ctx context.Context, list string) error {
	folder, err := ts.folder(list)
	if err == nil {
		err = ts.removeFolder(ctx, folder, lockTarget, func() error {
			_, queue := ts.root.LockQueue(filepath.Join(folder, lockTarget))
			return fsx.RemoveAll(ts.fsys, filepath.Dir(queue))
		})
	}
	if err != nil {
		return fmt.Errorf("remove task list %s: %w", list, err)
	}
	ts.forget(folder)
	return nil
}

func (ts *tasks) Lists(context.Context) ([]string, error) {
	entries, err := ts.fsys.ReadDir(ts.root.TasksDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list task lists: %w", err)
	}
	var lists []string
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

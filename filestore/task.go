package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/task"
)

// tasks implements [task.Store]: a folder per list, a file per task. Every
// change is made under the list's lock ".lock.lock"; files that it writes are
// locked too, since other programs claim under "<id>.json.lock" alone (facts:
// claude-code §3, §8).
type tasks struct {
	*Store
	mu    sync.Mutex
	lists map[string]listing // by folder: the newest versions that we have seen
}

func (ts *tasks) Create(ctx context.Context, list string, t task.Task) (task.Task, error) {
	folder, err := ts.folder(list)
	if err == nil {
		err = ts.change(ctx, folder, func(tx *taskTx) (err error) {
			t, err = tx.create(t)
			return err
		})
	}
	if err != nil {
		return task.Task{}, fmt.Errorf("create task in %s: %w", list, err)
	}
	return t, nil
}

func (tx *taskTx) create(t task.Task) (task.Task, error) {
	mark, err := tx.highWater()
	if err != nil {
		return t, err
	}
	t.ID = strconv.Itoa(max(tx.files.highest(), mark) + 1)
	if t.Status == "" {
		t.Status = task.Pending
	}
	edges := task.Change{AddBlocks: t.Blocks, AddBlockedBy: t.BlockedBy}
	t.Blocks, t.BlockedBy = nil, nil
	if _, err := tx.own(slices.Concat(edges.AddBlocks, edges.AddBlockedBy)...); err != nil {
		return t, err
	}
	outcome, mirrors, err := task.Apply(append(tx.files.tasks(true), t), t.ID, edges)
	if err != nil {
		return t, err
	}
	// First the task itself: an edge to a task that is not there yet would
	// become one of whichever gets the id.
	if err := tx.save(outcome.After); err != nil {
		return t, err
	}
	return tx.files[t.ID].task, tx.saveAll(mirrors)
}

func (tx *taskTx) saveAll(changed []task.Task) error {
	for _, t := range changed {
		if err := tx.save(t); err != nil {
			return err
		}
	}
	return nil
}

func (ts *tasks) Get(ctx context.Context, list, id string) (task.Task, error) {
	folder, err := ts.folder(list)
	if err != nil {
		return task.Task{}, err
	}
	if !validID(id) {
		return task.Task{}, fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
	}
	f, err := ts.loadFile(ctx, folder, id, ts.known(folder)[id])
	if err == nil {
		err = f.err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoTask) {
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
	files, err := ts.load(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("read task list %s: %w", list, err)
	}
	return files.tasks(false), nil
}

func (ts *tasks) Update(ctx context.Context, list, id string, c task.Change) (task.Outcome, error) {
	var outcome task.Outcome
	folder, err := ts.folder(list)
	if err == nil {
		err = ts.changeExisting(ctx, folder, func(tx *taskTx) (err error) {
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

func (tx *taskTx) update(id string, c task.Change) (task.Outcome, error) {
	if f := tx.files[id]; f == nil || errors.Is(f.err, errNoTask) {
		return task.Outcome{}, fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
	} else if f.err != nil {
		return task.Outcome{}, f.err
	}
	need := slices.Concat([]string{id}, c.AddBlocks, c.AddBlockedBy)
	for {
		if _, err := tx.own(need...); err != nil {
			return task.Outcome{}, err
		}
		outcome, others, err := task.Apply(tx.files.tasks(true), id, c)
		if err != nil {
			return outcome, err
		}
		need = nil
		for _, t := range others {
			if tx.owned[t.ID] == nil {
				need = append(need, t.ID)
			}
		}
		if len(need) == 0 {
			return outcome, tx.commit(outcome, others)
		}
	}
}

// commit writes an outcome. A task that is being deleted goes first, so that a
// kill leaves edges to no task, which hold nothing back; else it goes last.
func (tx *taskTx) commit(outcome task.Outcome, others []task.Task) error {
	if outcome.After.Status == task.Deleted {
		id := outcome.After.ID
		if n, err := strconv.Atoi(id); err == nil {
			if err := tx.raiseHighWater(n); err != nil {
				return err
			}
		}
		if err := tx.remove(id); err != nil {
			return err
		}
		return tx.saveAll(others)
	}
	if err := tx.saveAll(others); err != nil || len(outcome.Fields) == 0 {
		return err
	}
	return tx.save(outcome.After)
}

func (ts *tasks) Claim(ctx context.Context, list, owner string) (t task.Task, ok bool, err error) {
	folder, err := ts.folder(list)
	if err != nil {
		return t, false, err
	}
	// Most who ask find nothing: they need no lock to see that.
	files, err := ts.load(ctx, folder)
	if err == nil && task.FirstClaimable(files.tasks(true)) < 0 {
		return t, false, nil
	}
	if err == nil {
		err = ts.changeExisting(ctx, folder, func(tx *taskTx) (err error) {
			t, ok, err = tx.claim(owner)
			return err
		})
	}
	if err != nil && !errors.Is(err, errNoList) {
		return task.Task{}, false, fmt.Errorf("claim from task list %s: %w", list, err)
	}
	return t, ok, nil
}

func (tx *taskTx) claim(owner string) (t task.Task, ok bool, err error) {
	for {
		tasks := tx.files.tasks(true)
		at := task.FirstClaimable(tasks)
		if at < 0 {
			return t, false, nil
		}
		t = tasks[at]
		changed, err := tx.own(t.ID)
		if err != nil {
			return t, false, err
		}
		if !changed {
			break
		}
	}
	t.Owner, t.Status = owner, task.InProgress
	if err := tx.save(t); err != nil {
		return t, false, err
	}
	return tx.files[t.ID].task, true, nil
}

func (ts *tasks) Release(ctx context.Context, list, owner string) ([]task.Task, error) {
	var released []task.Task
	folder, err := ts.folder(list)
	if err == nil && owner != "" {
		err = ts.changeExisting(ctx, folder, func(tx *taskTx) (err error) {
			released, err = tx.release(owner)
			return err
		})
	}
	if err != nil && !errors.Is(err, errNoList) {
		return nil, fmt.Errorf("release tasks of %s in %s: %w", owner, list, err)
	}
	return released, nil
}

func (tx *taskTx) release(owner string) ([]task.Task, error) {
	held := func(t task.Task) bool { return t.Owner == owner && t.Status != task.Completed && !t.Internal() }
	var ids []string
	for _, t := range tx.files.tasks(false) {
		if held(t) {
			ids = append(ids, t.ID)
		}
	}
	if _, err := tx.own(ids...); err != nil {
		return nil, err
	}
	var released []task.Task
	for _, id := range ids {
		f := tx.files[id]
		if f == nil || f.err != nil || !held(f.task) {
			continue
		}
		t := f.task
		t.Owner, t.Status = "", task.Pending
		doc := encodeTask(f.doc, t)
		doc.Delete("owner") // as the clean-up after a shutdown leaves it (facts: claude-code §3.1)
		if err := tx.writeDoc(id, doc, *f); err != nil {
			return nil, err
		}
		released = append(released, tx.files[id].task)
	}
	return released, nil
}

func (ts *tasks) Reset(ctx context.Context, list string) error {
	folder, err := ts.folder(list)
	if err == nil {
		err = ts.change(ctx, folder, func(tx *taskTx) error {
			if err := tx.raiseHighWater(tx.files.highest()); err != nil {
				return err
			}
			for id := range tx.files {
				if err := tx.remove(id); err != nil {
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
		err = ts.removeFolder(ctx, folder, lockTarget)
	}
	if err != nil {
		return fmt.Errorf("remove task list %s: %w", list, err)
	}
	ts.keep(folder, nil)
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
	return ts.hub.watchFolder(folder)
}

// errNoList says that there is no folder to change anything in.
var errNoList = errors.New("no such task list")

// changeExisting is change for a list that is not to be made.
func (ts *tasks) changeExisting(ctx context.Context, folder string, step func(*taskTx) error) error {
	exists, err := ts.exists(folder)
	if err == nil && !exists {
		err = errNoList
	}
	if err != nil {
		return err
	}
	return ts.change(ctx, folder, step)
}

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// taskTx is one change of a list, made under the list's lock. When it fails, what it has
// written already is rolled back.
type taskTx struct {
	*tasks
	ctx    context.Context //nolint:containedctx // a transaction lives within one call of change, whose ctx this is
	folder string
	lock   *dirlock.Lock
	base   *taskIndex               // what it started from
	list   *taskIndex               // what it has become
	locks  map[string]*dirlock.Lock // "<id>.json.lock", by id: keep other programs from claiming
	undo   []func() error
	wrote  map[string]fsx.Key // by id: the new versions
}

// freshness says whether a change must see all that other programs have written.
type freshness bool

const (
	loggedChanges freshness = false // as refresh
	everyFile     freshness = true  // as readAll
)

// change runs step under the lock of a list, whose folder it makes if missing.
// When a program that takes no lock was faster, step is run again on the newest state.
func (ts *tasks) change(ctx context.Context, folder string, fresh freshness, step func(*taskTx) error) error {
	if err := fsx.MkdirOwn(ts.fsys, folder, layout.DirMode); err != nil {
		return err
	}
	target := filepath.Join(folder, lockTarget)
	var wrote map[string]fsx.Key
	err := ts.locked(ctx, target, func(lock *dirlock.Lock) (err error) {
		if err := ts.makeLockTarget(target); err != nil {
			return err
		}
		if lock.Recovered() {
			// The killed process may not have logged what it changed.
			fresh = everyFile
			if err := errors.Join(fsx.SweepTemps(ts.fsys, folder, ""), lock.SweepNested(folder)); err != nil {
				ts.warn(fmt.Errorf("clean up after a killed writer: %w", err))
			}
		}
		for range maxRetries {
			tx := &taskTx{tasks: ts, ctx: ctx, folder: folder, lock: lock,
				locks: make(map[string]*dirlock.Lock), wrote: make(map[string]fsx.Key)}
			if err = tx.run(fresh, step); !errors.Is(err, errChanged) {
				wrote = tx.wrote
				return err
			}
			fresh = everyFile
		}
		return err
	})
	for id, key := range wrote {
		ts.watcher.Wrote(filepath.Join(folder, id+".json"), key)
	}
	return err
}

// makeLockTarget makes the empty file that other programs lock the list by.
func (ts *tasks) makeLockTarget(target string) error {
	exists, err := ts.exists(target)
	if err == nil && !exists {
		_, err = fsx.WriteAtomic(ts.fsys, target, nil, fsx.WriteOptions{Mode: layout.FileMode})
	}
	return err
}

func (tx *taskTx) run(fresh freshness, step func(*taskTx) error) (err error) {
	if fresh {
		tx.base, err = tx.readAll(tx.ctx, tx.folder)
	} else {
		tx.base, err = tx.refresh(tx.ctx, tx.folder)
	}
	if err != nil {
		return err
	}
	tx.list = tx.base.clone()
	if err = step(tx); err == nil {
		err = tx.logAll()
	}
	if err == nil {
		tx.remember(tx.folder, tx.base, nil, tx.list)
	} else {
		err = errors.Join(err, tx.rollBack())
	}
	for _, lock := range tx.locks {
		if unlockErr := lock.Unlock(); unlockErr != nil {
			tx.warn(unlockErr)
		}
	}
	return err
}

// rollBack restores what was there before. Others may have seen what was written, so that
// is logged too.
func (tx *taskTx) rollBack() error {
	var errs []error
	for _, undo := range slices.Backward(tx.undo) {
		errs = append(errs, undo())
	}
	for id := range tx.wrote {
		tx.markStale(tx.folder, id+".json")
	}
	tx.list.mark = tx.base.mark
	return errors.Join(append(errs, tx.logAll())...)
}

// logAll logs what was changed, by this change or by a killed process whose lock it took
// over.
func (tx *taskTx) logAll() (err error) {
	ids := slices.Sorted(maps.Keys(tx.wrote))
	if tx.lock.Recovered() || len(ids) > maxRecords {
		ids = []string{everything}
	}
	if len(ids) > 0 {
		tx.list.mark, err = tx.logChanges(tx.folder, tx.list.mark, ids)
	}
	return err
}

// lockTasks locks the files of these tasks, which other programs lock to claim them, and
// reads them again. Ids without a file are passed over. changed reports whether one of
// them had changed.
func (tx *taskTx) lockTasks(ids ...string) (changed bool, err error) {
	for _, id := range ids {
		if tx.locks[id] != nil || !validID(id) {
			continue
		}
		if tx.list.find(id) == nil { // another program may have made it just now
			if err := tx.rereadAll(id); err != nil {
				return false, err
			}
		}
		was := tx.list.find(id)
		if was == nil {
			continue
		}
		if tx.locks[id], err = tx.lock.Nested(tx.ctx, tx.path(id)); err != nil {
			delete(tx.locks, id)
			return false, err
		}
		if err := tx.rereadAll(id); err != nil {
			return false, err
		}
		changed = changed || tx.list.find(id) != was
	}
	return changed, nil
}

// rereadAll brings the entries of these tasks up to date.
func (tx *taskTx) rereadAll(ids ...string) error {
	for _, id := range ids {
		if err := tx.reread(tx.ctx, tx.folder, tx.list, id); err != nil {
			return err
		}
	}
	return nil
}

func (tx *taskTx) path(id string) string { return filepath.Join(tx.folder, id+".json") }

// save writes a task over its file, or to a new one.
func (tx *taskTx) save(t task.Task) error {
	old := tx.list.find(t.ID)
	if old == nil {
		old = &taskFile{id: t.ID}
	}
	if old.err != nil {
		return fmt.Errorf("task #%s: %w", t.ID, old.err)
	}
	return tx.write(format.EncodeTask(old.doc, t), old)
}

func (tx *taskTx) write(doc jsonx.Object, old *taskFile) error {
	data, err := jsonx.MarshalIndent(doc)
	if err != nil {
		return err
	}
	f, err := newTaskFile(old.id, data)
	if err != nil {
		return err
	}
	if f.key, err = tx.replace(tx.path(f.id), data, old.key, tx.lock); err != nil {
		return err
	}
	tx.list.put(f)
	tx.record(f.id, f.key, old)
	return nil
}

// remove deletes a task's file. A damaged one is set aside.
func (tx *taskTx) remove(old *taskFile) error {
	if err := tx.lock.Held(); err != nil {
		return err
	}
	var err error
	if old.task.Status == unreadable {
		err = tx.setAside(tx.path(old.id), old.err)
	} else {
		err = tx.fsys.Remove(tx.path(old.id))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tx.list.drop(old.id)
	tx.record(old.id, fsx.Key{}, old)
	return nil
}

// record notes a write or removal, and how to roll it back.
func (tx *taskTx) record(id string, now fsx.Key, old *taskFile) {
	tx.wrote[id] = now
	tx.watcher.Expect(tx.path(id), now)
	if old.err == nil { // a damaged file cannot be restored
		tx.undo = append(tx.undo, func() error { return tx.restore(old, now) })
	}
}

// restore writes back what was there before the version now.
func (tx *taskTx) restore(old *taskFile, now fsx.Key) error {
	if old.key == (fsx.Key{}) {
		return tx.fsys.Remove(tx.path(old.id))
	}
	data, err := jsonx.MarshalIndent(old.doc)
	if err != nil {
		return err
	}
	key, err := tx.replace(tx.path(old.id), data, now, tx.lock)
	tx.wrote[old.id] = key
	return err
}

// highWater is the highest id of the tasks that were deleted, as far as is known; when the
// file is damaged it is not, and a person is warned.
func (tx *taskTx) highWater() (int, error) {
	mark := 0
	path := filepath.Join(tx.folder, highWaterMark)
	_, err := tx.readShared(tx.ctx, path, 64, func(data []byte) (err error) {
		mark, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case isDamage(err):
		tx.warnOnce(path, err)
		return 0, nil
	}
	return mark, err
}

// raiseHighWater sees to it that the ids up to n are not used again.
func (tx *taskTx) raiseHighWater(n int) error {
	mark, err := tx.highWater()
	if err != nil || n <= mark {
		return err
	}
	path := filepath.Join(tx.folder, highWaterMark)
	return tx.writeOverDamage(path, func() error {
		_, err := fsx.WriteAtomic(tx.fsys, path, []byte(strconv.Itoa(n)),
			fsx.WriteOptions{Mode: layout.FileMode, Sync: tx.sync, Ready: tx.lock.Held})
		return err
	})
}

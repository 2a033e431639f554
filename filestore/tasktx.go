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

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// taskTx is one change of a list, made under the list's lock. When it fails,
// what it wrote already is taken back.
type taskTx struct {
	*tasks
	ctx    context.Context //nolint:containedctx // a transaction lives within one call of change, whose ctx this is
	folder string
	lock   *dirlock.Lock
	files  listing                  // its own copy
	owned  map[string]*dirlock.Lock // "<id>.json.lock": keeps other programs' claimers away
	undo   []func() error
	wrote  map[string]fsx.Key // path to version, for the watchers
}

// change runs step under the lock of a list, whose folder it makes if missing.
// A step that met a program without locks is run again on the newest state.
func (ts *tasks) change(ctx context.Context, folder string, step func(*taskTx) error) error {
	if err := fsx.MkdirOwn(ts.fsys, folder, layout.DirMode); err != nil {
		return err
	}
	target := filepath.Join(folder, lockTarget)
	var wrote map[string]fsx.Key
	err := ts.locked(ctx, target, func(lock *dirlock.Lock) (err error) {
		if err := ts.makeLockTarget(target); err != nil {
			return err
		}
		for range maxUnlocked {
			tx := &taskTx{tasks: ts, ctx: ctx, folder: folder, lock: lock,
				owned: make(map[string]*dirlock.Lock), wrote: make(map[string]fsx.Key)}
			if err = tx.run(step); !errors.Is(err, errMoved) {
				wrote = tx.wrote
				return err
			}
		}
		return err
	})
	for path, key := range wrote {
		ts.hub.wrote(path, key)
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

func (tx *taskTx) run(step func(*taskTx) error) error {
	files, err := tx.load(tx.ctx, tx.folder)
	if err != nil {
		return err
	}
	tx.files = maps.Clone(files)
	err = step(tx)
	if err != nil {
		for _, undo := range slices.Backward(tx.undo) {
			err = errors.Join(err, undo())
		}
	}
	for _, lock := range tx.owned {
		if unlockErr := lock.Unlock(); unlockErr != nil {
			tx.warn(unlockErr)
		}
	}
	tx.keep(tx.folder, tx.files)
	return err
}

// own locks the files of these tasks, which other programs lock to claim them,
// and reads them again. Ids that name no file are passed over. changed reports
// whether one is not what it was.
func (tx *taskTx) own(ids ...string) (changed bool, err error) {
	for _, id := range ids {
		if tx.owned[id] != nil || tx.files[id] == nil {
			continue
		}
		lock, err := tx.lock.Nested(tx.ctx, tx.path(id))
		if err != nil {
			return false, err
		}
		tx.owned[id] = lock
		was := tx.files[id]
		now, err := tx.loadFile(tx.ctx, tx.folder, id, was)
		if errors.Is(err, fs.ErrNotExist) {
			delete(tx.files, id)
			changed = true
			continue
		}
		if err != nil {
			return false, err
		}
		tx.files[id] = now
		changed = changed || now != was
	}
	return changed, nil
}

func (tx *taskTx) path(id string) string { return filepath.Join(tx.folder, id+".json") }

// save writes a task over its file, or a new one.
func (tx *taskTx) save(t task.Task) error {
	old := tx.files[t.ID]
	if old == nil {
		return tx.write(t, taskFile{})
	}
	if old.err != nil {
		return fmt.Errorf("task #%s: %w", t.ID, old.err)
	}
	return tx.write(t, *old)
}

func (tx *taskTx) write(t task.Task, old taskFile) error {
	return tx.writeDoc(t.ID, encodeTask(old.doc, t), old)
}

func (tx *taskTx) writeDoc(id string, doc jsonx.Object, old taskFile) error {
	data, err := jsonx.MarshalIndent(doc)
	if err != nil {
		return err
	}
	f, err := decodeTask(id, data)
	if err != nil {
		return err
	}
	if f.key, err = tx.replace(tx.path(id), data, old.key, tx.lock); err != nil {
		return err
	}
	tx.files[id] = f
	tx.wrote[tx.path(id)] = f.key
	tx.undo = append(tx.undo, func() error { return tx.restore(id, old) })
	return nil
}

// remove deletes a task's file.
func (tx *taskTx) remove(id string) error {
	old := tx.files[id]
	if err := tx.lock.Held(); err != nil {
		return err
	}
	if err := tx.fsys.Remove(tx.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(tx.files, id)
	tx.wrote[tx.path(id)] = fsx.Key{}
	if old != nil && old.err == nil {
		tx.undo = append(tx.undo, func() error { return tx.restore(id, *old) })
	}
	return nil
}

// restore puts back what stood before a write or removal.
func (tx *taskTx) restore(id string, old taskFile) error {
	var now fsx.Key
	if f := tx.files[id]; f != nil {
		now = f.key
	}
	delete(tx.files, id)
	if old.key == (fsx.Key{}) {
		return tx.fsys.Remove(tx.path(id))
	}
	data, err := jsonx.MarshalIndent(old.doc)
	if err != nil {
		return err
	}
	old.key, err = tx.replace(tx.path(id), data, now, tx.lock)
	if err == nil {
		tx.files[id] = &old
		tx.wrote[tx.path(id)] = old.key
	}
	return err
}

// highWater is the highest id that a deleted task had, as far as is known. A
// damaged mark is warned of: what it said is lost.
func (tx *taskTx) highWater() (int, error) {
	mark := 0
	path := filepath.Join(tx.folder, highWaterMark)
	_, err := tx.readShared(tx.ctx, path, 64, func(data []byte) (err error) {
		mark, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err
	})
	var torn *TornError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case errors.As(err, &torn), errors.Is(err, fsx.ErrTooLarge):
		tx.warn(err)
		return 0, nil
	}
	return mark, err
}

// raiseHighWater keeps the ids up to n from being given again.
func (tx *taskTx) raiseHighWater(n int) error {
	mark, err := tx.highWater()
	if err != nil || n <= mark {
		return err
	}
	_, err = fsx.WriteAtomic(tx.fsys, filepath.Join(tx.folder, highWaterMark), []byte(strconv.Itoa(n)),
		fsx.WriteOptions{Mode: layout.FileMode, Sync: tx.sync, Ready: tx.lock.Held})
	return err
}

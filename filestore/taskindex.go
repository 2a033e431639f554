package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
)

// Names in the folder of a list (facts: claude-code §3.4, §8).
const (
	lockTarget    = ".lock"
	highWaterMark = ".highwatermark"
)

// taskIndex is the task files of one list, as they were read. An index that is cached is
// never changed; a change is made to a copy.
type taskIndex struct {
	files  []*taskFile // in the order of their ids
	mark   changeMark  // the end of the change log when it was read
	readAt time.Time   // when every file was last checked
}

func compareFiles(a, b *taskFile) int {
	return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.id, b.id))
}

func (x *taskIndex) clone() *taskIndex {
	return &taskIndex{slices.Clone(x.files), x.mark, x.readAt}
}

func (x *taskIndex) search(id string) (at int, ok bool) {
	return slices.BinarySearchFunc(x.files, &taskFile{id: id, number: task.Number(id)}, compareFiles)
}

// find returns the file of a task, or nil.
func (x *taskIndex) find(id string) *taskFile {
	if x == nil {
		return nil
	}
	if at, ok := x.search(id); ok {
		return x.files[at]
	}
	return nil
}

// put adds a file, or replaces an older version of it.
func (x *taskIndex) put(f *taskFile) {
	at, ok := x.search(f.id)
	if ok {
		x.files[at] = f
	} else {
		x.files = slices.Insert(x.files, at, f)
	}
}

func (x *taskIndex) drop(id string) {
	if at, ok := x.search(id); ok {
		x.files = slices.Delete(x.files, at, at+1)
	}
}

// tasks lists the tasks in the order of their ids; damaged ones only when asked.
func (x *taskIndex) tasks(damaged bool) []task.Task {
	list := make([]task.Task, 0, len(x.files))
	for _, f := range x.files {
		if f.err == nil || damaged && f.task.Status == unreadable {
			list = append(list, f.task)
		}
	}
	return list
}

// firstClaimable returns the first task that anybody may claim, or nil.
func (x *taskIndex) firstClaimable() *taskFile {
	for _, f := range x.files {
		if task.ClaimableIn(x.status, &f.task) {
			return f
		}
	}
	return nil
}

func (x *taskIndex) status(id string) (task.Status, bool) {
	f := x.find(id)
	if f == nil || f.err != nil && f.task.Status != unreadable {
		return "", false
	}
	return f.task.Status, true
}

// highest is the highest number that names a file, whatever is in it.
func (x *taskIndex) highest() int {
	highest := 0
	for _, f := range x.files {
		if n, err := strconv.Atoi(f.id); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// readAll checks every file of a list, and reads those that have changed. An absent list
// has none.
func (ts *tasks) readAll(ctx context.Context, folder string) (*taskIndex, error) {
	known, stale := ts.remembered(folder)
	next := &taskIndex{readAt: time.Now()}
	var err error
	// The mark first: what is changed from now on will be read again.
	if _, next.mark, _, err = ts.changesSince(folder, changeMark{}); err != nil {
		return nil, err
	}
	entries, err := ts.readDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		id, ok := taskID(e.Name())
		if !ok {
			continue
		}
		f, err := ts.loadFile(ctx, folder, id, known.find(id))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since the folder was listed
		}
		if err != nil {
			return nil, err
		}
		next.files = append(next.files, f)
	}
	slices.SortFunc(next.files, compareFiles)
	ts.remember(folder, known, stale, next)
	return next, nil
}

// refresh is readAll for those who may for a moment miss what another program wrote: it
// checks only the files of which our processes have logged a change, and those that the
// watcher found changed. Where the list is not watched, it checks all of them once every
// poll interval.
func (ts *tasks) refresh(ctx context.Context, folder string) (*taskIndex, error) {
	known, stale := ts.remembered(folder)
	if known == nil || time.Since(known.readAt) > ts.poll && !ts.watcher.IsWatched(folder) {
		return ts.readAll(ctx, folder)
	}
	changed, mark, complete, err := ts.changesSince(folder, known.mark)
	if err != nil {
		return nil, err
	}
	if !complete {
		return ts.readAll(ctx, folder)
	}
	for id := range stale {
		changed = append(changed, id)
	}
	if len(changed) == 0 {
		return known, nil
	}
	next := known.clone()
	next.mark = mark
	for _, id := range changed {
		if err := ts.reread(ctx, folder, next, id); err != nil {
			return nil, err
		}
	}
	ts.remember(folder, known, stale, next)
	return next, nil
}

// reread brings one file of an index up to date.
func (ts *tasks) reread(ctx context.Context, folder string, x *taskIndex, id string) error {
	if !validID(id) {
		return nil
	}
	f, err := ts.loadFile(ctx, folder, id, x.find(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.drop(id)
	case err != nil:
		return err
	default:
		x.put(f)
	}
	return nil
}

// maxSnapshotWait bounds how long a reader waits for the lock.
const maxSnapshotWait = 250 * time.Millisecond

// snapshot is a list as it was at one moment. A list is many files: who reads them without
// the lock may see a change of one file and miss an earlier change of another, which is a
// state that the list never had. So if others have changed it meanwhile, it is read again
// under the lock; if the lock is not released in time, what was read must do. A list that
// no process of ours has ever changed is never locked to be read.
func (ts *tasks) snapshot(ctx context.Context, folder string) (*taskIndex, error) {
	files, err := ts.readAll(ctx, folder)
	if err != nil {
		return nil, err
	}
	undisturbed, err := ts.unchangedSince(folder, files.mark)
	if undisturbed || err != nil || files.mark.file == (fsx.Key{}) {
		return files, err
	}
	wait, cancel := context.WithTimeout(ctx, maxSnapshotWait)
	defer cancel()
	err = ts.changeExisting(wait, folder, loggedChanges, func(tx *taskTx) error {
		files = tx.base
		return nil
	})
	if err != nil {
		return files, context.Cause(ctx)
	}
	return files, nil
}

// loadFile returns the file of one task: known, if that is still its version. A damaged
// file is a taskFile too.
func (ts *tasks) loadFile(ctx context.Context, folder, id string, known *taskFile) (*taskFile, error) {
	path := filepath.Join(folder, id+".json")
	info, err := ts.fsys.Lstat(path)
	if err != nil {
		return nil, err
	}
	if known != nil && known.key == fsx.KeyOf(info) && !known.mayHeal() {
		return known, nil
	}
	var f *taskFile
	key, err := ts.readShared(ctx, path, maxTask, func(data []byte) (err error) {
		f, err = newTaskFile(id, data)
		return err
	})
	if isDamage(err) && ts.staysUnreadable(path, err) {
		ts.warnOnce(path, fmt.Errorf("task #%s is left out: %w", id, err))
		f, err, key = unreadableTask(id, err), nil, fsx.KeyOf(info)
	}
	if err != nil {
		return nil, err
	}
	f.key = key
	return f, nil
}

// taskID is the id in the name of a task file.
func taskID(name string) (string, bool) {
	id, ok := strings.CutSuffix(name, ".json")
	return id, ok && validID(id)
}

// validID reports whether id may be part of a file's name: it leads to no other folder, and
// to no hidden file.
func validID(id string) bool {
	return id != "" && len(id) <= 200 && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// staleIDs are the tasks whose files have changed since they were cached. The number
// tells a later change of a file from an earlier one.
type staleIDs map[string]int

// remembered is the cached index of a list, or nil, and what of it is stale.
func (ts *tasks) remembered(folder string) (*taskIndex, staleIDs) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.lists[folder], maps.Clone(ts.stale[folder])
}

// remember caches the index of a list for which the stale files were read again, unless
// the cached index was has been replaced already.
func (ts *tasks) remember(folder string, was *taskIndex, reread staleIDs, next *taskIndex) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.lists[folder] != was {
		return
	}
	if ts.lists == nil {
		ts.lists = make(map[string]*taskIndex)
	}
	ts.lists[folder] = next
	for id, number := range reread {
		if ts.stale[folder][id] == number {
			delete(ts.stale[folder], id)
		}
	}
}

// markStale notes that a file has changed since it was cached. The watcher calls it before
// it wakes anybody.
func (ts *tasks) markStale(folder, name string) {
	id, ok := taskID(name)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !ok || ts.lists[folder] == nil {
		return
	}
	if ts.stale == nil {
		ts.stale = make(map[string]staleIDs)
	}
	if ts.stale[folder] == nil {
		ts.stale[folder] = make(staleIDs)
	}
	ts.staleCount++
	ts.stale[folder][id] = ts.staleCount
}

// forget drops the cached index of a list that was removed.
func (ts *tasks) forget(folder string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.lists, folder)
	delete(ts.stale, folder)
}

// folder is the folder of a list, which must have a name.
func (ts *tasks) folder(list string) (string, error) {
	if list == "" {
		return "", fmt.Errorf("task list without a name")
	}
	return ts.root.TaskList(list), nil
}

// unreadable is the status, in memory, of a task whose file is damaged: it is not listed
// and never written, but tasks that it blocks stay blocked.
const unreadable task.Status = "unreadable"

// taskFile is one version of a task file, and is never changed.
type taskFile struct {
	id     string
	number int // of the id, for ordering
	key    fsx.Key
	task   task.Task // without an ID when err is errNoTask
	doc    jsonx.Object
	err    error // errNoTask, or why it cannot be read
}

func unreadableTask(id string, err error) *taskFile {
	return &taskFile{id: id, number: task.Number(id), task: task.Task{ID: id, Status: unreadable}, err: err}
}

// newTaskFile is the version of a file with this content.
func newTaskFile(id string, data []byte) (*taskFile, error) {
	t, doc, err := format.DecodeTask(id, data)
	if err != nil && !errors.Is(err, format.ErrNoTask) {
		return nil, err
	}
	return &taskFile{id: id, number: task.Number(id), task: t, doc: doc, err: err}, nil
}

// mayHeal reports whether the file may become readable without a new key, as it does when
// its permissions are mended.
func (f *taskFile) mayHeal() bool {
	var torn *TornError
	return f.task.Status == unreadable && !errors.As(f.err, &torn)
}

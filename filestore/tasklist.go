package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
)

// Names in the folder of a list (facts: claude-code §3.4, §8).
const (
	lockTarget    = ".lock"
	highWaterMark = ".highwatermark"
)

// sweep looks at every file of a list, and reads those that changed. An absent
// list has none.
func (ts *tasks) sweep(ctx context.Context, folder string) (*listing, error) {
	known, suspects := ts.known(folder)
	next := &listing{swept: time.Now()}
	var err error
	// The mark first: what is changed from now on is looked at again.
	if _, next.mark, _, err = ts.changesSince(folder, changeMark{}); err != nil {
		return nil, err
	}
	entries, err := ts.fsys.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []*taskFile
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
		files = append(files, f)
	}
	next.setFiles(files)
	ts.keep(folder, known, suspects, next)
	return next, nil
}

// follow is sweep for those who may miss for a moment what another program
// wrote: it looks at what our processes wrote down and at what the watch found.
// Without a watch, everything is looked at every poll interval.
func (ts *tasks) follow(ctx context.Context, folder string) (*listing, error) {
	known, suspects := ts.known(folder)
	if known == nil || time.Since(known.swept) > ts.poll && !ts.hub.watchesFolder(folder) {
		return ts.sweep(ctx, folder)
	}
	return ts.catchUp(ctx, folder, known, suspects)
}

// catchUp is the listing known with what our processes changed since, and with a
// new look at the suspects.
func (ts *tasks) catchUp(ctx context.Context, folder string, known *listing, suspects suspects) (*listing, error) {
	changed, mark, complete, err := ts.changesSince(folder, known.mark)
	if err != nil {
		return nil, err
	}
	if !complete {
		return ts.sweep(ctx, folder)
	}
	for id := range suspects {
		changed = append(changed, id)
	}
	if len(changed) == 0 {
		return known, nil
	}
	next := *known
	for _, id := range changed {
		if next, err = ts.look(ctx, folder, next, id); err != nil {
			return nil, err
		}
	}
	next.mark = mark
	ts.keep(folder, known, suspects, &next)
	return &next, nil
}

// look returns the listing with the newest version of one file.
func (ts *tasks) look(ctx context.Context, folder string, list listing, id string) (listing, error) {
	if !validID(id) {
		return list, nil
	}
	was := list.find(id)
	f, err := ts.loadFile(ctx, folder, id, was)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return list.without(id), nil
	case err != nil || f == was:
		return list, err
	}
	return list.with(f), nil
}

// loadFile returns the file of one task, known if it is still the version known.
// A torn file is a taskFile too.
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
		f, err = decodeTask(id, data)
		return err
	})
	if isDamage(err) && ts.damaged.staysUnreadable(path, err) {
		ts.damaged.warnOnce(path, fmt.Errorf("task #%s is left out: %w", id, err))
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

// validID reports whether id may name a file: one of another program, a path
// or a hidden file is none.
func validID(id string) bool {
	return id != "" && len(id) <= 200 && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// suspects are files that are not what is remembered of them, by id; the number
// tells a later suspicion from an earlier one.
type suspects map[string]int

// known is what is remembered of a list, or nil, and what of it is suspect.
func (ts *tasks) known(folder string) (*listing, suspects) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.lists[folder], maps.Clone(ts.suspects[folder])
}

// keep remembers what one made of the listing was by looking at the suspects,
// unless somebody else was faster.
func (ts *tasks) keep(folder string, was *listing, looked suspects, next *listing) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.lists[folder] != was {
		return
	}
	if ts.lists == nil {
		ts.lists = make(map[string]*listing)
	}
	ts.lists[folder] = next
	for id, number := range looked {
		if ts.suspects[folder][id] == number {
			delete(ts.suspects[folder], id)
		}
	}
}

// distrust notes that a file is not what is remembered of it. The hub calls it
// before it wakes anybody.
func (ts *tasks) distrust(folder, name string) {
	id, ok := taskID(name)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !ok || ts.lists[folder] == nil {
		return
	}
	if ts.suspects == nil {
		ts.suspects = make(map[string]suspects)
	}
	if ts.suspects[folder] == nil {
		ts.suspects[folder] = make(suspects)
	}
	ts.suspicions++
	ts.suspects[folder][id] = ts.suspicions
}

// forget drops what is remembered of a list that was removed.
func (ts *tasks) forget(folder string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.lists, folder)
	delete(ts.suspects, folder)
}

// folder is the folder of a list, which must have a name.
func (ts *tasks) folder(list string) (string, error) {
	if list == "" {
		return "", fmt.Errorf("task list without a name")
	}
	return ts.root.TaskList(list), nil
}

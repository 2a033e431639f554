package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/task"
)

// Names in the folder of a list (facts: claude-code §3.4, §8).
const (
	lockTarget    = ".lock"
	highWaterMark = ".highwatermark"
)

// listing is what is known of the task files of one list, by id. It is not
// changed once made.
type listing map[string]*taskFile

// load returns the files of a list; only those that changed are read again. An
// absent list has none.
func (ts *tasks) load(ctx context.Context, folder string) (listing, error) {
	entries, err := ts.fsys.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := ts.known(folder)
	files := make(listing, len(entries))
	for _, e := range entries {
		id, ok := taskID(e.Name())
		if !ok {
			continue
		}
		f, err := ts.loadFile(ctx, folder, id, known[id])
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted since the folder was listed
		}
		if err != nil {
			return nil, err
		}
		files[id] = f
	}
	ts.keep(folder, files)
	return files, nil
}

// loadFile returns the file of one task, known if it is still the version known.
// A torn file is a taskFile too.
func (ts *tasks) loadFile(ctx context.Context, folder, id string, known *taskFile) (*taskFile, error) {
	path := filepath.Join(folder, id+".json")
	info, err := ts.fsys.Lstat(path)
	if err != nil {
		return nil, err
	}
	if known != nil && known.key == fsx.KeyOf(info) {
		return known, nil
	}
	var f *taskFile
	key, err := ts.readShared(ctx, path, maxTask, func(data []byte) (err error) {
		f, err = decodeTask(id, data)
		return err
	})
	var torn *TornError
	if errors.As(err, &torn) {
		ts.warn(err)
		f, err = &taskFile{task: task.Task{ID: id, Status: unreadable}, err: err}, nil
	}
	if err != nil {
		return nil, err
	}
	f.key = key
	return f, nil
}

// tasks lists the tasks in the order of their ids; torn ones only when asked.
func (l listing) tasks(torn bool) []task.Task {
	list := make([]task.Task, 0, len(l))
	for _, f := range l {
		if f.err == nil || torn && f.task.Status == unreadable {
			list = append(list, f.task)
		}
	}
	slices.SortFunc(list, func(a, b task.Task) int {
		return cmp.Or(cmp.Compare(task.Number(a.ID), task.Number(b.ID)), strings.Compare(a.ID, b.ID))
	})
	return list
}

// highest is the highest number that names a file, whatever is in it.
func (l listing) highest() int {
	highest := 0
	for id := range l {
		if n, err := strconv.Atoi(id); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
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

func (ts *tasks) known(folder string) listing {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.lists[folder]
}

func (ts *tasks) keep(folder string, files listing) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.lists == nil {
		ts.lists = make(map[string]listing)
	}
	if len(files) == 0 {
		delete(ts.lists, folder)
		return
	}
	ts.lists[folder] = files
}

// folder is the folder of a list, which must have a name.
func (ts *tasks) folder(list string) (string, error) {
	if list == "" {
		return "", fmt.Errorf("task list without a name")
	}
	return ts.root.TaskList(list), nil
}

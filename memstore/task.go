package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cadre-dev/cadre/task"
)

type tasks struct {
	watchers watchers
	mu       sync.Mutex
	lists    map[string]*list // by the path that their folder would have
}

type list struct {
	tasks   []task.Task // in the order of their ids
	highest int         // id that was ever given
}

// change runs step on a list under the lock, and wakes its watchers. Without
// make an absent list is left absent, and step not run.
func (ts *tasks) change(ctx context.Context, name string, create bool, step func(*list) error) error {
	if name == "" {
		return errors.New("task list without a name")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	name = root.TaskList(name)
	ts.mu.Lock()
	l := ts.lists[name]
	if l == nil && create {
		if ts.lists == nil {
			ts.lists = make(map[string]*list)
		}
		l = new(list)
		ts.lists[name] = l
	}
	var err error
	if l != nil {
		err = step(l)
	}
	ts.mu.Unlock()
	if err == nil {
		ts.watchers.wake(name)
	}
	return err
}

func (ts *tasks) Create(ctx context.Context, name string, t task.Task) (task.Task, error) {
	err := ts.change(ctx, name, true, func(l *list) (err error) {
		t, err = l.create(t)
		return err
	})
	if err != nil {
		return task.Task{}, fmt.Errorf("create task in %s: %w", name, err)
	}
	return t, nil
}

func (l *list) create(t task.Task) (task.Task, error) {
	t.ID = strconv.Itoa(l.highest + 1)
	if t.Status == "" {
		t.Status = task.Pending
	}
	edges := task.Change{AddBlocks: t.Blocks, AddBlockedBy: t.BlockedBy}
	t.Blocks, t.BlockedBy = nil, nil
	outcome, mirrors, err := task.Apply(append(slices.Clip(l.tasks), t), t.ID, edges)
	if err != nil {
		return t, err
	}
	l.highest++
	l.save(outcome.After)
	l.save(mirrors...)
	return outcome.After, nil
}

// save puts tasks in the place of those with their ids, or adds them.
func (l *list) save(changed ...task.Task) {
	for _, t := range changed {
		t.Blocks, t.BlockedBy = slices.Clip(t.Blocks), slices.Clip(t.BlockedBy)
		if i := l.index(t.ID); i >= 0 {
			l.tasks[i] = t
		} else {
			l.tasks = append(l.tasks, t)
		}
	}
	slices.SortStableFunc(l.tasks, func(a, b task.Task) int { return cmp.Compare(task.Number(a.ID), task.Number(b.ID)) })
}

func (l *list) index(id string) int {
	return slices.IndexFunc(l.tasks, func(t task.Task) bool { return t.ID == id })
}

func (ts *tasks) Get(ctx context.Context, name, id string) (task.Task, error) {
	all, err := ts.List(ctx, name)
	if err != nil {
		return task.Task{}, err
	}
	for _, t := range all {
		if t.ID == id {
			return t, nil
		}
	}
	return task.Task{}, fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
}

func (ts *tasks) List(_ context.Context, name string) ([]task.Task, error) {
	if name == "" {
		return nil, errors.New("task list without a name")
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if l := ts.lists[root.TaskList(name)]; l != nil {
		return slices.Clone(l.tasks), nil
	}
	return nil, nil
}

func (ts *tasks) Update(ctx context.Context, name, id string, c task.Change) (task.Outcome, error) {
	outcome, found := task.Outcome{}, false
	err := ts.change(ctx, name, false, func(l *list) (err error) {
		found = true
		outcome, err = l.update(id, c)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
	}
	if err != nil {
		return task.Outcome{}, fmt.Errorf("update task list %s: %w", name, err)
	}
	return outcome, nil
}

func (l *list) update(id string, c task.Change) (task.Outcome, error) {
	outcome, others, err := task.Apply(l.tasks, id, c)
	if err != nil {
		return outcome, err
	}
	if outcome.After.Status == task.Deleted {
		l.tasks = slices.Delete(slices.Clone(l.tasks), l.index(id), l.index(id)+1)
	} else {
		l.save(outcome.After)
	}
	l.save(others...)
	return outcome, nil
}

func (ts *tasks) Claim(ctx context.Context, name, owner string) (t task.Task, ok bool, err error) {
	err = ts.change(ctx, name, false, func(l *list) error {
		i := task.FirstClaimable(l.tasks)
		if i < 0 {
			return errNothing
		}
		t, ok = l.tasks[i], true
		t.Owner, t.Status = owner, task.InProgress
		l.save(t)
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("claim from task list %s: %w", name, err)
	}
	return t, ok, err
}

// errNothing says that nothing changed, so that nobody is woken.
var errNothing = errors.New("nothing to do")

func (ts *tasks) Release(ctx context.Context, name, owner string) ([]task.Task, error) {
	var released []task.Task
	err := ts.change(ctx, name, false, func(l *list) error {
		for _, t := range l.tasks {
			if owner != "" && t.Owner == owner && t.Status != task.Completed && !t.Internal() {
				t.Owner, t.Status = "", task.Pending
				released = append(released, t)
			}
		}
		l.save(released...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("release tasks of %s in %s: %w", owner, name, err)
	}
	return released, nil
}

func (ts *tasks) Reset(ctx context.Context, name string) error {
	err := ts.change(ctx, name, true, func(l *list) error {
		l.tasks = nil
		return nil
	})
	if err != nil {
		return fmt.Errorf("reset task list %s: %w", name, err)
	}
	return nil
}

func (ts *tasks) Remove(ctx context.Context, name string) error {
	err := ts.change(ctx, name, false, func(*list) error {
		delete(ts.lists, root.TaskList(name))
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove task list %s: %w", name, err)
	}
	return nil
}

func (ts *tasks) Lists(context.Context) ([]string, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var names []string
	for path := range ts.lists {
		names = append(names, filepath.Base(path))
	}
	slices.SortFunc(names, strings.Compare)
	return names, nil
}

func (ts *tasks) Watch(name string) (<-chan struct{}, func()) {
	return ts.watchers.watch(root.TaskList(name))
}

package filestore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cadre-dev/cadre/filestore/internal/format"
	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/task"
)

func (tx *taskTx) create(t task.Task) (task.Task, error) {
	mark, err := tx.highWater()
	if err != nil {
		return t, err
	}
	t.ID = strconv.Itoa(max(tx.list.highest(), mark) + 1)
	if t.Status == "" {
		t.Status = task.Pending
	}
	edges := task.Change{AddBlocks: t.Blocks, AddBlockedBy: t.BlockedBy}
	t.Blocks, t.BlockedBy = nil, nil
	if _, err := tx.lockTasks(slices.Concat(edges.AddBlocks, edges.AddBlockedBy)...); err != nil {
		return t, err
	}
	outcome, mirrors, err := task.Apply(tx.scope(t, edges), t.ID, edges)
	if err != nil {
		return t, err
	}
	// First the task itself: after a kill, an edge to a task that does not exist would
	// belong to the next one that gets the id.
	if err := tx.save(outcome.After); err != nil {
		return t, err
	}
	return tx.list.find(t.ID).task, tx.saveAll(mirrors)
}

func (tx *taskTx) saveAll(changed []task.Task) error {
	for _, t := range changed {
		if err := tx.save(t); err != nil {
			return err
		}
	}
	return nil
}

func (tx *taskTx) update(id string, c task.Change) (task.Outcome, error) {
	for need := slices.Concat([]string{id}, c.AddBlocks, c.AddBlockedBy); ; {
		if _, err := tx.lockTasks(need...); err != nil {
			return task.Outcome{}, err
		}
		if f := tx.list.find(id); f == nil || errors.Is(f.err, format.ErrNoTask) {
			return task.Outcome{}, fmt.Errorf("task #%s: %w", id, task.ErrNotFound)
		} else if f.err != nil {
			return task.Outcome{}, f.err
		} else if c.ClaimFor != "" {
			if err := tx.rereadAll(f.task.BlockedBy...); err != nil {
				return task.Outcome{}, err
			}
		}
		outcome, others, err := task.Apply(tx.scope(tx.list.find(id).task, c), id, c)
		if err != nil {
			return outcome, err
		}
		need = nil
		for _, t := range others {
			if tx.locks[t.ID] == nil {
				need = append(need, t.ID)
			}
		}
		if len(need) == 0 {
			return outcome, tx.commit(outcome, others)
		}
	}
}

// scope lists the tasks that a change of t may concern: t and its blockers, or all.
func (tx *taskTx) scope(t task.Task, c task.Change) []task.Task {
	deletes := c.Status != nil && *c.Status == task.Deleted
	if len(c.AddBlocks)+len(c.AddBlockedBy) == 0 && !deletes {
		return tx.withBlockers(t)
	}
	all := tx.list.tasks(true)
	if tx.list.find(t.ID) == nil {
		all = append(all, t)
	}
	return all
}

// withBlockers lists a task and, with their status only, its blockers.
func (tx *taskTx) withBlockers(t task.Task) []task.Task {
	list := []task.Task{t}
	for _, id := range t.BlockedBy {
		if status, ok := tx.list.status(id); ok {
			list = append(list, task.Task{ID: id, Status: status})
		}
	}
	return list
}

// commit writes an outcome. A task that is deleted goes first, because after a kill edges
// to a missing task block nothing; one that is changed goes last.
func (tx *taskTx) commit(outcome task.Outcome, others []task.Task) error {
	if outcome.After.Status == task.Deleted {
		id := outcome.After.ID
		if n, err := strconv.Atoi(id); err == nil {
			if err := tx.raiseHighWater(n); err != nil {
				return err
			}
		}
		if err := tx.remove(tx.list.find(id)); err != nil {
			return err
		}
		return tx.saveAll(others)
	}
	if err := tx.saveAll(others); err != nil || len(outcome.Fields) == 0 {
		return err
	}
	return tx.save(outcome.After)
}

func (tx *taskTx) claim(owner string) (t task.Task, ok bool, err error) {
	for {
		f := tx.list.firstClaimable()
		if f == nil {
			return t, false, nil
		}
		// It, and what has blocked it, must be so on disk too.
		_, err := tx.lockTasks(f.id)
		if errors.Is(err, dirlock.ErrShape) { // nobody can ever lock this one
			tx.warnOnce(tx.path(f.id), fmt.Errorf("task #%s cannot be claimed: %w", f.id, err))
			tx.list.put(unreadableTask(f.id, err))
			continue
		}
		if err != nil {
			return t, false, err
		}
		if err := tx.rereadAll(f.task.BlockedBy...); err != nil {
			return t, false, err
		}
		if tx.list.firstClaimable() == f {
			t = f.task
			break
		}
	}
	t.Owner, t.Status = owner, task.InProgress
	if err := tx.save(t); err != nil {
		return t, false, err
	}
	return tx.list.find(t.ID).task, true, nil
}

func (tx *taskTx) release(owner string) ([]task.Task, error) {
	held := func(t task.Task) bool { return t.Owner == owner && t.Status != task.Completed && !t.Internal() }
	var ids []string
	for _, t := range tx.list.tasks(false) {
		if held(t) {
			ids = append(ids, t.ID)
		}
	}
	if _, err := tx.lockTasks(ids...); err != nil {
		return nil, err
	}
	var released []task.Task
	for _, id := range ids {
		f := tx.list.find(id)
		if f == nil || f.err != nil || !held(f.task) {
			continue
		}
		t := f.task
		t.Owner, t.Status = "", task.Pending
		doc := format.EncodeTask(f.doc, t)
		doc.Delete("owner") // as the clean-up after a shutdown leaves it (facts: claude-code §3.1)
		if err := tx.write(doc, f); err != nil {
			return nil, err
		}
		released = append(released, tx.list.find(id).task)
	}
	return released, nil
}

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cadre-dev/cadre/control"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/task"
)

// taskWatch remembers the tasks of a run, also those of a team that its lead has deleted.
type taskWatch map[string]map[string]task.Task // by list and id

// note follows an event.
func (w taskWatch) note(ev event.Event) {
	change, ok := ev.Body.(event.TaskChanged)
	if !ok {
		return
	}
	if w[change.List] == nil {
		w[change.List] = make(map[string]task.Task)
	}
	w[change.List][change.Task.ID] = change.Task
	if change.Task.Status == task.Deleted {
		delete(w[change.List], change.Task.ID)
	}
}

// open lists what is not completed: open is on the list that is still there, the others are
// known by their events.
func (w taskWatch) open(list string, open []task.Task) []control.OpenTask {
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if name == list {
			continue
		}
		for _, t := range slices.SortedFunc(maps.Values(w[name]), byNumber) {
			if t.Status != task.Completed && !t.Internal() {
				open = append(open, t)
			}
		}
	}
	var result []control.OpenTask
	for _, t := range open {
		result = append(result, control.OpenTask{ID: t.ID, Subject: t.Subject, Status: string(t.Status), Owner: t.Owner})
	}
	return result
}

func byNumber(a, b task.Task) int { return cmp.Compare(task.Number(a.ID), task.Number(b.ID)) }

// openTasksLine names all of them in one line; "" for none.
func openTasksLine(open []control.OpenTask) string {
	if len(open) == 0 {
		return ""
	}
	names := make([]string, len(open))
	for i, t := range open {
		state := strings.ReplaceAll(t.Status, "_", " ")
		if t.Owner != "" {
			state += ", " + t.Owner
		}
		names[i] = fmt.Sprintf("#%s %s (%s)", cleanCell(t.ID), shorten(t.Subject, 40), cleanCell(state))
	}
	return fmt.Sprintf("%s not completed: %s", count(len(open), "task"), strings.Join(names, "; "))
}

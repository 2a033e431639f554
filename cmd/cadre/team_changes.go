package main

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

// teamChange is a line of team watch --json (docs/cli.md). Kind says which of the
// other fields is set.
type teamChange struct {
	At       time.Time  `json:"timestamp"`
	Kind     changeKind `json:"kind"`
	Team     *teamView  `json:"team,omitempty"`
	Task     *taskView  `json:"task,omitempty"`
	Question *askView   `json:"question,omitempty"`
	Mail     *mailView  `json:"mail,omitempty"`
	ID       string     `json:"id,omitempty"` // of a task or a question that is not there any more
}

type changeKind string

const (
	teamChanged    changeKind = "team"
	taskChanged    changeKind = "task"
	taskRemoved    changeKind = "taskRemoved"
	questionOpen   changeKind = "question"
	questionClosed changeKind = "questionClosed"
	mailArrived    changeKind = "mail"
	teamRemoved    changeKind = "teamRemoved"
)

// teamChanges shows a team to programs: first everything there is, then each change,
// as a JSON object a line.
type teamChanges struct {
	team  *teamView // as it was written last; nil before the first time
	tasks map[string]taskView
	asks  map[string]askView
	mail  seenMail
}

// draw implements [watcher].
func (c *teamChanges) draw(now *teamState) error { return writeChanges(c.changesTo(now)) }

// changesTo are the changes that lead from what was written to what there is now.
func (c *teamChanges) changesTo(now *teamState) []teamChange {
	var changes []teamChange
	if c.team == nil || !reflect.DeepEqual(*c.team, now.view) {
		c.team = &now.view
		changes = append(changes, teamChange{Kind: teamChanged, Team: &now.view})
	}
	tasks := make(map[string]taskView)
	for _, v := range viewTasks(now.view.Name, now.view.Root, now.tasks) {
		tasks[v.ID] = v
		if was, ok := c.tasks[v.ID]; !ok || !reflect.DeepEqual(was, v) {
			changes = append(changes, teamChange{Kind: taskChanged, Task: &v})
		}
	}
	changes = append(changes, removals(taskRemoved, c.tasks, tasks)...)
	asks := make(map[string]askView)
	for _, v := range now.asks {
		asks[v.ID] = v
		if was, ok := c.asks[v.ID]; !ok || !reflect.DeepEqual(was, v) {
			changes = append(changes, teamChange{Kind: questionOpen, Question: &v})
		}
	}
	changes = append(changes, removals(questionClosed, c.asks, asks)...)
	c.tasks, c.asks = tasks, asks
	for _, m := range c.mail.unseen(now.mail) {
		view := m.view()
		changes = append(changes, teamChange{Kind: mailArrived, Mail: &view})
	}
	return changes
}

// removed implements [watcher].
func (*teamChanges) removed() error { return writeChanges([]teamChange{{Kind: teamRemoved}}) }

// closed implements [watcher]. The team that was written last says it.
func (*teamChanges) closed() error { return nil }

// removals are the changes for what was there and is not any more.
func removals[T any](kind changeKind, was, is map[string]T) []teamChange {
	var changes []teamChange
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[id]; !ok {
			changes = append(changes, teamChange{Kind: kind, ID: id})
		}
	}
	return changes
}

// writeChanges writes them in one piece, so that who reads them finds whole lines.
func writeChanges(changes []teamChange) error {
	var lines bytes.Buffer
	for _, change := range changes {
		change.At = time.Now().UTC()
		line, err := jsonx.Marshal(change)
		if err != nil {
			return fmt.Errorf("encode a change of a team (%s): %w", change.Kind, err)
		}
		lines.Write(append(line, '\n'))
	}
	if lines.Len() == 0 {
		return nil
	}
	return writeOut(lines.Bytes())
}

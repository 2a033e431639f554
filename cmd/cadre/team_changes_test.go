package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/task"
)

// What is removed is reported by its id, once; what did not change is not repeated.
func TestChangesOfATeam(t *testing.T) {
	now := &teamState{
		view:  teamView{Name: "alpha"},
		tasks: []task.Task{{ID: "1", Subject: "parse", Status: task.Pending}, {ID: "2", Subject: "write", Status: task.Pending}},
		asks:  []askView{{Ask: ask.Ask{ID: "ask-1"}}},
	}
	var c teamChanges
	kinds := func(want ...string) {
		t.Helper()
		var got []string
		for _, change := range c.changesTo(now) {
			got = append(got, string(change.Kind)+change.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the changes (-want +got):\n%s", diff)
		}
	}
	kinds("team", "task", "task", "question")
	kinds()
	now = &teamState{view: now.view, tasks: []task.Task{now.tasks[0]}}
	now.tasks[0].Owner = "ann"
	kinds("task", "taskRemoved2", "questionClosedask-1")
	kinds()
}

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/task"
)

// taskSuite checks an implementation of [task.Store].
func taskSuite(t *testing.T, open Open[task.Store]) {
	tests := map[string]func(*testing.T, task.Store, task.Store){
		"an absent list is empty":         absentList,
		"create, get, list":               createTasks,
		"edges stand on both sides":       taskEdges,
		"bad edges change nothing":        badEdges,
		"updates":                         updateTask,
		"deletion":                        deleteTask,
		"ids are never given again":       freshIDs,
		"claims":                          claimTasks,
		"no task is claimed twice":        concurrentClaims,
		"claims for somebody":             claimForSomebody,
		"release":                         releaseTasks,
		"reset and remove":                resetList,
		"watches":                         watchList,
		"a cancelled change is no change": cancelledTask,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			test(t, a, b)
		})
	}
}

const team1 = "My Team!"

var taskOptions = []cmp.Option{objects, cmpopts.EquateEmpty()}

func ptr[T any](v T) *T { return &v }

func create(t *testing.T, s task.Store, tasks ...task.Task) {
	t.Helper()
	for _, one := range tasks {
		_, err := s.Create(t.Context(), team1, one)
		check(t, err)
	}
}

func get(t *testing.T, s task.Store, id string) task.Task {
	t.Helper()
	got, err := s.Get(t.Context(), team1, id)
	check(t, err)
	return got
}

func list(t *testing.T, s task.Store) []task.Task {
	t.Helper()
	got, err := s.List(t.Context(), team1)
	check(t, err)
	return got
}

func listIDs(t *testing.T, s task.Store) []string {
	t.Helper()
	ids := []string{}
	for _, one := range list(t, s) {
		ids = append(ids, one.ID)
	}
	return ids
}

func absentList(t *testing.T, a, _ task.Store) {
	equal(t, "list", listIDs(t, a), []string{})
	for _, id := range []string{"1", "", "../x", "1.json", ".lock"} {
		if _, err := a.Get(t.Context(), team1, id); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("get %q: %v", id, err)
		}
		if _, err := a.Update(t.Context(), team1, id, task.Change{Subject: ptr("x")}); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("update %q: %v", id, err)
		}
	}
	_, ok, err := a.Claim(t.Context(), team1, "w1")
	check(t, err)
	equal(t, "claimed", ok, false)
	released, err := a.Release(t.Context(), team1, "w1")
	check(t, err)
	equal(t, "released", len(released), 0)
	check(t, a.Remove(t.Context(), team1))
	lists, err := a.Lists(t.Context())
	check(t, err)
	equal(t, "lists", len(lists), 0)
}

func createTasks(t *testing.T, a, b task.Store) {
	var metadata, extra jsonx.Object
	metadata.Set("k", "v")
	metadata.Set("n", 1)
	extra.Set("x-foreign", true)
	first, err := a.Create(t.Context(), team1, task.Task{Subject: "Write <parser> & more", Description: "Write it"})
	check(t, err)
	want := task.Task{ID: "1", Subject: "Write <parser> & more", Description: "Write it", Status: task.Pending}
	equal(t, "first", first, want, taskOptions...)
	create(t, b, task.Task{Subject: "Test", Description: "Test it", ActiveForm: "Testing", Owner: "w1",
		Status: task.InProgress, Metadata: metadata, Extra: extra})
	want = task.Task{ID: "2", Subject: "Test", Description: "Test it", ActiveForm: "Testing", Owner: "w1",
		Status: task.InProgress, Metadata: metadata, Extra: extra}
	equal(t, "second", get(t, a, "2"), want, taskOptions...)
	for range 9 {
		create(t, a, task.Task{Subject: "more"})
	}
	equal(t, "order", listIDs(t, b), []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"})
	lists, err := b.Lists(t.Context())
	check(t, err)
	equal(t, "lists", lists, []string{"my-team-"})
}

func taskEdges(t *testing.T, a, b task.Store) {
	create(t, a, task.Task{Subject: "1"}, task.Task{Subject: "2"},
		task.Task{Subject: "3", Blocks: []string{"1"}, BlockedBy: []string{"2", "2"}})
	equal(t, "blocks of 3", get(t, b, "3").Blocks, []string{"1"})
	equal(t, "blockedBy of 3", get(t, b, "3").BlockedBy, []string{"2"})
	equal(t, "blockedBy of 1", get(t, b, "1").BlockedBy, []string{"3"})
	equal(t, "blocks of 2", get(t, b, "2").Blocks, []string{"3"})
	outcome, err := b.Update(t.Context(), team1, "1", task.Change{AddBlockedBy: []string{"2", "3"}})
	check(t, err)
	equal(t, "fields", outcome.Fields, []string{"blockedBy"})
	equal(t, "blockedBy of 1", get(t, a, "1").BlockedBy, []string{"3", "2"})
	equal(t, "blocks of 2", get(t, a, "2").Blocks, []string{"3", "1"})
}

func badEdges(t *testing.T, a, b task.Store) {
	create(t, a, task.Task{Subject: "1"}, task.Task{Subject: "2", BlockedBy: []string{"1"}})
	before := list(t, b)
	tests := map[string]struct {
		change task.Change
		want   error
	}{
		"missing":    {task.Change{AddBlocks: []string{"9"}}, task.ErrNotFound},
		"a path":     {task.Change{AddBlocks: []string{"../2"}}, task.ErrNotFound},
		"itself":     {task.Change{AddBlocks: []string{"1"}}, task.ErrCycle},
		"cycle":      {task.Change{AddBlockedBy: []string{"2"}}, task.ErrCycle},
		"with field": {task.Change{Subject: ptr("changed"), AddBlockedBy: []string{"2"}}, task.ErrCycle},
	}
	for name, test := range tests {
		if _, err := a.Update(t.Context(), team1, "1", test.change); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if _, err := a.Create(t.Context(), team1, task.Task{BlockedBy: []string{"7"}}); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("create: %v", err)
	}
	if _, err := a.Create(t.Context(), team1, task.Task{Blocks: []string{"1"}, BlockedBy: []string{"2"}}); !errors.Is(err, task.ErrCycle) {
		t.Errorf("create: %v", err)
	}
	equal(t, "list", list(t, b), before, taskOptions...)
}

func updateTask(t *testing.T, a, b task.Store) {
	var metadata, patch jsonx.Object
	metadata.Set("keep", 1)
	metadata.Set("drop", 2)
	create(t, a, task.Task{Subject: "s", Description: "d", Metadata: metadata})
	patch.Set("drop", nil)
	patch.Set("new", "x")
	outcome, err := b.Update(t.Context(), team1, "1", task.Change{
		Subject: ptr("s2"), ActiveForm: ptr("doing"), Owner: ptr("w1"), Status: ptr(task.InProgress), Metadata: patch,
	})
	check(t, err)
	equal(t, "fields", outcome.Fields, []string{"subject", "activeForm", "owner", "metadata", "status"})
	equal(t, "before", outcome.Before.Subject, "s")
	var merged jsonx.Object
	merged.Set("keep", 1)
	merged.Set("new", "x")
	want := task.Task{ID: "1", Subject: "s2", Description: "d", ActiveForm: "doing", Owner: "w1", Status: task.InProgress, Metadata: merged}
	equal(t, "after", outcome.After, want, taskOptions...)
	equal(t, "kept", get(t, a, "1"), want, taskOptions...)
	outcome, err = a.Update(t.Context(), team1, "1", task.Change{Subject: ptr("s2"), Owner: ptr("w1")})
	check(t, err)
	equal(t, "nothing changed", len(outcome.Fields), 0)
	_, err = a.Update(t.Context(), team1, "1", task.Change{Owner: ptr("")})
	check(t, err)
	equal(t, "owner", get(t, b, "1").Owner, "")
}

func deleteTask(t *testing.T, a, b task.Store) {
	create(t, a, task.Task{Subject: "1"}, task.Task{Subject: "2", BlockedBy: []string{"1"}},
		task.Task{Subject: "3", Blocks: []string{"2"}, BlockedBy: []string{"1"}})
	outcome, err := b.Update(t.Context(), team1, "1", task.Change{Status: ptr(task.Deleted)})
	check(t, err)
	equal(t, "status", outcome.After.Status, task.Deleted)
	equal(t, "list", listIDs(t, a), []string{"2", "3"})
	equal(t, "blockedBy of 2", get(t, a, "2").BlockedBy, []string{"3"})
	equal(t, "blockedBy of 3", len(get(t, a, "3").BlockedBy), 0)
	if _, err := a.Update(t.Context(), team1, "1", task.Change{Status: ptr(task.Deleted)}); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("second deletion: %v", err)
	}
}

func freshIDs(t *testing.T, a, b task.Store) {
	create(t, a, task.Task{}, task.Task{}, task.Task{})
	for _, id := range []string{"3", "2"} {
		_, err := b.Update(t.Context(), team1, id, task.Change{Status: ptr(task.Deleted)})
		check(t, err)
	}
	create(t, a, task.Task{})
	equal(t, "after deletion", listIDs(t, b), []string{"1", "4"})
	check(t, b.Reset(t.Context(), team1))
	equal(t, "after reset", listIDs(t, a), []string{})
	create(t, a, task.Task{})
	equal(t, "after reset and create", listIDs(t, b), []string{"5"})
}

func claimTasks(t *testing.T, a, b task.Store) {
	var internal jsonx.Object
	internal.Set("_internal", true)
	create(t, a, task.Task{Subject: "w1", Metadata: internal}, task.Task{Subject: "mine", Owner: "lead"},
		task.Task{Subject: "done", Status: task.Completed}, task.Task{Subject: "first"},
		task.Task{Subject: "second", BlockedBy: []string{"3", "4"}})
	claimed, ok, err := b.Claim(t.Context(), team1, "w1")
	check(t, err)
	equal(t, "ok", ok, true)
	equal(t, "claimed", claimed, task.Task{ID: "4", Subject: "first", Owner: "w1", Status: task.InProgress, Blocks: []string{"5"}}, taskOptions...)
	equal(t, "kept", get(t, a, "4"), claimed, taskOptions...)
	_, ok, err = a.Claim(t.Context(), team1, "w2")
	check(t, err)
	equal(t, "a blocked task is not claimed", ok, false)
	_, err = a.Update(t.Context(), team1, "4", task.Change{Status: ptr(task.Completed)})
	check(t, err)
	claimed, ok, err = b.Claim(t.Context(), team1, "w2")
	check(t, err)
	equal(t, "ok", ok, true)
	equal(t, "claimed", claimed.ID, "5")
}

func concurrentClaims(t *testing.T, a, b task.Store) {
	const n = 24
	for i := 1; i <= n; i++ {
		one := task.Task{Subject: fmt.Sprint(i)}
		if i > 4 {
			one.BlockedBy = []string{fmt.Sprint(i - 4), fmt.Sprint(i - 3)}
		}
		create(t, a, one)
	}
	var mu sync.Mutex
	owners := make(map[string]string)
	var wg sync.WaitGroup
	for w := range 4 {
		s, name := []task.Store{a, b}[w%2], fmt.Sprint("w", w)
		wg.Go(func() {
			for {
				mu.Lock()
				left := n - len(owners)
				mu.Unlock()
				if left == 0 {
					return
				}
				claimed, ok, err := s.Claim(t.Context(), team1, name)
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					continue
				}
				mu.Lock()
				if other, twice := owners[claimed.ID]; twice {
					t.Errorf("#%s claimed by %s and %s", claimed.ID, other, name)
				}
				owners[claimed.ID] = name
				mu.Unlock()
				for _, blocker := range claimed.BlockedBy {
					if held, err := s.Get(t.Context(), team1, blocker); err != nil || held.Status != task.Completed {
						t.Errorf("#%s claimed before #%s was completed (%v)", claimed.ID, blocker, err)
					}
				}
				if _, err := s.Update(t.Context(), team1, claimed.ID, task.Change{Status: ptr(task.Completed)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, one := range list(t, a) {
		equal(t, "owner of #"+one.ID, one.Owner, owners[one.ID])
		equal(t, "status of #"+one.ID, one.Status, task.Completed)
	}
}

// claimForSomebody: who begins a task itself is held to what holds for claims.
func claimForSomebody(t *testing.T, a, b task.Store) {
	create(t, a, task.Task{Subject: "1"}, task.Task{Subject: "2", BlockedBy: []string{"1"}}, task.Task{Subject: "3"})
	claimFor := func(s task.Store, id, owner string) error {
		begun := task.InProgress
		_, err := s.Update(t.Context(), team1, id, task.Change{Status: &begun, ClaimFor: owner})
		return err
	}
	if err := claimFor(b, "2", "w1"); !errors.Is(err, task.ErrBlocked) {
		t.Errorf("took a task that is held back: %v", err)
	}
	check(t, claimFor(a, "1", "w1"))
	check(t, claimFor(b, "1", "w1"))
	if err := claimFor(b, "1", "w2"); !errors.Is(err, task.ErrOwned) {
		t.Errorf("took a task of another: %v", err)
	}
	if err := claimFor(b, "2", "w2"); !errors.Is(err, task.ErrBlocked) {
		t.Errorf("took a task whose blocker is at work: %v", err)
	}
	_, err := a.Update(t.Context(), team1, "1", task.Change{Status: ptr(task.Completed)})
	check(t, err)
	check(t, claimFor(b, "2", "w2"))
	if got := get(t, a, "2"); got.Owner != "w2" || got.Status != task.InProgress {
		t.Errorf("claimed: %+v", got)
	}
}

func releaseTasks(t *testing.T, a, b task.Store) {
	create(t, a, task.Task{Owner: "w1", Status: task.InProgress}, task.Task{Owner: "w1", Status: task.Completed},
		task.Task{Owner: "w2", Status: task.InProgress}, task.Task{Owner: "w1"}, task.Task{})
	released, err := b.Release(t.Context(), team1, "w1")
	check(t, err)
	equal(t, "released", released, []task.Task{{ID: "1", Status: task.Pending}, {ID: "4", Status: task.Pending}}, taskOptions...)
	var owners []string
	for _, one := range list(t, a) {
		owners = append(owners, one.Owner+" "+string(one.Status))
	}
	equal(t, "list", owners, []string{" pending", "w1 completed", "w2 in_progress", " pending", " pending"})
}

func resetList(t *testing.T, a, b task.Store) {
	check(t, a.Reset(t.Context(), team1))
	lists, err := b.Lists(t.Context())
	check(t, err)
	equal(t, "lists", lists, []string{"my-team-"})
	create(t, b, task.Task{Subject: "x"})
	equal(t, "first id", listIDs(t, a), []string{"1"})
	check(t, a.Remove(t.Context(), team1))
	check(t, b.Remove(t.Context(), team1))
	equal(t, "list", listIDs(t, b), []string{})
	lists, err = b.Lists(t.Context())
	check(t, err)
	equal(t, "lists", len(lists), 0)
	create(t, b, task.Task{Subject: "y"})
	equal(t, "a new list", listIDs(t, a), []string{"1"})
}

func watchList(t *testing.T, a, b task.Store) {
	signal, stop := a.Watch(team1)
	defer stop()
	create(t, a, task.Task{})
	select {
	case <-signal:
	default:
		t.Error("no signal right after a local change")
	}
	create(t, b, task.Task{})
	for len(listIDs(t, a)) < 2 {
		signalled(t, signal, "a task made by another process")
	}
	drain(signal)
	_, _, err := b.Claim(t.Context(), team1, "w1")
	check(t, err)
	for list(t, a)[0].Owner == "" {
		signalled(t, signal, "a claim by another process")
	}
	drain(signal)
	_, err = b.Update(t.Context(), team1, "1", task.Change{Status: ptr(task.Deleted)})
	check(t, err)
	for len(listIDs(t, a)) > 1 {
		signalled(t, signal, "a deletion by another process")
	}
}

func cancelledTask(t *testing.T, a, b task.Store) {
	create(t, a, task.Task{Subject: "x"})
	before := list(t, b)
	if _, err := a.Create(ended(), team1, task.Task{}); err == nil {
		t.Error("create under a cancelled context succeeded")
	}
	if _, err := a.Update(ended(), team1, "1", task.Change{Subject: ptr("y")}); err == nil {
		t.Error("update under a cancelled context succeeded")
	}
	if _, _, err := a.Claim(ended(), team1, "w1"); err == nil {
		t.Error("claim under a cancelled context succeeded")
	}
	equal(t, "list", list(t, b), before, taskOptions...)
}

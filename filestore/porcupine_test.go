package filestore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// Whatever several processes do to one task list at once, there is an order in
// which they could have done it one after the other, with the same answers. The
// model is written anew here: it shares no code with the stores.

// listCall is one call on a list.
type listCall struct {
	list     string
	do       string // create, claim, take, block, complete, release, delete, list
	id       string // of the task to take, block, complete or delete
	owner    string
	blockers []string
}

// listAnswer is what came of it.
type listAnswer struct {
	id    string // created or claimed; "" when there was nothing to claim
	ids   string // released
	known bool   // the task was there, with all that it was to wait for
	state string // of the whole list
}

// listState is a list; it is not changed once made.
type listState struct {
	last  int
	tasks map[int]listTask
}

type listTask struct {
	status, owner string
	blockers      []int
}

func (s listState) String() string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		t := s.tasks[id]
		fmt.Fprintf(&text, "#%d %s %s %v;", id, t.status, t.owner, t.blockers)
	}
	return text.String()
}

func (s listState) with(id int, t listTask) listState {
	tasks := map[int]listTask{id: t}
	for other, t := range s.tasks {
		if other != id {
			tasks[other] = t
		}
	}
	s.tasks = tasks
	return s
}

// step is what a call does to a list, and what it must answer.
func (s listState) step(c listCall) (listState, listAnswer) {
	id, _ := strconv.Atoi(c.id)
	t, known := s.tasks[id]
	switch c.do {
	case "create":
		return s.create(c)
	case "claim":
		return s.claim(c.owner)
	case "take":
		if !known || t.owner != "" && t.owner != c.owner || t.status == "pending" && s.held(t) {
			return s, listAnswer{}
		}
		return s.with(id, listTask{"in_progress", c.owner, t.blockers}), listAnswer{known: true}
	case "block":
		return s.block(id, c.blockers)
	case "complete":
		if t.status = "completed"; known {
			s = s.with(id, t)
		}
		return s, listAnswer{known: known}
	case "delete":
		if known {
			s = s.without(id)
		}
		return s, listAnswer{known: known}
	case "release":
		return s.release(c.owner)
	}
	return s, listAnswer{known: true, state: s.String()}
}

func (s listState) create(c listCall) (listState, listAnswer) {
	t := listTask{status: "pending"}
	for _, blocker := range c.blockers {
		n, _ := strconv.Atoi(blocker)
		if _, ok := s.tasks[n]; !ok {
			return s, listAnswer{}
		}
		t.blockers = append(t.blockers, n)
	}
	s.last++
	return s.with(s.last, t), listAnswer{id: strconv.Itoa(s.last), known: true}
}

// held reports whether a task waits for another.
func (s listState) held(t listTask) bool {
	return slices.ContainsFunc(t.blockers, func(b int) bool { return s.tasks[b].status != "completed" })
}

// block makes a task wait for others, if it would not wait for itself then.
func (s listState) block(id int, blockers []string) (listState, listAnswer) {
	t, known := s.tasks[id]
	t.blockers = slices.Clone(t.blockers)
	for _, blocker := range blockers {
		n, _ := strconv.Atoi(blocker)
		if _, ok := s.tasks[n]; !ok || !known || s.waits(n, id) {
			return s, listAnswer{}
		}
		if !slices.Contains(t.blockers, n) {
			t.blockers = append(t.blockers, n)
		}
	}
	if known {
		s = s.with(id, t)
	}
	return s, listAnswer{known: known}
}

// waits reports whether a task is another, or waits for it by any way.
func (s listState) waits(id, other int) bool {
	return id == other || slices.ContainsFunc(s.tasks[id].blockers, func(b int) bool { return s.waits(b, other) })
}

func (s listState) claim(owner string) (listState, listAnswer) {
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		t := s.tasks[id]
		if t.status == "pending" && t.owner == "" && !s.held(t) {
			t.status, t.owner = "in_progress", owner
			return s.with(id, t), listAnswer{id: strconv.Itoa(id), known: true}
		}
	}
	return s, listAnswer{known: true}
}

func (s listState) release(owner string) (listState, listAnswer) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		if t := s.tasks[id]; t.owner == owner && t.status != "completed" {
			t.status, t.owner = "pending", ""
			s = s.with(id, t)
			ids = append(ids, strconv.Itoa(id))
		}
	}
	return s, listAnswer{ids: strings.Join(ids, ","), known: true}
}

func (s listState) without(id int) listState {
	tasks := make(map[int]listTask)
	for other, t := range s.tasks {
		if other != id {
			t.blockers = slices.DeleteFunc(slices.Clone(t.blockers), func(b int) bool { return b == id })
			tasks[other] = t
		}
	}
	s.tasks = tasks
	return s
}

// taskListModel checks each list by itself.
var taskListModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		lists := make(map[string][]porcupine.Operation)
		for _, op := range history {
			name := op.Input.(listCall).list
			lists[name] = append(lists[name], op)
		}
		return slices.Collect(maps.Values(lists))
	},
	Init: func() any { return listState{} },
	Step: func(state, input, output any) (bool, any) {
		next, answer := state.(listState).step(input.(listCall))
		return answer == output.(listAnswer), next
	},
	Equal: func(a, b any) bool {
		return a.(listState).String() == b.(listState).String() && a.(listState).last == b.(listState).last
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

// call makes a call on a store.
func (c listCall) call(ctx context.Context, tasks task.Store) (a listAnswer, err error) {
	a.known = true
	switch c.do {
	case "create":
		var made task.Task
		made, err = tasks.Create(ctx, c.list, task.Task{Subject: "s", BlockedBy: c.blockers})
		a.id = made.ID
	case "claim":
		var claimed task.Task
		claimed, _, err = tasks.Claim(ctx, c.list, c.owner)
		a.id = claimed.ID
	case "take":
		begun := task.InProgress
		_, err = tasks.Update(ctx, c.list, c.id, task.Change{Status: &begun, ClaimFor: c.owner})
	case "block":
		_, err = tasks.Update(ctx, c.list, c.id, task.Change{AddBlockedBy: c.blockers})
	case "complete":
		_, err = tasks.Update(ctx, c.list, c.id, completed)
	case "delete":
		_, err = tasks.Update(ctx, c.list, c.id, task.Change{Status: ptr(task.Deleted)})
	case "release":
		var released []task.Task
		released, err = tasks.Release(ctx, c.list, c.owner)
		var ids []string
		for _, t := range released {
			ids = append(ids, t.ID)
		}
		a.ids = strings.Join(ids, ",")
	case "list":
		var all []task.Task
		all, err = tasks.List(ctx, c.list)
		a.state = stateOf(all)
	}
	for _, refusal := range []error{task.ErrNotFound, task.ErrCycle, task.ErrOwned, task.ErrBlocked} {
		if errors.Is(err, refusal) { // [task.ErrCycle] also for a new task that waits for its own id
			return listAnswer{}, nil
		}
	}
	return a, err
}

// calls are drawn as often as they stand here.
var calls = []string{"create", "create", "claim", "claim", "take", "block", "complete", "release", "delete", "list"}

// draw is a random call by owner.
func draw(random *rand.Rand, list, owner string) listCall {
	c := listCall{list: list, owner: owner, do: calls[random.IntN(len(calls))]}
	someID := func() string { return strconv.Itoa(1 + random.IntN(8)) }
	switch c.do {
	case "create", "block":
		for _, blocker := range []string{someID(), someID()}[:random.IntN(3)] {
			if !slices.Contains(c.blockers, blocker) {
				c.blockers = append(c.blockers, blocker)
			}
		}
	}
	switch c.do {
	case "take", "block", "complete", "delete":
		c.id = someID()
	}
	return c
}

// record has some workers, each with a store of its own, make random calls on
// two lists, and returns what they saw, and the lists at the end.
func record(t *testing.T, seed uint64, workers, calls int) []porcupine.Operation {
	t.Helper()
	root := layout.Root(t.TempDir())
	lists := []string{"one", "two"}
	var clock atomic.Int64 // one look at it for each call and each answer
	var mu sync.Mutex
	var history []porcupine.Operation
	call := func(worker int, c listCall, tasks task.Store) {
		op := porcupine.Operation{ClientId: worker, Input: c, Call: clock.Add(1)}
		answer, err := c.call(t.Context(), tasks)
		op.Output, op.Return = answer, clock.Add(1)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		mu.Lock()
		defer mu.Unlock()
		history = append(history, op)
	}
	var wg sync.WaitGroup
	for w := range workers {
		tasks := open(t, root).Tasks()
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for range calls {
				call(w, draw(random, lists[random.IntN(len(lists))], fmt.Sprint("w", w)), tasks)
			}
		})
	}
	wg.Wait()
	for _, list := range lists {
		call(workers, listCall{list: list, do: "list"}, open(t, root).Tasks())
	}
	return history
}

func stateOf(all []task.Task) string {
	state := listState{tasks: make(map[int]listTask)}
	for _, one := range all {
		kept := listTask{status: string(one.Status), owner: one.Owner}
		for _, blocker := range one.BlockedBy {
			kept.blockers = append(kept.blockers, task.Number(blocker))
		}
		state.tasks[task.Number(one.ID)] = kept
	}
	return state.String()
}

// linearizable checks a history; it gives up after a time that no such history
// needs.
func linearizable(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(taskListModel, history, time.Minute)
}

func TestTaskListIsLinearizable(t *testing.T) {
	rounds := 6
	if testAll {
		rounds = 150
	}
	for range rounds {
		seed := rand.Uint64()
		history := record(t, seed, 5, 12)
		if got := linearizable(history); got != porcupine.Ok {
			t.Fatalf("seed %d: %s\n%s", seed, got, told(history))
		}
	}
}

// told is a history for people to read: a line for each call.
func told(history []porcupine.Operation) string {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, op := range history {
		fmt.Fprintf(&text, "%3d-%3d worker %d: %s\n", op.Call, op.Return, op.ClientId, taskListModel.DescribeOperation(op.Input, op.Output))
	}
	return text.String()
}

// The check can fail: histories with one wrong answer are no histories.
func TestWrongHistoriesAreRejected(t *testing.T) {
	const seed = 7
	wrong := map[string]func(c listCall, a *listAnswer) bool{
		"claimed twice": func(c listCall, a *listAnswer) bool {
			if c.do != "claim" || a.id == "" || a.id == "1" {
				return false
			}
			a.id = "1"
			return true
		},
		"a created task got another id": func(c listCall, a *listAnswer) bool {
			if c.do != "create" || !a.known {
				return false
			}
			a.id += "0"
			return true
		},
		"a change of no task": func(c listCall, a *listAnswer) bool {
			if c.do != "complete" && c.do != "delete" || a.known {
				return false
			}
			a.known = true
			return true
		},
		"released what it had not": func(c listCall, a *listAnswer) bool {
			if c.do != "release" {
				return false
			}
			a.ids += ",9"
			return true
		},
		"a lost change": func(c listCall, a *listAnswer) bool {
			if c.do != "list" {
				return false
			}
			a.state = strings.Replace(a.state, "completed", "pending", 1)
			return true
		},
	}
	for name, spoil := range wrong {
		history := inTurn(t, seed)
		if got := linearizable(history); got != porcupine.Ok {
			t.Fatalf("before: %s", got)
		}
		spoiled := false
		for i := range history {
			answer := history[i].Output.(listAnswer)
			if !spoiled && spoil(history[i].Input.(listCall), &answer) {
				spoiled = answer != history[i].Output
				history[i].Output = answer
			}
		}
		if !spoiled {
			t.Errorf("%s: the history has no such answer", name)
		} else if got := linearizable(history); got != porcupine.Illegal {
			t.Errorf("%s: %s", name, got)
		}
	}
	// A claim before its blocker was completed.
	one := func(at int64, c listCall, a listAnswer) porcupine.Operation {
		return porcupine.Operation{Input: c, Output: a, Call: 2 * at, Return: 2*at + 1}
	}
	early := []porcupine.Operation{
		one(1, listCall{do: "create"}, listAnswer{id: "1", known: true}),
		one(2, listCall{do: "create", blockers: []string{"1"}}, listAnswer{id: "2", known: true}),
		one(3, listCall{do: "claim", owner: "a"}, listAnswer{id: "1", known: true}),
		one(4, listCall{do: "claim", owner: "b"}, listAnswer{id: "2", known: true}),
	}
	if got := linearizable(early); got != porcupine.Illegal {
		t.Errorf("claimed before its blocker: %s", got)
	}
	if got := linearizable(early[:3]); got != porcupine.Ok {
		t.Errorf("claimed in time: %s", got)
	}
}

// inTurn is a history of the model alone, one call after the other.
func inTurn(t *testing.T, seed uint64) (history []porcupine.Operation) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed))
	var state listState
	for i := range int64(60) {
		c := draw(random, "one", "w1")
		if i == 59 {
			c = listCall{list: "one", do: "list"}
		}
		var a listAnswer
		state, a = state.step(c)
		history = append(history, porcupine.Operation{Input: c, Output: a, Call: 2 * i, Return: 2*i + 1})
	}
	return history
}

package task

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/internal/jsonx"
)

var options = []cmp.Option{
	cmpopts.EquateEmpty(),
	cmp.Transformer("object", func(o jsonx.Object) string { return string(jsonx.MustMarshal(o)) }),
}

func ptr[T any](v T) *T { return &v }

// apply puts an outcome into a copy of the list.
func apply(list []Task, outcome Outcome, others []Task) []Task {
	list = slices.Clone(list)
	put := func(t Task) {
		i := slices.IndexFunc(list, func(old Task) bool { return old.ID == t.ID })
		list[i] = t
	}
	for _, t := range others {
		put(t)
	}
	if outcome.After.Status == Deleted {
		return slices.DeleteFunc(list, func(t Task) bool { return t.ID == outcome.After.ID })
	}
	put(outcome.After)
	return list
}

func TestApply(t *testing.T) {
	var metadata, patch jsonx.Object
	metadata.Set("keep", 1)
	metadata.Set("drop", 2)
	patch.Set("drop", nil)
	patch.Set("new", "x")
	list := []Task{{ID: "1", Subject: "s", Status: Pending, Metadata: metadata}, {ID: "2", Blocks: []string{"3"}}, {ID: "3", BlockedBy: []string{"2"}}}
	outcome, others, err := Apply(list, "1", Change{Subject: ptr("t"), Owner: ptr("w1"), Status: ptr(Completed), AddBlocks: []string{"2", "2"}, Metadata: patch})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"subject", "owner", "metadata", "status", "blocks"}, outcome.Fields); diff != "" {
		t.Error(diff)
	}
	if got := string(jsonx.MustMarshal(outcome.After.Metadata)); got != `{"keep":1,"new":"x"}` {
		t.Errorf("metadata %s", got)
	}
	if got := string(jsonx.MustMarshal(outcome.Before.Metadata)); got != `{"keep":1,"drop":2}` {
		t.Errorf("metadata before %s", got)
	}
	if diff := cmp.Diff([]Task{{ID: "2", Blocks: []string{"3"}, BlockedBy: []string{"1"}}}, others, options...); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]Change{"3 blocks 1": {AddBlockedBy: []string{"3"}}, "itself": {AddBlocks: []string{"1"}}} {
		after := apply(list, outcome, others)
		if _, _, err := Apply(after, "1", change); !errors.Is(err, ErrCycle) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Apply(list, "1", Change{AddBlocks: []string{"9"}}); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
	if _, _, err := Apply(list, "9", Change{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
	outcome, others, err = Apply(list, "2", Change{Status: ptr(Deleted)})
	if err != nil || len(others) != 1 || len(others[0].BlockedBy) != 0 || !slices.Equal(outcome.Fields, []string{"deleted"}) {
		t.Errorf("deletion: %+v, %+v, %v", outcome, others, err)
	}
}

func TestClaimable(t *testing.T) {
	var internal jsonx.Object
	internal.Set("_internal", true)
	list := []Task{
		{ID: "1", Status: Completed},
		{ID: "2", Status: InProgress},
		{ID: "3", Status: Pending, BlockedBy: []string{"1", "2"}},
		{ID: "4", Status: Pending, Owner: "w1"},
		{ID: "5", Status: Pending, Metadata: internal},
		{ID: "6", Status: Pending, BlockedBy: []string{"1", "99"}},
	}
	if at := FirstClaimable(list); at != 5 {
		t.Errorf("first claimable at %d", at)
	}
	if diff := cmp.Diff([]string{"2"}, Blockers(list, list[2])); diff != "" {
		t.Error(diff)
	}
	if FirstClaimable(nil) != -1 {
		t.Error("something to claim in an empty list")
	}
}

func TestNumber(t *testing.T) {
	ids := []string{"note", "10", "9", "-1", "2"}
	slices.SortStableFunc(ids, func(a, b string) int { return Number(a) - Number(b) })
	if diff := cmp.Diff([]string{"2", "9", "10", "note", "-1"}, ids); diff != "" {
		t.Error(diff)
	}
}

// After any changes the edges stand on both sides and nothing waits for itself.
func TestAnyChangesKeepTheGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Task
		n := rapid.IntRange(1, 7).Draw(t, "tasks")
		for i := range n {
			list = append(list, Task{ID: strconv.Itoa(i + 1), Status: Pending})
		}
		ids := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, n+1), strconv.Itoa), 0, 3)
		for range rapid.IntRange(0, 25).Draw(t, "changes") {
			change := Change{AddBlocks: ids.Draw(t, "blocks"), AddBlockedBy: ids.Draw(t, "blockedBy")}
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				change = Change{Status: ptr(rapid.SampledFrom([]Status{Completed, InProgress, Deleted, Pending}).Draw(t, "status"))}
			}
			before := slices.Clone(list)
			outcome, others, err := Apply(list, strconv.Itoa(rapid.IntRange(1, n).Draw(t, "id")), change)
			if diff := cmp.Diff(before, list, options...); diff != "" {
				t.Fatalf("the list was changed in place: %s", diff)
			}
			if err == nil {
				list = apply(list, outcome, others)
			}
		}
		checkGraph(t, list)
		first := slices.IndexFunc(list, func(one Task) bool { return Claimable(list, one) })
		if at := FirstClaimable(list); at != first {
			t.Fatalf("first claimable at %d, want %d", at, first)
		}
	})
}

func checkGraph(t *rapid.T, list []Task) {
	byID := make(map[string]Task)
	for _, one := range list {
		byID[one.ID] = one
	}
	var follow func(id string, path []string)
	follow = func(id string, path []string) {
		if slices.Contains(path, id) {
			t.Fatalf("cycle %v", append(path, id))
		}
		for _, next := range byID[id].BlockedBy {
			if !slices.Contains(byID[next].Blocks, id) {
				t.Fatalf("#%s waits for #%s, which does not know", id, next)
			}
			follow(next, append(path, id))
		}
		for _, other := range byID[id].Blocks {
			if !slices.Contains(byID[other].BlockedBy, id) {
				t.Fatalf("#%s blocks #%s, which does not know", id, other)
			}
		}
	}
	for _, one := range list {
		follow(one.ID, nil)
	}
}

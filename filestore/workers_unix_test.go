//go:build unix

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/task"
)

// randomDAG makes a list of tasks, each held back by up to three before it, and
// the last by all that hold back nobody: when it is done, all is done.
func randomDAG(t *testing.T, root layout.Root, total int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed))
	held := make(map[int]bool) // by somebody
	writeTasks(t, root, total, func(i int) (blockers []int) {
		if i == total {
			for b := 1; b < total; b++ {
				if !held[b] {
					blockers = append(blockers, b)
				}
			}
			return blockers
		}
		for range random.IntN(4) {
			if b := max(1, i-1-random.IntN(60)); b < i && !slices.Contains(blockers, b) {
				blockers = append(blockers, b)
				held[b] = true
			}
		}
		return blockers
	})
}

// workThrough claims and completes tasks until the last one is done, and tells
// of each claim. It checks each against what stands in the list right then.
func workThrough(ctx context.Context, root layout.Root, owner, last string, claimed func(id string)) (err error) {
	s := filestore.New(root)
	defer func() { err = errors.Join(err, s.Close()) }()
	signal, stop := s.Tasks().Watch("t")
	defer stop()
	for n := 1; ; n++ {
		t, ok, err := s.Tasks().Claim(ctx, "t", owner)
		if err != nil {
			return err
		}
		if ok {
			claimed(t.ID)
			if err := checkClaim(ctx, s, t, owner, n%100 == 1); err != nil {
				return err
			}
			if err := update(t.ID, completed)(ctx, s); err != nil {
				return err
			}
			continue
		}
		t, err = s.Tasks().Get(ctx, "t", last)
		if err != nil || t.Status == task.Completed {
			return err
		}
		<-signal
	}
}

// checkClaim looks at a claim while it holds; thoroughly also at all the others.
func checkClaim(ctx context.Context, s *filestore.Store, t task.Task, owner string, thoroughly bool) error {
	for _, id := range t.BlockedBy {
		if b, err := s.Tasks().Get(ctx, "t", id); err != nil || b.Status != task.Completed {
			return fmt.Errorf("#%s was claimed before #%s was completed: %w", t.ID, id, err)
		}
	}
	if !thoroughly {
		return nil
	}
	all, err := s.Tasks().List(ctx, "t")
	for _, other := range all {
		if other.Owner == owner && other.Status == task.InProgress && other.ID != t.ID {
			return fmt.Errorf("%s has #%s and #%s", owner, t.ID, other.ID)
		}
	}
	return err
}

// workAsChild is workThrough in a process of its own.
func workAsChild(ctx context.Context, root layout.Root, owner, last string) error {
	return workThrough(ctx, root, owner, last, func(id string) { fmt.Println("ack", id) })
}

// fillChangeLog makes the log of a list's changes nearly as long as it may be, so that
// it is started anew while the workers use it.
func fillChangeLog(t *testing.T, root layout.Root) {
	t.Helper()
	_, queue := root.LockQueue(filepath.Join(root.TaskList("t"), ".lock"))
	log := filepath.Join(filepath.Dir(queue), "changes")
	write(t, log, "\n=0123456789abcdef\n"+strings.Repeat("\n1\n", 21_000))
	t.Cleanup(func() {
		if data, err := os.ReadFile(log); err != nil || strings.Contains(string(data), "=0123456789abcdef") {
			t.Errorf("the log was not started anew: %v", err)
		}
	})
}

// Sixteen workers do all of a list, each task once, none before its blockers,
// and each worker one at a time.
func TestWorkersShareATaskList(t *testing.T) {
	workers, total := 16, 300
	if testWhole {
		total = 1_000
	}
	root := layout.Root(t.TempDir())
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	randomDAG(t, root, total, seed)
	fillChangeLog(t, root)
	var mu sync.Mutex
	owners := make(map[string]string)
	claimed := func(owner, id string) {
		mu.Lock()
		defer mu.Unlock()
		if other, twice := owners[id]; twice {
			t.Errorf("#%s was claimed by %s and %s", id, other, owner)
		}
		owners[id] = owner
	}
	var wg sync.WaitGroup
	for w := range workers {
		owner, last := fmt.Sprint("w", w), strconv.Itoa(total)
		wg.Go(func() {
			if testWhole { // in processes
				for _, line := range runChild(t, childEnv(string(root), "claim", owner, last)) {
					if id, ok := strings.CutPrefix(line, "ack "); ok {
						claimed(owner, id)
					}
				}
				return
			}
			if err := workThrough(t.Context(), root, owner, last, func(id string) { claimed(owner, id) }); err != nil {
				t.Errorf("%s: %v", owner, err)
			}
		})
	}
	wg.Wait()
	all, err := open(t, root).Tasks().List(t.Context(), "t")
	check(t, err)
	if len(all) != total {
		t.Errorf("%d tasks are left", len(all))
	}
	for _, one := range all {
		if one.Status != task.Completed || one.Owner != owners[one.ID] || one.Owner == "" {
			t.Errorf("#%s is %s and %s's, claimed by %s", one.ID, one.Status, one.Owner, owners[one.ID])
		}
	}
}

//go:build unix

package dirlock_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
)

// takeTurn is what a child of TestTakersAtOnce does: it writes into a file when
// it comes and when it goes.
func takeTurn(target string) error {
	lock, err := dirlock.Acquire(context.Background(), fsx.OS, target, queueOf(target))
	if err != nil {
		return err
	}
	book, err := os.OpenFile(target, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(book, "%d in, recovered %v\n", os.Getpid(), lock.Recovered())
	if err == nil {
		err = lock.Held()
	}
	if err == nil {
		_, err = fmt.Fprintf(book, "%d out\n", os.Getpid())
	}
	return errors.Join(err, book.Close(), lock.Unlock())
}

// A lock that its owner left is taken by several processes at once: they still
// come one after the other, and one of them recovers.
func TestTakersAtOnce(t *testing.T) {
	const takers = 6
	for name, test := range map[string]struct {
		leave     func(t *testing.T, target string)
		recovered int
	}{
		"of a dead process of ours": {func(t *testing.T, target string) { holdAndDie(t, target) }, 1},
		"of another program, stale": {func(t *testing.T, target string) { dated(t, target, 0o755, time.Minute) }, 0},
		"left by nobody":            {func(*testing.T, string) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "book")
			test.leave(t, target)
			var wg sync.WaitGroup
			for range takers {
				wg.Go(func() {
					child := exec.Command(os.Args[0])
					child.Env = append(os.Environ(), childVariable+"="+target, childVariable+"_TURN=1")
					if out, err := child.CombinedOutput(); err != nil {
						t.Errorf("%v: %s", err, out)
					}
				})
			}
			wg.Wait()
			data, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
			if len(lines) != 2*takers {
				t.Fatalf("the book says\n%s", data)
			}
			for i := 0; i < len(lines); i += 2 {
				if who, _, _ := strings.Cut(lines[i], " "); lines[i+1] != who+" out" {
					t.Errorf("%q, then %q", lines[i], lines[i+1])
				}
			}
			if n := strings.Count(string(data), "recovered true"); n != test.recovered {
				t.Errorf("%d recovered it", n)
			}
			missing(t, target+".lock")
		})
	}
}

// A dead process's lock is ours to take at once, whatever its time says.
func TestDeadOwnersLockHasNoAge(t *testing.T) {
	for _, age := range []time.Duration{0, time.Hour, -time.Hour, time.Since(time.Unix(0, 0))} {
		synctest.Test(t, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "w1.json")
			unlock(t, acquire(t, target)) // signs the side file
			dated(t, target, fs.FileMode(0o600), age)
			start := time.Now()
			lock, err := dirlock.Acquire(t.Context(), fsx.OS, target, queueOf(target))
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); !lock.Recovered() || waited > 0 {
				t.Errorf("age %v: recovered %v after %v", age, lock.Recovered(), waited)
			}
			unlock(t, lock)
			missing(t, target+".lock")
		})
	}
}

package dirlock_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
)

// dated makes a lock folder of this age by the clock of now, which may be wrong
// or have been when it was made.
func dated(t *testing.T, target string, mode fs.FileMode, age time.Duration) {
	t.Helper()
	at := time.Now().Add(-age)
	if err := errors.Join(os.Mkdir(target+".lock", mode), os.Chtimes(target+".lock", at, at)); err != nil {
		t.Fatal(err)
	}
}

// Another program's lock is waited for, at most until it is stale, whatever the
// wall clock did meanwhile.
func TestForeignLockIsWaitedForByItsAge(t *testing.T) {
	for name, test := range map[string]struct {
		age         time.Duration
		least, most time.Duration
	}{
		"just made":                    {0, dirlock.Stale, dirlock.Stale + time.Second},
		"stamped as the protocol does": {-time.Second, dirlock.Stale, dirlock.Stale + time.Second},
		"not stale yet":                {dirlock.Stale - 3*time.Second, 3 * time.Second, 4 * time.Second},
		"stale":                        {dirlock.Stale + time.Second, 0, time.Second},
		"the clock went on an hour":    {time.Hour, 0, time.Second},
		"the clock went back an hour":  {-time.Hour, dirlock.Stale, dirlock.Stale + time.Second},
		"the clock went back years":    {-30 * 365 * 24 * time.Hour, dirlock.Stale, dirlock.Stale + time.Second},
		"from 1970":                    {time.Since(time.Unix(0, 0)), 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := filepath.Join(t.TempDir(), "w1.json")
				dated(t, target, 0o755, test.age)
				start := time.Now()
				lock, err := dirlock.Acquire(t.Context(), fsx.OS, target, queueOf(target))
				if err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(start); waited < test.least || waited > test.most {
					t.Errorf("waited %v, want %v to %v", waited, test.least, test.most)
				}
				unlock(t, lock)
				missing(t, target+".lock")
			})
		})
	}
}

// A stale lock that is touched while we look at it has a living owner.
func TestStaleLockComesToLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := filepath.Join(t.TempDir(), "w1.json")
		dated(t, target, 0o755, time.Hour)
		go func() {
			<-time.After(100 * time.Millisecond)
			if err := os.Chtimes(target+".lock", time.Now(), time.Now()); err != nil {
				t.Error(err)
			}
		}()
		start := time.Now()
		lock, err := dirlock.Acquire(t.Context(), fsx.OS, target, queueOf(target))
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < dirlock.Stale {
			t.Errorf("broken after %v", waited)
		}
		unlock(t, lock)
	})
}

// A folder in which nothing can be made is an error at once, that says where.
func TestNoPermission(t *testing.T) {
	for _, op := range []string{"openfile", "mkdir", "renamenew", "chtimes"} {
		synctest.Test(t, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "w1.json")
			denied := &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
				if c.Op == op {
					return &fsx.Fault{Err: syscall.EACCES}
				}
				return nil
			}}
			start := time.Now()
			_, err := dirlock.Acquire(t.Context(), denied, target, queueOf(target))
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), target) {
				t.Errorf("%s: %v", op, err)
			}
			if waited := time.Since(start); waited > 0 {
				t.Errorf("%s: waited %v", op, waited)
			}
			missing(t, target+".lock")
		})
	}
	if os.Geteuid() == 0 {
		return // may write everywhere
	}
	parent := filepath.Join(t.TempDir(), "parent")
	if err := os.Mkdir(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Acquire(within(t, 20*time.Second), fsx.OS, filepath.Join(parent, "w1.json"), queueOf(filepath.Join(parent, "w1.json"))); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read-only parent: %v", err)
	}
}

package dirlock_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/internal/dirlock"
	"github.com/cadre-dev/cadre/internal/fsx"
)

const childVariable = "CADRE_TEST_LOCK"

// TestMain holds a lock until it is killed, when a test started it for that.
func TestMain(m *testing.M) {
	if target := os.Getenv(childVariable); target != "" {
		if os.Getenv(childVariable+"_TURN") != "" {
			if err := takeTurn(target); err != nil {
				_, _ = os.Stderr.WriteString(err.Error())
				os.Exit(1)
			}
			os.Exit(0)
		}
		lock, err := dirlock.Acquire(context.Background(), fsx.OS, target, queueOf(target))
		if err != nil {
			os.Exit(1)
		}
		if os.Getenv(childVariable+"_NESTED") != "" {
			if _, err := lock.Nested(context.Background(), target+"2"); err != nil {
				os.Exit(1)
			}
		}
		_, _ = os.Stdout.WriteString("held")
		_ = os.Stdout.Close()
		killed := make(chan os.Signal, 1)
		signal.Notify(killed) // else the runtime sees nobody awake and ends the process
		<-killed
		runtime.KeepAlive(lock)
	}
	os.Exit(m.Run())
}

// queueOf is where a test queues for a target.
func queueOf(target string) dirlock.Queue {
	below, name := filepath.Split(target)
	return dirlock.Queue{Below: filepath.Clean(below), File: filepath.Join(below, "cadre", "locks", name)}
}

// within bounds what must not take long; it is no measurement.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t *testing.T, target string) *dirlock.Lock {
	t.Helper()
	lock, err := dirlock.Acquire(within(t, 20*time.Second), fsx.OS, target, queueOf(target))
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func unlock(t *testing.T, lock *dirlock.Lock) {
	t.Helper()
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func missing(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left behind (%v)", path, err)
	}
}

func TestLockFolder(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	for range 3 {
		lock := acquire(t, target)
		before := time.Now()
		info, err := os.Lstat(target + ".lock")
		if err != nil || !info.IsDir() {
			t.Fatalf("no lock folder: %v", err)
		}
		// As Claude Code stamps it: the next whole second and 5 ms.
		if ms := info.ModTime().UnixMilli() % 1000; ms != 5 || info.ModTime().Sub(before) > 2*time.Second {
			t.Errorf("stamped %v at %v", info.ModTime(), before)
		}
		if err := os.Mkdir(target+".lock", 0o700); !errors.Is(err, fs.ErrExist) {
			t.Errorf("another program got the lock too: %v", err)
		}
		if err := lock.Held(); err != nil {
			t.Error(err)
		}
		unlock(t, lock)
		missing(t, target+".lock")
	}
}

func TestHoldersTakeTurns(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	holders, total := 0, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				lock := acquire(t, target)
				if holders++; holders != 1 {
					t.Errorf("%d holders", holders)
				}
				total++
				holders--
				unlock(t, lock)
			}
		})
	}
	wg.Wait()
	if total != 200 {
		t.Errorf("%d turns", total)
	}
}

func TestForeignLockIsWaitedFor(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	if err := os.Mkdir(target+".lock", 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := dirlock.Acquire(within(t, 50*time.Millisecond), fsx.OS, target, queueOf(target))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "held by another program") {
		t.Fatalf("error %v", err)
	}
	done := make(chan error)
	go func() {
		lock, err := dirlock.Acquire(within(t, 20*time.Second), fsx.OS, target, queueOf(target))
		if err == nil {
			err = lock.Unlock()
		}
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("got a held lock: %v", err)
	case <-within(t, 60*time.Millisecond).Done():
	}
	if err := os.Remove(target + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	missing(t, target+".lock")
}

func TestStaleForeignLockIsStolen(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	if err := os.Mkdir(target+".lock", 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-11 * time.Second)
	if err := os.Chtimes(target+".lock", old, old); err != nil {
		t.Fatal(err)
	}
	lock, err := dirlock.Acquire(within(t, 5*time.Second), fsx.OS, target, queueOf(target))
	if err != nil {
		t.Fatal(err)
	}
	if lock.Recovered() {
		t.Error("a foreign lock counts as ours")
	}
	unlock(t, lock)
	missing(t, target+".lock")
}

// The clock inside the bubble stands in 2000, so the folder's time, given by
// the system, is far in the future.
func TestFutureLockIsStolenWhenItStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := filepath.Join(t.TempDir(), "w1.json")
		if err := os.Mkdir(target+".lock", 0o755); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		lock, err := dirlock.Acquire(t.Context(), fsx.OS, target, queueOf(target))
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < dirlock.Stale || waited > dirlock.Stale+time.Second {
			t.Errorf("stolen after %v", waited)
		}
		unlock(t, lock)
	})
}

func TestLivingFutureLockIsNotStolen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := filepath.Join(t.TempDir(), "w1.json")
		if err := os.Mkdir(target+".lock", 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { // its owner refreshes it, as a long hold does
			for i := 0; ctx.Err() == nil; i++ {
				at := time.Now().Add(time.Hour + time.Duration(i)*time.Second)
				if err := os.Chtimes(target+".lock", at, at); err != nil {
					t.Error(err)
				}
				select {
				case <-time.After(5 * time.Second):
				case <-ctx.Done():
				}
			}
		}()
		if _, err := dirlock.Acquire(ctx, fsx.OS, target, queueOf(target)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func TestOddShapes(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	elsewhere := filepath.Join(dir, "elsewhere")
	if err := errors.Join(os.WriteFile(file+".lock", nil, 0o600), os.Mkdir(elsewhere, 0o700), os.Symlink(elsewhere, link+".lock")); err != nil {
		t.Skip(err)
	}
	for _, target := range []string{file, link} {
		_, err := dirlock.Acquire(within(t, 20*time.Second), fsx.OS, target, queueOf(target))
		if !errors.Is(err, dirlock.ErrShape) || !strings.Contains(err.Error(), target+".lock") {
			t.Errorf("%s: %v", filepath.Base(target), err)
		}
	}
	if _, err := os.Lstat(elsewhere); err != nil {
		t.Errorf("the link was followed: %v", err)
	}
	full := filepath.Join(dir, "full")
	old := time.Now().Add(-time.Minute)
	if err := errors.Join(os.MkdirAll(full+".lock/x", 0o700), os.Chtimes(full+".lock", old, old)); err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Acquire(within(t, 20*time.Second), fsx.OS, full, queueOf(full)); err == nil || !strings.Contains(err.Error(), "stale") {
		t.Errorf("stale lock with something in it: %v", err)
	}
	if _, err := dirlock.Acquire(t.Context(), fsx.OS, filepath.Join(dir, "no", "target"), queueOf(filepath.Join(dir, "no", "target"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
}

func TestLostLock(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	lock := acquire(t, target)
	if err := errors.Join(os.Remove(target+".lock"), os.Mkdir(target+".lock", 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := lock.Held(); !errors.Is(err, dirlock.ErrLost) {
		t.Errorf("held after it was taken: %v", err)
	}
	unlock(t, lock)
	if _, err := os.Lstat(target + ".lock"); err != nil {
		t.Errorf("the new owner's lock was removed: %v", err)
	}
}

func TestFaultsLeaveNoLock(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		for n := 1; ; n++ {
			target := filepath.Join(t.TempDir(), "w1.json")
			if !fresh {
				unlock(t, acquire(t, target))
			}
			faulty := &fsx.Faulty{FS: fsx.OS, Decide: fsx.FailNth(n, fsx.Fault{Err: syscall.EIO})}
			lock, err := dirlock.Acquire(within(t, 20*time.Second), faulty, target, queueOf(target))
			if err == nil {
				unlock(t, lock)
			} else if !errors.Is(err, syscall.EIO) {
				t.Fatalf("call %d: %v", n, err)
			}
			missing(t, target+".lock")
			again := acquire(t, target)
			if again.Recovered() {
				t.Errorf("call %d left the lock to be recovered", n)
			}
			unlock(t, again)
			if faulty.Calls() < n {
				break
			}
		}
	}
}

// holdAndDie starts a process of ours that takes the lock, and kills it.
func holdAndDie(t *testing.T, target string, more ...string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(append(os.Environ(), childVariable+"="+target), more...)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if _, err := out.Read(buf); err != nil || string(buf) != "held" {
		t.Fatalf("child said %q, %v", buf, err)
	}
	if _, err := dirlock.Acquire(within(t, 30*time.Millisecond), fsx.OS, target, queueOf(target)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got the lock of a living process: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
}

func TestDeadOwnerOfOursIsTakenOverAtOnce(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	holdAndDie(t, target)
	if _, err := os.Lstat(target + ".lock"); err != nil {
		t.Fatalf("the child left no lock: %v", err)
	}
	lock, err := dirlock.Acquire(within(t, time.Second), fsx.OS, target, queueOf(target))
	if err != nil {
		t.Fatal(err)
	}
	if !lock.Recovered() {
		t.Error("not recovered")
	}
	unlock(t, lock)
	missing(t, target+".lock")
	lock = acquire(t, target)
	if lock.Recovered() {
		t.Error("recovered twice")
	}
	unlock(t, lock)
}

func TestNestedLocks(t *testing.T) {
	target := filepath.Join(t.TempDir(), ".lock")
	holdAndDie(t, target, childVariable+"_NESTED=1")
	lock := acquire(t, target)
	foreign := filepath.Join(filepath.Dir(target), "x.lock")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := lock.SweepNested(filepath.Dir(target)); err != nil {
		t.Fatal(err)
	}
	missing(t, target+"2.lock")
	for _, kept := range []string{foreign, target + ".lock"} {
		if _, err := os.Lstat(kept); err != nil {
			t.Errorf("swept: %v", err)
		}
	}
	for range 2 {
		inner, err := lock.Nested(within(t, time.Second), target+"2")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(target + "2.lock"); err != nil {
			t.Error(err)
		}
		unlock(t, inner)
		missing(t, target+"2.lock")
	}
	unlock(t, lock)
	missing(t, target+".lock")
}

func TestLockOfAnotherHostIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "w1.json")
	unlock(t, acquire(t, target))
	side := queueOf(target).File
	if err := errors.Join(os.WriteFile(side, []byte("some-other-host"), 0o600), os.Mkdir(target+".lock", 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Acquire(within(t, 50*time.Millisecond), fsx.OS, target, queueOf(target)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("took over the lock of another host: %v", err)
	}
	if err := os.Remove(target + ".lock"); err != nil {
		t.Fatal(err)
	}
	unlock(t, acquire(t, target))
	if data, err := os.ReadFile(side); err != nil || slices.Contains([]string{"", "some-other-host"}, string(data)) {
		t.Errorf("side file says %q, %v", data, err)
	}
}

func TestWithoutFileLocks(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	plain := &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op == "trylock" || c.Op == "renamenew" {
			return &fsx.Fault{Err: errors.ErrUnsupported}
		}
		return nil
	}}
	lock, err := dirlock.Acquire(within(t, 20*time.Second), plain, target, queueOf(target))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Acquire(within(t, 30*time.Millisecond), plain, target, queueOf(target)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second acquire: %v", err)
	}
	unlock(t, lock)
	missing(t, target+".lock")
	// A marked folder may be a living process's here: it is waited for.
	if err := os.Mkdir(target+".lock", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Acquire(within(t, 50*time.Millisecond), plain, target, queueOf(target)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("took over without knowing: %v", err)
	}
}

func TestCancelled(t *testing.T) {
	target := filepath.Join(t.TempDir(), "w1.json")
	cause := errors.New("shut down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := dirlock.Acquire(ctx, fsx.OS, target, queueOf(target)); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	lock := acquire(t, target)
	if _, err := dirlock.Acquire(within(t, 10*time.Millisecond), fsx.OS, target, queueOf(target)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting in line: %v", err)
	}
	unlock(t, lock)
	unlock(t, acquire(t, target))
}

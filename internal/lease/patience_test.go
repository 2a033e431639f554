package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/lease"
)

// leftBy makes a lease of a process on this machine (0: without its name), and locks
// it; the file layer ends the lock when it is tried for the n-th time.
func leftBy(t *testing.T, pid int, lock func(fsx.File) (bool, error), n int) (fsys fsx.FS, path string) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var signed []byte
	if pid != 0 {
		if signed, err = json.Marshal(lease.Holder{PID: pid, Host: host, Since: time.Now().UTC()}); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "main.lease")
	if err := os.WriteFile(path, signed, 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := fsx.OS.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = left.Close() })
	held, err := lock(left)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no file locks here")
	}
	if err != nil || !held {
		t.Fatalf("lock: %v, %v", held, err)
	}
	tries := 0
	return &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op == "trylock" {
			if tries++; tries == n {
				_ = left.Unlock()
			}
		}
		return nil
	}}, path
}

// deadPID is the id of a process that has ended.
func deadPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.Pid()
}

// late is a try that comes long after a living holder's lock is given up on.
const late = 20

// A process that was killed as it started a program may have left its lock to that,
// for a moment: its lease is not held by anybody.
func TestALockOutlivesItsHolder(t *testing.T) {
	fsys, path := leftBy(t, deadPID(t), fsx.File.TryLock, late)
	if h, held, err := lease.Inspect(t.Context(), fsys, path); held || err != nil {
		t.Errorf("held by %+v, %v", h, err)
	}
	fsys, path = leftBy(t, deadPID(t), fsx.File.TryLock, late)
	l, err := lease.Acquire(t.Context(), fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// A lease that is being given back has no name any more, and is soon free.
func TestALeaseThatIsGivenBackIsWaitedFor(t *testing.T) {
	fsys, path := leftBy(t, 0, fsx.File.TryLock, late)
	l, err := lease.Acquire(t.Context(), fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// Whoever lives is believed to hold its lease.
func TestALivingHolderIsNotWaitedFor(t *testing.T) {
	fsys, path := leftBy(t, os.Getpid(), fsx.File.TryLock, 2)
	if h, held, err := lease.Inspect(t.Context(), fsys, path); !held || h.PID != os.Getpid() || err != nil {
		t.Errorf("held %v by %+v, %v", held, h, err)
	}
	fsys, path = leftBy(t, os.Getpid(), fsx.File.TryLock, late)
	var held *lease.HeldError
	if _, err := lease.Acquire(t.Context(), fsys, path); !errors.As(err, &held) {
		t.Errorf("error %v", err)
	}
}

// A look is no holder: not to another look, and not to who takes the lease.
func TestLooksDisturbNobody(t *testing.T) {
	fsys, path := leftBy(t, os.Getpid(), fsx.File.TryRLock, 2)
	if h, held, err := lease.Inspect(t.Context(), fsys, path); held || err != nil {
		t.Errorf("held by %+v, %v", h, err)
	}
	fsys, path = leftBy(t, os.Getpid(), fsx.File.TryRLock, 3)
	l, err := lease.Acquire(t.Context(), fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestWaitingForADeadHolderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	fsys, path := leftBy(t, deadPID(t), fsx.File.TryLock, late)
	if _, err := lease.Acquire(ctx, fsys, path); !errors.Is(err, why) {
		t.Errorf("Acquire: %v", err)
	}
	if _, _, err := lease.Inspect(ctx, fsys, path); !errors.Is(err, why) {
		t.Errorf("Look: %v", err)
	}
}

package lease_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/lease"
)

const childVariable = "CADRE_TEST_LEASE"

// TestMain holds a lease until it is killed, when the test started it for that.
func TestMain(m *testing.M) {
	dieAtCall()
	if path := os.Getenv(childVariable); path != "" {
		l, err := lease.Acquire(context.Background(), fsx.OS, path)
		if err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("held")
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test at the latest
		runtime.KeepAlive(l)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func acquire(t *testing.T, path string) *lease.Lease {
	t.Helper()
	l, err := lease.Acquire(t.Context(), fsx.OS, path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSecondHolderIsToldOfTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.lease")
	first := acquire(t, path)
	_, err := lease.Acquire(t.Context(), fsx.OS, path)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("second acquire: %v", err)
	}
	if held.Holder.PID != os.Getpid() || held.Holder.Host == "" || held.Holder.Since.IsZero() {
		t.Errorf("holder %+v", held.Holder)
	}
	looksHeld(t, path, held.Holder)
	if !strings.Contains(err.Error(), path) {
		t.Errorf("error %v names no path", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	looksFree(t, path)
	if err := acquire(t, path).Release(); err != nil {
		t.Fatal(err)
	}
}

func looksHeld(t *testing.T, path string, by lease.Holder) {
	t.Helper()
	if h, ok, err := lease.Inspect(t.Context(), fsx.OS, path); err != nil || !ok || h != by {
		t.Errorf("looks held by %+v: %v, %v; want %+v", h, ok, err, by)
	}
}

func looksFree(t *testing.T, path string) {
	t.Helper()
	if h, ok, err := lease.Inspect(t.Context(), fsx.OS, path); err != nil || ok || h != (lease.Holder{}) {
		t.Errorf("looks held by %+v: %v, %v; want nobody", h, ok, err)
	}
}

func TestLookLeavesEverythingAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "main.lease")
	looksFree(t, path)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	looksFree(t, path)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a look made the file: %v", err)
	}
	dead := `{"pid":1,"host":"h","since":"2026-11-21T03:18:57.981Z"}`
	if err := os.WriteFile(path, []byte(dead), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		looksFree(t, path) // its holder was killed
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != dead {
		t.Errorf("after a look: %q, %v", data, err)
	}
	if err := acquire(t, path).Release(); err != nil {
		t.Error(err)
	}
}

func TestLookFailsWithItsCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.lease")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		faulty := &fsx.Faulty{FS: fsx.OS, Decide: fsx.FailNth(n, fsx.Fault{Err: syscall.EIO})}
		_, ok, err := lease.Inspect(t.Context(), faulty, path)
		if ok {
			t.Errorf("call %d: a free lease looks held", n)
		}
		if faulty.Calls() < n {
			return
		}
		if err != nil && (!errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path)) {
			t.Errorf("call %d: %v", n, err)
		}
		if err := acquire(t, path).Release(); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingFolder(t *testing.T) {
	_, err := lease.Acquire(t.Context(), fsx.OS, filepath.Join(t.TempDir(), "missing", "lease"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestFaultsLeaveNoLease(t *testing.T) {
	for n := 1; ; n++ {
		path := filepath.Join(t.TempDir(), "main.lease")
		faulty := &fsx.Faulty{FS: fsx.OS, Decide: fsx.FailNth(n, fsx.Fault{Err: syscall.EIO})}
		l, err := lease.Acquire(t.Context(), faulty, path)
		if err == nil {
			err = l.Release()
		}
		if faulty.Calls() < n && err == nil {
			return // every call has failed once
		}
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("call %d: %v", n, err)
		}
		if err := acquire(t, path).Release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWithoutFileLocks(t *testing.T) {
	plain := &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op == "trylock" || c.Op == "unlock" {
			return &fsx.Fault{Err: errors.ErrUnsupported}
		}
		return nil
	}}
	path := filepath.Join(t.TempDir(), "main.lease")
	l, err := lease.Acquire(t.Context(), plain, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := lease.Inspect(t.Context(), plain, path); err != nil || !ok {
		t.Errorf("looks held: %v, %v", ok, err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestLeaseDiesWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.lease")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if _, err := out.Read(buf); err != nil || string(buf) != "held" {
		t.Fatalf("child said %q, %v", buf, err)
	}
	_, err = lease.Acquire(t.Context(), fsx.OS, path)
	var held *lease.HeldError
	if !errors.As(err, &held) || held.Holder.PID != child.Process.Pid {
		t.Errorf("while the child lives: %v", err)
	} else {
		looksHeld(t, path, held.Holder)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	looksFree(t, path)
	if err := acquire(t, path).Release(); err != nil {
		t.Error(err)
	}
}

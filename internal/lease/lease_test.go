package lease_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/lease"
)

const childVariable = "CADRE_TEST_LEASE"

// TestMain holds a lease until it is killed, when the test started it for that.
func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		if _, err := lease.Acquire(fsx.OS, path); err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("held")
		_ = os.Stdout.Close()
		select {}
	}
	os.Exit(m.Run())
}

func acquire(t *testing.T, path string) *lease.Lease {
	t.Helper()
	l, err := lease.Acquire(fsx.OS, path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSecondHolderIsToldOfTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.lease")
	first := acquire(t, path)
	_, err := lease.Acquire(fsx.OS, path)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("second acquire: %v", err)
	}
	if held.Holder.PID != os.Getpid() || held.Holder.Host == "" || held.Holder.Since.IsZero() {
		t.Errorf("holder %+v", held.Holder)
	}
	if !strings.Contains(err.Error(), path) {
		t.Errorf("error %v names no path", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if err := acquire(t, path).Release(); err != nil {
		t.Fatal(err)
	}
}

func TestMissingFolder(t *testing.T) {
	_, err := lease.Acquire(fsx.OS, filepath.Join(t.TempDir(), "missing", "lease"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestFaultsLeaveNoLease(t *testing.T) {
	for n := 1; ; n++ {
		path := filepath.Join(t.TempDir(), "main.lease")
		faulty := &fsx.Faulty{FS: fsx.OS, Decide: fsx.FailNth(n, fsx.Fault{Err: syscall.EIO})}
		l, err := lease.Acquire(faulty, path)
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
	l, err := lease.Acquire(plain, filepath.Join(t.TempDir(), "main.lease"))
	if err != nil {
		t.Fatal(err)
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
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if _, err := out.Read(buf); err != nil || string(buf) != "held" {
		t.Fatalf("child said %q, %v", buf, err)
	}
	_, err = lease.Acquire(fsx.OS, path)
	var held *lease.HeldError
	if !errors.As(err, &held) || held.Holder.PID != child.Process.Pid {
		t.Errorf("while the child lives: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	if err := acquire(t, path).Release(); err != nil {
		t.Error(err)
	}
}

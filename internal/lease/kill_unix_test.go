//go:build unix

package lease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/lease"
)

// killVariable makes the test binary a process that takes and gives back a lease
// twice and is killed at a call of the file layer: "path n half".
const killVariable = "CADRE_TEST_LEASE_KILL"

func dieAtCall() {
	fields := strings.Fields(os.Getenv(killVariable))
	if len(fields) == 0 {
		return
	}
	n, err := strconv.Atoi(fields[1])
	faulty := &fsx.Faulty{FS: fsx.OS}
	faulty.Decide = fsx.FailNth(n, fsx.Fault{Short: fields[2] == "half", Then: func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}})
	for range 2 {
		var l *lease.Lease
		if err == nil {
			l, err = lease.Acquire(context.Background(), faulty, fields[0])
		}
		if err == nil {
			err = l.Release()
		}
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Whoever is killed while it takes, has or gives back a lease leaves it free.
func TestKilledAtEveryCall(t *testing.T) {
	for _, half := range []string{"before", "half"} {
		for n, killed := 1, true; killed; n++ {
			path := filepath.Join(t.TempDir(), "main.lease")
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s", killVariable, path, n, half))
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			killed = errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
			if err != nil && !killed {
				t.Fatalf("call %d: %v: %s", n, err, out)
			}
			if killed && n > 100 {
				t.Fatal("taking and giving back a lease twice never ends")
			}
			looksFree(t, path)
			if err := acquire(t, path).Release(); err != nil {
				t.Errorf("call %d: %v", n, err)
			}
		}
	}
}

//go:build unix

package fsx_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cadre-dev/cadre/internal/fsx"
)

func TestPipeIsRefusedNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	if _, _, err := fsx.ReadFile(fsx.OS, path, 100); !errors.Is(err, fsx.ErrNotRegular) {
		t.Errorf("read of a pipe: %v", err)
	}
}

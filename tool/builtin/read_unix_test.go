//go:build unix

package builtin

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestReadRefusesWhatHasNoEnd(t *testing.T) {
	d := newDesk(t)
	d.refused("Read", args{"file_path": "/dev/zero"}, "device")
	if err := syscall.Mkfifo(d.path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.refused("Read", args{"file_path": "pipe"}, "pipe")
	d.refused("Grep", args{"pattern": "x", "path": "pipe"}, "pipe")
	d.refused("Write", args{"file_path": "pipe", "content": "x"}, "pipe")
	if got := d.ok("Glob", args{"pattern": "*"}); got != d.path("pipe") {
		t.Errorf("got %q", got)
	}
	if found, err := searchByWalking(t.Context(), query{pattern: "x", dir: d.dir}); err != nil || len(found.files) != 0 {
		t.Errorf("%+v %v", found, err)
	}
}

func TestReadFileOfUnknownSize(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no such files here")
	}
	d := newDesk(t)
	if got := d.ok("Read", args{"file_path": "/proc/self/status", "limit": 1}); !strings.Contains(got, "Name:") {
		t.Errorf("got %q", got)
	}
}

package fsx_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/fsx"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, text := range []string{"first", "second, longer", ""} {
		info, err := fsx.WriteAtomic(fsx.OS, path, []byte(text), fsx.WriteOptions{Sync: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != text {
			t.Errorf("content %q, want %q", got, text)
		}
		key, err := fsx.KeyAt(fsx.OS, path)
		if err != nil || key != fsx.KeyOf(info) {
			t.Errorf("the key returned is not that of the file (%v)", err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("mode %v", mode)
		}
	}
	if diff := cmp.Diff([]string{"a.json"}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestWriteAtomicFailsWhole(t *testing.T) {
	faults := map[string]fsx.Fault{
		"EIO":         {Err: syscall.EIO},
		"ENOSPC":      {Err: syscall.ENOSPC},
		"EACCES":      {Err: syscall.EACCES},
		"short write": {Err: syscall.ENOSPC, Short: true},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := t.TempDir()
				path := filepath.Join(dir, "a.json")
				if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
				faulty := &fsx.Faulty{FS: fsx.OS, Decide: fsx.FailNth(n, fault)}
				_, err := fsx.WriteAtomic(faulty, path, []byte("new content"), fsx.WriteOptions{})
				if faulty.Calls() < n {
					if n < 5 {
						t.Fatalf("only %d calls", n-1)
					}
					return // every call has failed once
				}
				if !errors.Is(err, fault.Err) {
					t.Fatalf("call %d: error %v", n, err)
				}
				if !strings.Contains(err.Error(), dir) {
					t.Errorf("call %d: error %v names no path", n, err)
				}
				if got := content(t, path); got != "old" {
					t.Errorf("call %d: content %q", n, got)
				}
				if diff := cmp.Diff([]string{"a.json"}, names(t, dir)); diff != "" {
					t.Errorf("call %d: %s", n, diff)
				}
			}
		})
	}
}

func TestWriteAtomicAsksLast(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	refused := errors.New("refused")
	_, err := fsx.WriteAtomic(fsx.OS, path, []byte("x"), fsx.WriteOptions{Ready: func() error { return refused }})
	if !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestSymlinksAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"link": target, "dangling": filepath.Join(dir, "missing")}
	for name, to := range links {
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
		if _, err := fsx.WriteAtomic(fsx.OS, path, []byte("x"), fsx.WriteOptions{}); !errors.Is(err, fsx.ErrNotRegular) {
			t.Errorf("write through %s: %v", name, err)
		}
		if _, _, err := fsx.ReadFile(fsx.OS, path, 100); !errors.Is(err, fsx.ErrNotRegular) {
			t.Errorf("read through %s: %v", name, err)
		}
		if _, err := fsx.OS.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); !errors.Is(err, fsx.ErrNotRegular) {
			t.Errorf("open %s: %v", name, err)
		}
	}
	if got := content(t, target); got != "precious" {
		t.Errorf("target is %q", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the dangling link made a file (%v)", err)
	}
	if _, _, err := fsx.ReadFile(fsx.OS, dir, 100); err == nil {
		t.Error("a folder was read as a file")
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, info, err := fsx.ReadFile(fsx.OS, path, 10)
	if err != nil || string(data) != "0123456789" || info.Size() != 10 {
		t.Errorf("%q, %v", data, err)
	}
	if _, _, err := fsx.ReadFile(fsx.OS, path, 9); !errors.Is(err, fsx.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	if _, _, err := fsx.ReadFile(fsx.OS, path+"x", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	// Another program cuts the file between our look at it and our reading.
	cut := &fsx.Faulty{FS: fsx.OS}
	cut.Decide = func(c fsx.Call) *fsx.Fault {
		if c.Op == "read" {
			if err := os.Truncate(path, 4); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	if _, _, err := fsx.ReadFile(cut, path, 10); !errors.Is(err, fsx.ErrChanging) {
		t.Errorf("cut while it was read: %v", err)
	}
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := fsx.MkdirAll(fsx.OS, deep, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(deep, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := fsx.MkdirOwn(fsx.OS, link, 0o700); !errors.Is(err, fsx.ErrNotFolder) {
		t.Errorf("a link counts as our folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(deep, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := fsx.RemoveAll(fsx.OS, filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"precious"}, names(t, outside)); diff != "" {
		t.Errorf("a link was followed: %s", diff)
	}
	if diff := cmp.Diff([]string{}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestSweepTempsLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".a.json.x1.tmp", ".b.json.x1.tmp", "a.json", ".a.json.damaged-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := fsx.SweepTemps(fsx.OS, dir, "a.json"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".a.json.damaged-1", ".b.json.x1.tmp", "a.json"}, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() fsx.File { return openLock(t, path) }
	lock := func(f fsx.File, want bool) {
		t.Helper()
		tried(t, f.TryLock, want)
	}
	first, second := open(), open()
	lock(first, true)
	lock(second, false)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	lock(second, true)
	if current, err := fsx.StillAt(fsx.OS, second, path); err != nil || !current {
		t.Errorf("still there: %v, %v", current, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	third := open()
	if current, err := fsx.StillAt(fsx.OS, second, path); err != nil || current {
		t.Errorf("still there after it was replaced: %v, %v", current, err)
	}
	for _, f := range []fsx.File{second, third} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRenameNew(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, path := range []string{from, to} {
		if err := os.Mkdir(path, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	err := fsx.OS.RenameNew(from, to)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("not supported here")
	}
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an existing folder: %v", err)
	}
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	if err := fsx.OS.RenameNew(from, to); err != nil {
		t.Error(err)
	}
	if err := fsx.OS.RenameNew(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a missing folder: %v", err)
	}
}

// coarse is a file system whose clock goes in steps of a second.
type coarse struct{ fsx.FS }

type coarseFile struct{ fsx.File }

func (c coarse) OpenFile(path string, flag int, mode fs.FileMode) (fsx.File, error) {
	f, err := c.FS.OpenFile(path, flag, mode)
	return coarseFile{f}, err
}

func (f coarseFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	now := time.Now().Truncate(time.Second)
	return n, errors.Join(err, os.Chtimes(f.Name(), now, now))
}

// Else two versions of one moment could look the same: the system gives the number
// of a deleted file to a new one.
func TestVersionsHaveTheTimeOfTheClock(t *testing.T) {
	before := time.Now()
	info, err := fsx.WriteAtomic(coarse{fsx.OS}, filepath.Join(t.TempDir(), "f"), []byte("x"), fsx.WriteOptions{})
	if err != nil || info.ModTime().Before(before) {
		t.Errorf("written after %s, dated %s, %v", before, info.ModTime(), err)
	}
}

func TestRemoveAllTakesWhatComesMeanwhile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gone")
	if err := os.MkdirAll(filepath.Join(folder, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	late := 3
	faulty := &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op == "remove" && c.Path == filepath.Join(folder, "sub") && late > 0 {
			late--
			if err := os.WriteFile(filepath.Join(c.Path, "late"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
		return nil
	}}
	if err := fsx.RemoveAll(faulty, folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stands: %v", err)
	}
}

func openLock(t *testing.T, path string) fsx.File {
	t.Helper()
	f, err := fsx.OS.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// tried checks whether a lock can be had.
func tried(t *testing.T, lock func() (bool, error), want bool) {
	t.Helper()
	held, err := lock()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no file locks here")
	}
	if err != nil || held != want {
		t.Errorf("held %v, %v; want %v", held, err, want)
	}
}

// Those who share a lock keep away only who wants it alone.
func TestTryRLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, second, alone := openLock(t, path), openLock(t, path), openLock(t, path)
	tried(t, first.TryRLock, true)
	tried(t, second.TryRLock, true)
	tried(t, alone.TryLock, false)
	for _, f := range []fsx.File{first, second} {
		if err := f.Unlock(); err != nil {
			t.Error(err)
		}
	}
	tried(t, alone.TryLock, true)
	tried(t, first.TryRLock, false)
	for _, f := range []fsx.File{first, second, alone} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

package symlink

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFollow(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"link": "dir", "absolute": filepath.Join(root, "dir"), "chain": "link/new", "dir/up": "../dir",
		"dangling": "nowhere/at/all", "circle": "circle",
	} {
		if err := os.Symlink(filepath.FromSlash(target), filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Skip(err)
		}
	}
	at := func(path string) string { return root + string(filepath.Separator) + filepath.FromSlash(path) }
	for path, want := range map[string]string{
		"dir/file":          "dir/file",
		"link/file":         "dir/file",
		"absolute/file":     "dir/file",
		"chain/file":        "dir/new/file",
		"link/../dir/file":  "dir/file",
		"link/up/up/file":   "dir/file",
		"dangling":          "nowhere/at/all",
		"dangling/x":        "nowhere/at/all/x",
		"dangling/../x":     "nowhere/at/x",
		"new/deep/file":     "new/deep/file",
		"new/../dir/file":   "dir/file",
		"./dir//file/":      "dir/file",
		"circle":            "circle",
		"dir/up/dir/../a b": "dir/a b",
	} {
		if got := Follow(at(path)); got != at(want) {
			t.Errorf("%s leads to %s, want %s", path, got, at(want))
		}
	}
	top := filepath.VolumeName(root) + string(filepath.Separator)
	if got := Follow(top + filepath.Join("..", "..")); got != top {
		t.Errorf("above the root lies %s", got)
	}
	for _, path := range []string{"", "link", "./link"} {
		if got := Follow(path); got != path {
			t.Errorf("Follow(%q) = %q", path, got)
		}
	}
}

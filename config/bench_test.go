package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cadre-dev/cadre/internal/layout"
)

// BenchmarkLoad is what every start pays: two user files and a project's.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	o := Options{Root: layout.Root(filepath.Join(dir, "root")), Home: dir, Project: filepath.Join(dir, "repo")}
	for _, path := range []string{"root/settings.json", ".claude/settings.json", "repo/.claude/settings.json"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(planted), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		Load(o)
	}
}

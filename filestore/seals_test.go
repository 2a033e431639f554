package filestore_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
)

// copyFile puts the content of a file at another place.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	check(t, err)
	write(t, to, string(data))
}

// A seal counts where it was made: not in another inbox or team, and not under
// another key.
func TestForgedSeals(t *testing.T) {
	root, s := quiet(t)
	check(t, sealNumber(1)(t.Context(), s))
	sealedWith(t, s, 1, true)
	for _, at := range []mailbox.Address{{Team: "t", Agent: "w2"}, {Team: "t2", Agent: "w1"}} {
		copyFile(t, root.Seals("t", "w1"), root.Seals(at.Team, at.Agent))
		if ok, err := s.Seals().Sealed(t.Context(), at, numbered(1), "about"); err != nil || ok {
			t.Errorf("a copied seal counts for %s: %v", at, err)
		}
	}
	if ok, err := s.Seals().Sealed(t.Context(), faultBox, numbered(1), "about another digest"); err != nil || ok {
		t.Errorf("sealed about something else: %v", err)
	}
	otherRoot, other := quiet(t)
	check(t, sealNumber(2)(t.Context(), other))
	copyFile(t, otherRoot.Seals("t", "w1"), root.Seals("t", "w1"))
	sealedWith(t, s, 2, false)
	sealedWith(t, s, 1, false) // it was written over
}

// Whatever a kill left of a line, the seals around it count.
func TestTornSeals(t *testing.T) {
	root, s := quiet(t)
	path := root.Seals("t", "w1")
	check(t, sealNumber(1)(t.Context(), s))
	one, err := os.ReadFile(path)
	check(t, err)
	check(t, sealNumber(2)(t.Context(), s))
	both, err := os.ReadFile(path)
	check(t, err)
	for cut := len(one); cut < len(both); cut++ {
		for _, warm := range []bool{true, false} {
			write(t, path, string(both[:cut]))
			reader := open(t, root)
			if warm {
				sealedWith(t, reader, 1, true)
			}
			check(t, sealNumber(3)(t.Context(), s))
			sealedWith(t, reader, 1, true)
			sealedWith(t, reader, 2, cut >= len(both)-1) // all but the newline
			sealedWith(t, reader, 3, true)
		}
	}
	write(t, path, "\x00\xff\n"+strings.Repeat("x", 5000)+string(one)+strings.ToUpper(string(both[len(one):])))
	sealedWith(t, open(t, root), 1, true)
	sealedWith(t, open(t, root), 2, false)
}

// readMeter counts what is read of files.
type readMeter struct {
	fsx.FS
	mu           sync.Mutex
	calls, bytes int
}

type readFile struct {
	fsx.File
	meter *readMeter
}

func (m *readMeter) OpenFile(path string, flag int, mode fs.FileMode) (fsx.File, error) {
	f, err := m.FS.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return readFile{f, m}, nil
}

func (f readFile) ReadAt(p []byte, at int64) (int, error) {
	f.meter.mu.Lock()
	f.meter.calls++
	f.meter.bytes += len(p)
	f.meter.mu.Unlock()
	return f.File.ReadAt(p, at)
}

// What a seal costs does not depend on how many there are.
func TestSealsCostTheSame(t *testing.T) {
	for _, old := range []int{10, 100_000} {
		root, plain := quiet(t)
		check(t, plantKey(t.Context(), plain))
		write(t, root.Seals("t", "w1"), randomLines(old))
		m := &readMeter{FS: fsx.OS}
		s := open(t, root, filestore.WithFS(m))
		check(t, sealNumber(0)(t.Context(), s))
		sealedWith(t, s, 0, true)
		m.calls, m.bytes = 0, 0
		const seals = 20
		for n := 1; n <= seals; n++ {
			check(t, sealNumber(n)(t.Context(), plain))
			sealedWith(t, s, n, true)
			sealedWith(t, s, n+1, false)
		}
		if m.calls > seals || m.bytes > seals*(1<<10+100) {
			t.Errorf("%d seals among %d: %d reads of %d bytes", seals, old, m.calls, m.bytes)
		}
	}
}

func randomLines(n int) string {
	var text strings.Builder
	line := make([]byte, 32)
	for range n {
		_, _ = rand.Read(line)
		text.WriteString("\n" + hex.EncodeToString(line) + "\n")
	}
	return text.String()
}

// The file of a team that was made anew may be the very same for the system, and
// longer than the old one was.
func TestSealsOfAnotherFileWithTheSameNumber(t *testing.T) {
	root, s := quiet(t)
	path := root.Seals("t", "w1")
	for _, n := range []int{1, 2} {
		check(t, sealNumber(n)(t.Context(), s))
	}
	old, err := os.ReadFile(path)
	check(t, err)
	for n := range 60 {
		check(t, sealNumber(n+10)(t.Context(), s))
	}
	all, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, old, 0o600)) // in place
	reader := open(t, root)
	sealedWith(t, reader, 1, true)
	sealedWith(t, reader, 10, false)
	check(t, os.WriteFile(path, bytes.TrimPrefix(all, old), 0o600))
	sealedWith(t, reader, 1, false)
	for n := range 60 {
		sealedWith(t, reader, n+10, true)
	}
}

// Many that look at once while the file grows see every seal that was made
// before they looked.
func TestManyLookForSeals(t *testing.T) {
	root := layout.Root(t.TempDir())
	s, reader := open(t, root), open(t, root)
	var wg sync.WaitGroup
	for w := range 8 {
		at := mailbox.Address{Team: "t", Agent: fmt.Sprint("w", w%2)}
		wg.Go(func() {
			for i := range 25 {
				m := numbered(100*w + i)
				if err := s.Seals().Seal(t.Context(), at, m, ""); err != nil {
					t.Error(err)
				}
				if ok, err := reader.Seals().Sealed(t.Context(), at, m, ""); err != nil || !ok {
					t.Errorf("message %s at %s is sealed: %v, %v", m.Text, at, ok, err)
				}
			}
		})
	}
	wg.Wait()
	for _, agent := range []string{"w0", "w1"} {
		data, err := os.ReadFile(root.Seals("t", agent))
		check(t, err)
		if lines := strings.Fields(string(data)); len(lines) != 100 || len(data) != 100*66 {
			t.Errorf("%s: %d lines in %d bytes", filepath.Base(root.Seals("t", agent)), len(lines), len(data))
		}
	}
}

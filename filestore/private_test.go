package filestore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// everythingOfOurs does all that makes a file which is ours alone.
func everythingOfOurs(t *testing.T, s *filestore.Store) map[string]error {
	t.Helper()
	_, enterErr := s.Presence().Enter(t.Context(), faultBox)
	return map[string]error{
		"seal":   sealNumber(1)(t.Context(), s),
		"put":    putRecord("w1", `1`)(t.Context(), s),
		"enter":  enterErr,
		"lay":    layAsk("q1")(t.Context(), s),
		"answer": s.Desk().Leave(t.Context(), "q0", ask.Answer{Allow: true}),
	}
}

func TestModesOfOurs(t *testing.T) {
	root, s := quiet(t)
	check(t, makeTeam(t.Context(), s))
	check(t, layAsk("q0")(t.Context(), s))
	for what, err := range everythingOfOurs(t, s) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	count := 0
	check(t, filepath.WalkDir(string(root), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == string(root) || strings.HasSuffix(path, ".spare") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		count++
		want := layout.FileMode
		if d.IsDir() {
			want = layout.DirMode
		}
		if os.PathSeparator == '/' && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}))
	if count < 15 {
		t.Errorf("only %d files and folders", count)
	}
}

// Nothing is written through a link that somebody planted, be it a file or a
// folder.
func TestPlantedPathsOfOurs(t *testing.T) {
	paths := map[string]func(layout.Root) string{
		"seals folder":    func(r layout.Root) string { return r.TeamSide("t", "seals") },
		"seals":           func(r layout.Root) string { return r.Seals("t", "w1") },
		"record folder":   func(r layout.Root) string { return r.TeamSide("t", roster.RecordAgent) },
		"record":          func(r layout.Root) string { return r.Record("t", roster.RecordAgent, "w1") },
		"presence folder": func(r layout.Root) string { return r.TeamSide("t", "present") },
		"presence":        func(r layout.Root) string { return r.Presence("t", "w1") },
		"team's side":     func(r layout.Root) string { return filepath.Dir(r.TeamSide("t", "x")) },
		"own folder":      func(r layout.Root) string { return r.OwnDir() },
		"key":             func(r layout.Root) string { return r.Key() },
		"desk":            func(r layout.Root) string { return r.AsksDir() },
		"question":        func(r layout.Root) string { return r.OpenAsk("q1") },
		"answer":          func(r layout.Root) string { return r.AskAnswer("q0") },
	}
	refusals := map[string][]string{
		"seals folder": {"seal"}, "seals": {"seal"}, "record folder": {"put"}, "record": nil, "presence folder": {"enter"},
		"presence": {"enter"}, "team's side": {"enter", "put", "seal"}, "own folder": {"answer", "lay", "seal"},
		"key": {"answer", "lay", "seal"}, "desk": {"answer", "lay"}, "question": nil, "answer": nil, // these are set aside
	}
	for what, path := range paths {
		t.Run(what, func(t *testing.T) {
			root, s, _ := warned(t)
			check(t, makeTeam(t.Context(), s))
			if what != "own folder" && what != "key" && what != "desk" {
				check(t, layAsk("q0")(t.Context(), s))
			}
			outside := t.TempDir()
			check(t, os.MkdirAll(filepath.Dir(path(root)), 0o700))
			if err := os.Symlink(outside, path(root)); err != nil {
				t.Skipf("no symbolic links here: %v", err)
			}
			var refused []string
			for act, err := range everythingOfOurs(t, s) {
				if err == nil {
					continue
				}
				refused = append(refused, act)
				if !errors.Is(err, fsx.ErrNotRegular) && !errors.Is(err, fsx.ErrNotFolder) && !errors.Is(err, ask.ErrUnknown) {
					t.Errorf("%s: %v", act, err)
				}
			}
			slices.Sort(refused)
			if diff := cmp.Diff(refusals[what], refused); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("written outside: %v, %v", entries, err)
			}
		})
	}
}

// A key that is not whole is refused, never replaced, and nothing of it is told.
func TestDamagedKey(t *testing.T) {
	for what, key := range map[string]string{
		"empty": "", "torn": plainKey[:40], "too long": plainKey + "ab", "far too long": strings.Repeat(plainKey, 100),
		"no digits": strings.Repeat("quietkey", 8), "with a newline": plainKey[:63] + "\n",
	} {
		root, s := quiet(t)
		check(t, sealNumber(1)(t.Context(), s))
		check(t, layAsk("q1")(t.Context(), s))
		write(t, root.Key(), key)
		_, sealedErr := isSealed(t.Context(), s, 1)
		_, openErr := s.Desk().Open(t.Context())
		_, _, leftErr := s.Desk().Left(t.Context(), deskAsk("q1"))
		for act, err := range map[string]error{
			"seal": sealNumber(2)(t.Context(), s), "sealed": sealedErr, "lay": layAsk("q2")(t.Context(), s),
			"open": openErr, "left": leftErr, "leave": leaveFor("q1")(t.Context(), s),
		} {
			if err == nil {
				t.Errorf("%s key: %s works", what, act)
				continue
			}
			if !strings.Contains(err.Error(), root.Key()) || !strings.Contains(err.Error(), "not a valid key") {
				t.Errorf("%s key: %s: %v", what, act, err)
			}
			told := strings.ReplaceAll(err.Error(), root.Key(), "")
			for i := 0; i+4 < len(key); i++ {
				if strings.Contains(told, key[i:i+4]) {
					t.Errorf("%s key: the error of %s quotes %q from it: %v", what, act, key[i:i+4], err)
				}
			}
		}
		same(t, root.Key(), key)
	}
}

// A process goes by the key that is there, not by the one it knew.
func TestKeyIsTakenAway(t *testing.T) {
	root, s, _ := warned(t)
	check(t, sealNumber(1)(t.Context(), s))
	first, err := os.ReadFile(root.Key())
	check(t, err)
	check(t, os.Remove(root.Key()))
	sealedWith(t, s, 1, false)
	check(t, sealNumber(2)(t.Context(), s))
	sealedWith(t, s, 1, false)
	sealedWith(t, s, 2, true)
	check(t, os.Remove(root.Key()))
	write(t, root.Key(), string(first))
	sealedWith(t, s, 1, true)
	sealedWith(t, s, 2, false)
}

func sealedWith(t *testing.T, s *filestore.Store, n int, want bool) {
	t.Helper()
	got, err := isSealed(t.Context(), s, n)
	check(t, err)
	if got != want {
		t.Errorf("message %d is sealed: %v, want %v", n, got, want)
	}
}

func TestReadingMakesNothing(t *testing.T) {
	root, s := quiet(t)
	sealedWith(t, s, 1, false)
	if asks, err := s.Desk().Open(t.Context()); err != nil || len(asks) > 0 {
		t.Errorf("open questions %v, %v", asks, err)
	}
	_, _, err := s.Desk().Left(t.Context(), deskAsk("q1"))
	check(t, err)
	check(t, s.Desk().Clear(t.Context(), "q1"))
	if err := s.Desk().Leave(t.Context(), "q1", ask.Answer{}); !errors.Is(err, ask.ErrUnknown) {
		t.Errorf("answer to nothing: %v", err)
	}
	_, _, err = s.Presence().Find(t.Context(), faultBox)
	check(t, err)
	_, err = s.Records().All(t.Context(), "t", roster.RecordAgent)
	check(t, err)
	check(t, s.Records().Drop(t.Context(), "t", roster.RecordAgent, "w1"))
	if entries, err := os.ReadDir(string(root)); err != nil || len(entries) > 0 {
		t.Errorf("made %v, %v", entries, err)
	}
}

// With the setting, what is acknowledged was brought to the disk, with the name
// that leads to it.
func TestSyncOfOurs(t *testing.T) {
	acts := map[string]struct {
		act  func(*testing.T, *filestore.Store) error
		path func(layout.Root) string
		ops  []string
	}{
		"seal": {func(t *testing.T, s *filestore.Store) error { return sealNumber(1)(t.Context(), s) },
			func(r layout.Root) string { return r.Seals("t", "w1") }, []string{"sync", "syncdir"}},
		"put": {func(t *testing.T, s *filestore.Store) error { return putRecord("w1", `1`)(t.Context(), s) },
			func(r layout.Root) string { return r.Record("t", roster.RecordAgent, "w1") }, []string{"sync", "syncdir"}},
		"drop": {func(t *testing.T, s *filestore.Store) error {
			return s.Records().Drop(t.Context(), "t", roster.RecordAgent, "w0")
		}, func(r layout.Root) string { return r.Record("t", roster.RecordAgent, "w0") }, []string{"syncdir"}},
		"lay": {func(t *testing.T, s *filestore.Store) error { return layAsk("q1")(t.Context(), s) },
			func(r layout.Root) string { return r.OpenAsk("q1") }, []string{"sync", "syncdir"}},
		"leave": {func(t *testing.T, s *filestore.Store) error { return leaveFor("q0")(t.Context(), s) },
			func(r layout.Root) string { return r.AskAnswer("q0") }, []string{"sync", "syncdir"}},
		"clear": {func(t *testing.T, s *filestore.Store) error { return clearAsk("q0")(t.Context(), s) },
			func(r layout.Root) string { return r.OpenAsk("q0") }, []string{"syncdir"}},
	}
	for what, a := range acts {
		for _, sync := range []bool{false, true} {
			root, plain := quiet(t)
			check(t, inOrder(plantKey, makeTeam, putRecord("w0", `0`), layAsk("q0"))(t.Context(), plain))
			check(t, os.MkdirAll(root.TeamSide("t", "seals"), 0o700))
			log := &syncLog{folder: filepath.Dir(a.path(root))}
			s := open(t, root, filestore.WithSync(sync), filestore.WithFS(&fsx.Faulty{FS: patient{fsx.OS}, Decide: log.note}))
			check(t, a.act(t, s))
			var want []string
			if sync {
				want = a.ops
			}
			if diff := cmp.Diff(want, log.ops); diff != "" {
				t.Errorf("%s, sync=%v (-want +got):\n%s", what, sync, diff)
			}
		}
	}
}

// syncLog notes what is brought to the disk in a folder.
type syncLog struct {
	folder string
	mu     sync.Mutex
	ops    []string
}

func (l *syncLog) note(c fsx.Call) *fsx.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Op == "sync" && filepath.Dir(c.Path) == l.folder || c.Op == "syncdir" && c.Path == l.folder {
		l.ops = append(l.ops, c.Op)
	}
	return nil
}

// A record that is torn, or no record, is left out and warned of.
func TestTornRecords(t *testing.T) {
	root, s, w := warned(t)
	check(t, inOrder(makeTeam, putRecord("w1", `1`), putRecord("w2", `{"name":"w2"}`))(t.Context(), s))
	write(t, root.Record("t", roster.RecordAgent, "w2"), `{"name":`)
	write(t, root.Record("t", roster.RecordAgent, "w3"), "")
	write(t, filepath.Join(root.TeamSide("t", roster.RecordAgent), ".hidden.json"), "1")
	write(t, filepath.Join(root.TeamSide("t", roster.RecordAgent), "notes.txt"), "1")
	docs, err := s.Records().All(t.Context(), "t", roster.RecordAgent)
	check(t, err)
	if len(docs) != 1 || string(docs[0]) != `1` {
		t.Errorf("records %q", docs)
	}
	w.say(t, root.Record("t", roster.RecordAgent, "w2"))
	w.say(t, root.Record("t", roster.RecordAgent, "w3"))
	_, err = s.Records().Get(t.Context(), "t", roster.RecordAgent, "w2")
	torn(t, "get", err, root.Record("t", roster.RecordAgent, "w2"))
	check(t, putRecord("w2", `2`)(t.Context(), s))
	doc, err := s.Records().Get(t.Context(), "t", roster.RecordAgent, "w2")
	check(t, err)
	want(t, "mended", string(doc), `2`)
}

// What is ours goes with its team while it is written: nothing brings the folder
// back.
func TestRecordsDoNotBringATeamBack(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	for range 30 {
		check(t, makeTeam(t.Context(), s))
		var all sync.WaitGroup
		for _, act := range []func() error{
			func() error { return putRecord("w1", `1`)(t.Context(), s) },
			func() error { return s.Records().Drop(t.Context(), "t", roster.RecordAgent, "w1") },
			func() error {
				leave, err := s.Presence().Enter(t.Context(), mailbox.Address{Team: "t", Agent: "w1"})
				if err == nil {
					err = leave()
				}
				return err
			},
		} {
			all.Go(func() {
				if err := act(); err != nil && !errors.Is(err, roster.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			if err := s.Teams().Remove(t.Context(), "t"); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if _, err := os.Lstat(root.TeamDir("t")); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("the team's folder after its removal: %v", err)
		}
	}
}

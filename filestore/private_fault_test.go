package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
)

// plainKey is a key for tests that compare what is written with it.
var plainKey = strings.Repeat("0123456789abcdef", 4)

func rootOf(s *filestore.Store) layout.Root { return filestore.RootOf(s) }

func plantKey(_ context.Context, s *filestore.Store) error {
	path := rootOf(s).Key()
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(plainKey), 0o600))
}

// inOrder is the setup of several.
func inOrder(steps ...func(context.Context, *filestore.Store) error) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error {
		for _, step := range steps {
			if err := step(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

func numbered(n int) mailbox.Message {
	return post("team-lead", fmt.Sprint("message ", n), "", "2026-11-21T03:18:57.981Z", "")
}

func sealNumber(n int) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error {
		return s.Seals().Seal(ctx, faultBox, numbered(n), "about")
	}
}

func isSealed(ctx context.Context, s *filestore.Store, n int) (bool, error) {
	return s.Seals().Sealed(ctx, faultBox, numbered(n), "about")
}

func putRecord(name, doc string) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error {
		return s.Records().Put(ctx, "t", roster.RecordAgent, name, []byte(doc))
	}
}

func deskAsk(id string) ask.Ask {
	return ask.Ask{ID: id, Question: "May it?", Tool: "Bash", Digest: ask.DigestOf("Bash", []byte(id))}
}

func layAsk(id string) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error { return s.Desk().Lay(ctx, deskAsk(id)) }
}

func leaveFor(id string) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error {
		err := s.Desk().Leave(ctx, id, ask.Answer{Allow: true, By: "person"})
		if errors.Is(err, ask.ErrAnswered) {
			err = nil // by the try before
		}
		return err
	}
}

func clearAsk(id string) func(context.Context, *filestore.Store) error {
	return func(ctx context.Context, s *filestore.Store) error { return s.Desk().Clear(ctx, id) }
}

// ownOperations are those on what is ours alone. partly are those whose failure
// may come after the effect: the last call is a sync, or a close.
var ownOperations = []operation{
	{name: "seal in a new file", setup: plantKey, warm: nothing, act: sealNumber(1), partly: true},
	{name: "seal", setup: inOrder(plantKey, sealNumber(1)), warm: sealNumber(1), act: sealNumber(2), partly: true},
	{name: "put a new record", setup: makeTeam, warm: nothing, act: putRecord("w1", `1`)},
	{name: "put a record", setup: inOrder(makeTeam, putRecord("w1", `1`)), warm: nothing, act: putRecord("w1", `2`)},
	{name: "drop a record", setup: inOrder(makeTeam, putRecord("w1", `1`), putRecord("w2", `2`)), warm: nothing, partly: true,
		act: func(ctx context.Context, s *filestore.Store) error {
			return s.Records().Drop(ctx, "t", roster.RecordAgent, "w1")
		}},
	{name: "lay the first question", setup: plantKey, warm: nothing, act: layAsk("q1")},
	{name: "lay a question", setup: inOrder(plantKey, layAsk("q1")), warm: nothing, act: layAsk("q2")},
	{name: "leave an answer", setup: inOrder(plantKey, layAsk("q1")), warm: nothing, act: leaveFor("q1")},
	{name: "clear a question", setup: inOrder(plantKey, layAsk("q1"), layAsk("q2"), leaveFor("q1")), warm: nothing, act: clearAsk("q1"), partly: true},
	{name: "remove a team with all that is ours", partly: true, warm: nothing,
		setup: inOrder(makeTeam, plantKey, sealNumber(1), putRecord("w1", `1`)),
		act:   func(ctx context.Context, s *filestore.Store) error { return s.Teams().Remove(ctx, "t") }},
}

// wholeSeals is what counts of a file of seals; a retry may have sealed twice.
func wholeSeals(path string) (string, error) {
	data, err := os.ReadFile(path)
	var lines []string
	for line := range strings.Lines(string(data)) {
		if len(line) == 65 {
			lines = append(lines, line)
		}
	}
	return strings.Join(slices.Compact(lines), ""), err
}

// failEachRead runs a question to a store again and again, while call after call
// fails: a failure is told, and an answer is right.
func failEachRead(t *testing.T, setup func(context.Context, *filestore.Store) error,
	read func(context.Context, *filestore.Store) (right bool, err error)) {
	t.Helper()
	for _, fault := range faults {
		for n := 1; ; n++ {
			root := layout.Root(t.TempDir())
			check(t, setup(t.Context(), open(t, root)))
			faulty := &fsx.Faulty{FS: patient{fsx.OS}, Decide: fsx.FailNth(n, fault)}
			s := open(t, root, filestore.WithFS(faulty))
			right, err := read(t.Context(), s)
			switch {
			case err == nil && !right:
				t.Errorf("call %d: a wrong answer", n)
			case err != nil && (!errors.Is(err, fault.Err) || !strings.Contains(err.Error(), string(root))):
				t.Errorf("call %d: %v", n, err)
			}
			if faulty.Calls() < n {
				break
			}
			faulty.Decide = nil
			if right, err := read(t.Context(), s); err != nil || !right {
				t.Errorf("call %d: the second try: %v, %v", n, right, err)
			}
		}
	}
}

func TestEveryReadOfOursFailsOnce(t *testing.T) {
	t.Run("sealed", func(t *testing.T) {
		failEachRead(t, inOrder(plantKey, sealNumber(1), sealNumber(2)), func(ctx context.Context, s *filestore.Store) (bool, error) {
			return isSealed(ctx, s, 2)
		})
	})
	t.Run("record", func(t *testing.T) {
		failEachRead(t, inOrder(makeTeam, putRecord("w1", `1`)), func(ctx context.Context, s *filestore.Store) (bool, error) {
			doc, err := s.Records().Get(ctx, "t", roster.RecordAgent, "w1")
			return string(doc) == `1`, err
		})
	})
	t.Run("left", func(t *testing.T) {
		failEachRead(t, inOrder(plantKey, layAsk("q1"), leaveFor("q1")), func(ctx context.Context, s *filestore.Store) (bool, error) {
			answer, ok, err := s.Desk().Left(ctx, deskAsk("q1"))
			return ok && answer.Allow, err
		})
	})
}

// Whatever fails, nobody stays in a place without knowing it, and the place can
// be taken again.
func TestPresenceSurvivesFaults(t *testing.T) {
	for name, fault := range faults {
		for n := 1; ; n++ {
			root := layout.Root(t.TempDir())
			sound := open(t, root)
			check(t, makeTeam(t.Context(), sound))
			faulty := &fsx.Faulty{FS: patient{fsx.OS}, Decide: fsx.FailNth(n, fault)}
			s := open(t, root, filestore.WithFS(faulty), filestore.WithSync(true))
			leave, err := s.Presence().Enter(t.Context(), faultBox)
			if err == nil {
				if _, ok, findErr := sound.Presence().Find(t.Context(), faultBox); findErr != nil || !ok {
					t.Errorf("%s in call %d: entered, and not found: %v", name, n, findErr)
				}
				err = leave()
			}
			if err != nil && (!errors.Is(err, fault.Err) || !strings.Contains(err.Error(), string(root))) {
				t.Errorf("%s in call %d: %v", name, n, err)
			}
			calls := faulty.Calls()
			faulty.Decide = nil
			if _, ok, err := sound.Presence().Find(t.Context(), faultBox); err != nil || ok {
				t.Errorf("%s in call %d: somebody is there: %v", name, n, err)
			}
			leave, err = s.Presence().Enter(t.Context(), faultBox)
			check(t, err)
			check(t, leave())
			if calls < n {
				break
			}
		}
	}
}

// A key that could not be made is made by the next try, and only then.
func TestKeySurvivesFaults(t *testing.T) {
	for name, fault := range faults {
		for n := 1; ; n++ {
			root := layout.Root(t.TempDir())
			faulty := &fsx.Faulty{FS: patient{fsx.OS}, Decide: fsx.FailNth(n, fault)}
			s := open(t, root, filestore.WithFS(faulty))
			err := sealNumber(1)(t.Context(), s)
			if err != nil && (!errors.Is(err, fault.Err) || !strings.Contains(err.Error(), string(root))) {
				t.Errorf("%s in call %d: %v", name, n, err)
			}
			calls := faulty.Calls()
			faulty.Decide = nil
			first, readErr := os.ReadFile(root.Key())
			if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
				t.Error(readErr)
			}
			check(t, sealNumber(2)(t.Context(), s))
			key, readErr := os.ReadFile(root.Key())
			check(t, readErr)
			if len(key) != 64 || len(first) > 0 && !bytes.Equal(first, key) {
				t.Errorf("%s in call %d: key %q after %q", name, n, key, first)
			}
			for i := 1; i <= 2; i++ {
				if ok, sealErr := isSealed(t.Context(), open(t, root), i); sealErr != nil || !ok && (i == 2 || err == nil) {
					t.Errorf("%s in call %d: message %d is sealed: %v, %v", name, n, i, ok, sealErr)
				}
			}
			dump(t, root) // finds what was left behind
			if calls < n {
				break
			}
		}
	}
}

// A look at the place of an agent that was killed takes its lock for an instant:
// who enters at that very moment is not told that somebody is there.
func TestEnterUnderALook(t *testing.T) {
	root := layout.Root(t.TempDir())
	check(t, makeTeam(t.Context(), open(t, root)))
	path := root.Presence(faultBox.Team, faultBox.Agent)
	write(t, path, `{"pid":1,"host":"h","since":"2026-11-21T03:18:57.981Z"}`)
	look, err := fsx.OS.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	held, err := look.TryRLock()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no file locks here")
	}
	if err != nil || !held {
		t.Fatalf("lock: %v, %v", held, err)
	}
	tries := 0
	s := open(t, root, filestore.WithFS(&fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op == "trylock" && c.Path == path {
			if tries++; tries == 2 {
				check(t, look.Close())
			}
		}
		return nil
	}}))
	leave, err := s.Presence().Enter(t.Context(), faultBox)
	check(t, err)
	check(t, leave())
	if tries != 2 {
		t.Errorf("%d tries", tries)
	}
}

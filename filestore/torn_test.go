package filestore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/fsx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// warnings collects what a store warns of.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, err.Error())
}

func (w *warnings) say(t *testing.T, text string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.ContainsFunc(w.list, func(s string) bool { return strings.Contains(s, text) }) {
		t.Errorf("no warning of %q in %q", text, w.list)
	}
}

func warned(t *testing.T, options ...filestore.Option) (layout.Root, *filestore.Store, *warnings) {
	root, w := layout.Root(t.TempDir()), new(warnings)
	return root, open(t, root, append(options, filestore.WithWarn(w.add))...), w
}

func torn(t *testing.T, what string, err error, path string) {
	t.Helper()
	var torn *filestore.TornError
	if !errors.As(err, &torn) {
		t.Fatalf("%s: error %v", what, err)
	}
	if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "repair or remove it") {
		t.Errorf("%s: the error names no path or remedy: %v", what, err)
	}
}

// cuts are places to tear a text: a few, or with testWhole many.
func cuts(text string) []int {
	var at []int
	step := max(1, len(text)/6)
	if testWhole {
		step = max(1, len(text)/60)
	}
	for i := 1; i < len(text); i += step {
		at = append(at, i)
	}
	return append(at, len(text)-1)
}

func inboxText(t *testing.T) string { return fixture(t, "05-messages/w2.json") }

func TestTornInbox(t *testing.T) {
	whole := inboxText(t)
	at := mailbox.Address{Team: "alpha-team", Agent: "w2"}
	for _, cut := range cuts(whole) {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			root, s, w := warned(t)
			path := root.Inbox(at.Team, at.Agent)
			write(t, path, whole[:cut])
			if err := s.Mail().MarkRead(t.Context(), at, []mailbox.ID{"x"}); err == nil {
				t.Error("a torn inbox was marked")
			}
			same(t, path, whole[:cut])
			check(t, s.Mail().Post(t.Context(), at, post("w9", "new", "", "2026-11-21T03:18:26.309Z", "")))
			unread, err := s.Mail().Unread(t.Context(), at)
			check(t, err)
			// Every message that stood there whole is still there.
			if want := strings.Count(whole[:cut], "\n  }"); len(unread) != want+1 || unread[want].Text != "new" {
				t.Errorf("%d messages, want %d and the new one", len(unread), want)
			}
			w.say(t, "was kept as")
			aside := setAside(t, root, path)
			if len(aside) != 1 {
				t.Fatalf("kept aside: %q", aside)
			}
			same(t, aside[0], whole[:cut])
		})
	}
}

func TestDamagedInboxes(t *testing.T) {
	at := mailbox.Address{Team: "t", Agent: "w1"}
	deep := "[" + strings.Repeat(`{"a":[`, 50_000)
	for name, text := range map[string]string{
		"trailing garbage": `[{"from":"a","text":"x","timestamp":"t"}] trailing`,
		"no array":         `{"from":"a"}`,
		"NaN":              `[{"from":"a","text":NaN}]`,
		"deep":             deep,
		"binary":           "\x00\x01\x02",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, s, _ := warned(t)
			path := root.Inbox("t", "w1")
			write(t, path, text)
			check(t, s.Mail().Post(t.Context(), at, post("w9", "new", "", "2026-11-21T03:18:26.309Z", "")))
			all, err := s.Mail().All(t.Context(), at)
			check(t, err)
			if kept := strings.Count(text, `"timestamp"`); len(all) != kept+1 || all[kept].Text != "new" {
				t.Errorf("messages %v", all)
			}
		})
	}
	t.Run("empty", func(t *testing.T) {
		root, s, _ := warned(t)
		write(t, root.Inbox("t", "w1"), "")
		unread, err := s.Mail().Unread(t.Context(), at)
		if err != nil || len(unread) != 0 {
			t.Errorf("%v, %v", unread, err)
		}
		check(t, s.Mail().Post(t.Context(), at, post("w9", "new", "", "2026-11-21T03:18:26.309Z", "")))
	})
	t.Run("odd but valid", func(t *testing.T) {
		root, s, _ := warned(t)
		write(t, root.Inbox("t", "w1"), "\ufeff[\r\n{\"from\":\"a\",\"from\":\"b\",\"text\":\"x\",\"n\":1e999}]\r\n")
		all, err := s.Mail().All(t.Context(), at)
		if err != nil || len(all) != 1 || all[0].From != "b" {
			t.Errorf("%v, %v", all, err)
		}
	})
}

// finishing is a file layer under which the other program finishes its write to
// path before our n-th look at it.
func finishing(t *testing.T, n int, path func() string, text string) fsx.FS {
	looks := 0
	return &fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		if c.Op == "openfile" && c.Path == path() {
			if looks++; looks == n {
				if err := os.WriteFile(path(), []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
		return nil
	}}
}

func TestUnfinishedFilesAreReadAgain(t *testing.T) {
	var root layout.Root
	rosterPath, inbox, one := fixture(t, "01-teamcreate/config.json"), inboxText(t), fixture(t, "02-tasks/2.json")
	tests := map[string]struct {
		path func() string
		text string
		read func(s *filestore.Store) (int, error)
		want int
	}{
		"roster": {func() string { return root.TeamConfig("alpha-team") }, rosterPath, func(s *filestore.Store) (int, error) {
			c, err := s.Teams().Load(t.Context(), "alpha-team")
			return len(c.Members), err
		}, 1},
		"inbox": {func() string { return root.Inbox("alpha-team", "w2") }, inbox, func(s *filestore.Store) (int, error) {
			unread, err := s.Mail().Unread(t.Context(), mailbox.Address{Team: "alpha-team", Agent: "w2"})
			return len(unread), err
		}, 4},
		"task": {func() string { return root.Task("alpha-team", "2") }, one, func(s *filestore.Store) (int, error) {
			list, err := s.Tasks().List(t.Context(), "alpha-team")
			return len(list), err
		}, 1},
	}
	for name, test := range tests {
		for _, cut := range []int{0, 1, len(test.text) / 2, len(test.text) - 1} {
			root = layout.Root(t.TempDir())
			write(t, test.path(), test.text[:cut])
			s := open(t, root, filestore.WithFS(finishing(t, 4, test.path, test.text)),
				filestore.WithWarn(func(err error) { t.Errorf("%s: %v", name, err) }))
			got, err := test.read(s)
			if err != nil || got != test.want {
				t.Errorf("%s cut at %d: %d, %v; want %d", name, cut, got, err, test.want)
			}
		}
	}
}

func TestTornRoster(t *testing.T) {
	whole := fixture(t, "05-messages/config.json")
	for _, cut := range append([]int{0}, cuts(whole)...) {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			root, s, w := warned(t)
			path := root.TeamConfig("alpha-team")
			write(t, path, whole[:cut])
			_, err := s.Teams().Load(t.Context(), "alpha-team")
			torn(t, "load", err, path)
			_, err = s.Teams().Update(t.Context(), "alpha-team", func(*roster.Roster) error { return nil })
			torn(t, "update", err, path)
			if err := s.Teams().Create(t.Context(), alphaTeam()); !errors.Is(err, roster.ErrExists) {
				t.Errorf("create: %v", err)
			}
			same(t, path, whole[:cut])
			all, err := s.Teams().List(t.Context())
			if err != nil || len(all) != 0 {
				t.Errorf("list: %v, %v", all, err)
			}
			w.say(t, path)
		})
	}
}

// Several programs that write a roster at once may leave it torn for a while.
func TestRosterTornForAWhile(t *testing.T) {
	root, reads := layout.Root(t.TempDir()), 0
	path, whole := root.TeamConfig("alpha-team"), fixture(t, "05-messages/config.json")
	faulty := &fsx.Faulty{FS: fsx.OS}
	faulty.Decide = func(c fsx.Call) *fsx.Fault {
		if c.Op != "openfile" || c.Path != path {
			return nil
		}
		if reads++; reads == 10 {
			write(t, path, whole)
		}
		return nil
	}
	s := open(t, root, filestore.WithFS(faulty))
	write(t, path, whole[:len(whole)/2])
	_, err := s.Teams().Update(t.Context(), "alpha-team", func(*roster.Roster) error { return nil })
	if err != nil {
		t.Error(err)
	}
}

func TestTornTask(t *testing.T) {
	root, s, w := warned(t)
	tasks, list := s.Tasks(), "t"
	check(t, makeTasks(t.Context(), s)) // 2 waits for 1
	_, err := tasks.Update(t.Context(), list, "1", task.Change{Status: ptr(task.Completed)})
	check(t, err)
	path := root.Task(list, "1")
	write(t, path, `{"id":"1","subj`)
	all, err := tasks.List(t.Context(), list)
	if err != nil || len(all) != 3 {
		t.Errorf("list: %v, %v", all, err)
	}
	w.say(t, path)
	_, err = tasks.Get(t.Context(), list, "1")
	torn(t, "get", err, path)
	_, err = tasks.Update(t.Context(), list, "1", task.Change{Subject: ptr("x")})
	torn(t, "update", err, path)
	if _, err := tasks.Update(t.Context(), list, "3", task.Change{AddBlocks: []string{"1"}}); err == nil {
		t.Error("an edge to a torn task was made")
	}
	claimed, ok, err := tasks.Claim(t.Context(), list, "w1")
	check(t, err)
	if !ok || claimed.ID != "3" {
		t.Errorf("claimed #%s: what waits for a task that cannot be read must wait", claimed.ID)
	}
	created, err := tasks.Create(t.Context(), list, task.Task{Subject: "new"})
	if err != nil || created.ID != "5" {
		t.Errorf("created %+v, %v", created, err)
	}
	same(t, path, `{"id":"1","subj`)
	write(t, filepath.Join(root.TaskList(list), ".highwatermark"), "many")
	created, err = tasks.Create(t.Context(), list, task.Task{Subject: "new"})
	if err != nil || created.ID != "6" {
		t.Errorf("created %+v, %v", created, err)
	}
	w.say(t, ".highwatermark")
}

// A program without locks writes between our reading and our writing: its
// change is not lost.
func TestUnlockedWriterIsNotOverwritten(t *testing.T) {
	root := layout.Root(t.TempDir())
	plain := open(t, root)
	check(t, plain.Teams().Create(t.Context(), alphaTeam()))
	check(t, makeFreeTask(t, plain))
	rosterPath, path := root.TeamConfig("alpha-team"), root.Task("alpha-team", "1")
	interfered := make(map[string]bool)
	interfere := func(target string) {
		if interfered[target] {
			return
		}
		interfered[target] = true
		data, err := os.ReadFile(target)
		if err != nil {
			t.Error(err)
			return
		}
		changed := strings.Replace(string(data), "\n}", ",\n  \"x-other\": true\n}", 1)
		if err := os.WriteFile(target, []byte(changed), 0o600); err != nil {
			t.Error(err)
		}
	}
	s := open(t, root, filestore.WithFS(&fsx.Faulty{FS: fsx.OS, Decide: func(c fsx.Call) *fsx.Fault {
		// Our temporary file is there, so the old content has been read.
		for _, target := range []string{rosterPath, path} {
			if c.Op == "write" && strings.HasPrefix(filepath.Base(c.Path), "."+filepath.Base(target)) {
				interfere(target)
			}
		}
		return nil
	}}))
	_, err := s.Teams().Update(t.Context(), "alpha-team", func(c *roster.Roster) error {
		c.Members = append(c.Members, alphaMate("w1", "haiku", "p", "blue", 1))
		return nil
	})
	check(t, err)
	_, err = s.Tasks().Update(t.Context(), "alpha-team", "1", task.Change{Subject: ptr("ours")})
	check(t, err)
	for _, file := range []string{rosterPath, path} {
		data, err := os.ReadFile(file)
		check(t, err)
		if !interfered[file] || !strings.Contains(string(data), "x-other") {
			t.Errorf("%s lost the other program's field: %s", filepath.Base(file), data)
		}
	}
	got, err := s.Teams().Load(t.Context(), "alpha-team")
	if err != nil || len(got.Members) != 2 {
		t.Errorf("members %v, %v", got.Members, err)
	}
	one, err := s.Tasks().Get(t.Context(), "alpha-team", "1")
	if err != nil || one.Subject != "ours" {
		t.Errorf("task %+v, %v", one, err)
	}
}

func makeFreeTask(t *testing.T, s *filestore.Store) error {
	_, err := s.Tasks().Create(t.Context(), "alpha-team", task.Task{Subject: "free"})
	return err
}

func TestTruncatedTranscript(t *testing.T) {
	_, s := quiet(t)
	check(t, appendEntries(1, 4)(t.Context(), s))
	whole := transcriptText(t, s)
	for _, cut := range cuts(whole) {
		root := layout.Root(t.TempDir())
		path := root.Transcript(faultRef.Project, faultRef.Session, "")
		write(t, path, whole[:cut])
		again := open(t, root)
		complete := strings.Count(whole[:cut], "}\n")
		if strings.HasSuffix(whole[:cut], "}}}") || strings.HasSuffix(whole[:cut], `Z"}`) {
			complete++ // only the newline is missing
		}
		entries, err := again.Transcripts().Read(t.Context(), faultRef)
		check(t, err)
		if len(entries) != complete {
			t.Errorf("cut at %d: %d entries, want %d", cut, len(entries), complete)
		}
		if err := transcript.Check(transcript.Conversation(entries)); err != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}
		check(t, appendEntries(9, 9)(t.Context(), again))
		entries, err = again.Transcripts().Read(t.Context(), faultRef)
		check(t, err)
		if len(entries) != complete+1 || entries[complete].UUID != "u9" {
			t.Errorf("cut at %d: after one more, %d entries", cut, len(entries))
		}
	}
}

// transcriptText is the transcript as a file.
func transcriptText(t *testing.T, s *filestore.Store) string {
	t.Helper()
	entries, err := s.Transcripts().Read(t.Context(), faultRef)
	check(t, err)
	var text strings.Builder
	for _, e := range entries {
		line, err := e.MarshalJSON()
		check(t, err)
		text.Write(line)
		text.WriteByte('\n')
	}
	return text.String()
}

func TestForeignTranscriptLines(t *testing.T) {
	root, s, w := warned(t)
	good := transcriptText(t, func() *filestore.Store {
		_, s := quiet(t)
		check(t, appendEntries(1, 2)(t.Context(), s))
		return s
	}())
	lines := strings.SplitAfter(good, "\n")
	size := 3 << 20
	if testWhole {
		size = 70 << 20
	}
	long := strings.Replace(lines[1], "text 2", strings.Repeat("x", size), 1)
	text := lines[0] + "{\"type\":\"progress\",\"data\":{}}\n\n   \n{\"torn\n[1]\n\x00\xff\n" + long + `{"type":"user","message":{"role":`
	write(t, root.Transcript(faultRef.Project, faultRef.Session, ""), text)
	entries, err := s.Transcripts().Read(t.Context(), faultRef)
	check(t, err)
	if len(entries) != 2 || entries[0].UUID != "u1" || len(entries[1].Message.Content[0].Text) != size {
		t.Errorf("%d entries", len(entries))
	}
	w.say(t, "4 torn or damaged lines")
}

func TestPlantedPaths(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "precious")
	root, s, _ := warned(t)
	ref := transcript.Ref{Project: "/p", Session: "s"}
	plant := func(path string) {
		t.Helper()
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if err := os.Symlink(outside, path); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, fsx.ErrNotRegular) && !errors.Is(err, fsx.ErrNotFolder) {
			t.Errorf("%s: %v", what, err)
		}
	}
	plant(root.Inbox("t", "w1"))
	plant(root.TeamConfig("t2"))
	plant(root.TaskList("l"))
	plant(root.Task("l2", "1"))
	plant(root.Transcript("/p", "s", ""))
	for _, text := range []string{"", `[]`} { // dangling, then not
		if text != "" {
			write(t, outside, text)
		}
		check(t, s.Mail().Post(t.Context(), mailbox.Address{Team: "t", Agent: "w1"}, post("a", "b", "", "", ""))) // sets the link aside
		if text != "" {
			_, err := s.Teams().Load(t.Context(), "t2")
			refused("load team", err)
		}
		if err := s.Teams().Create(t.Context(), roster.Roster{Name: "t2"}); !errors.Is(err, roster.ErrExists) {
			t.Errorf("create team: %v", err)
		}
		_, err := s.Tasks().Create(t.Context(), "l", task.Task{})
		refused("create task", err)
		refused("remove list", s.Tasks().Remove(t.Context(), "l"))
		_, err = s.Tasks().Get(t.Context(), "l2", "1")
		refused("get task", err)
		log, err := s.Transcripts().Open(t.Context(), ref)
		check(t, err)
		refused("append", log.Append(t.Context(), faultEntry(1)))
		check(t, log.Close())
	}
	same(t, outside, `[]`)
}

func TestNamesStayInside(t *testing.T) {
	root, s := quiet(t)
	bad := []string{"../x", "a/b", "..", ".", "x\x00", "a b", strings.Repeat("x", 300)}
	for _, id := range bad {
		for _, ref := range []transcript.Ref{{Project: "/p", Session: id}, {Project: "/p", Session: "s", Agent: id}} {
			if _, err := s.Transcripts().Open(t.Context(), ref); err == nil {
				t.Errorf("opened %q", ref)
			}
			if _, err := s.Transcripts().Read(t.Context(), ref); err == nil {
				t.Errorf("read %q", ref)
			}
			if err := s.Transcripts().Remove(t.Context(), ref); err == nil {
				t.Errorf("removed %q", ref)
			}
			if err := s.Transcripts().Fork(t.Context(), ref, faultRef, true); err == nil {
				t.Errorf("forked %q", ref)
			}
		}
	}
	entries, err := os.ReadDir(string(root))
	if err != nil || len(entries) != 0 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
}

func TestModes(t *testing.T) {
	root, s := quiet(t)
	check(t, makeTeam(t.Context(), s))
	check(t, makeTasks(t.Context(), s))
	check(t, postTwo(t.Context(), s))
	check(t, appendEntries(1, 1)(t.Context(), s))
	var open []string
	err := filepath.WalkDir(string(root), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && path != string(root) {
			open = append(open, path)
		}
		return err
	})
	check(t, err)
	if diff := cmp.Diff([]string(nil), open); diff != "" {
		t.Errorf("others may read: %s", diff)
	}
}

// A transcript of which no entry was written is none, whatever else is in its file.
func TestATranscriptWithoutAnEntryDoesNotExist(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := filestore.New(root)
	t.Cleanup(func() { s.Close() })
	ref := transcript.Ref{Project: "/p", Session: "00000000-0000-4000-8000-000000000001"}
	path := root.Transcript(ref.Project, ref.Session, "")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	whole := `{"type":"user","uuid":"u1","message":{"role":"user","content":"hello"}}` + "\n"
	for text, want := range map[string]bool{"": false, whole[:20]: false, `{"type":"summary","summary":"s"}` + "\n": false, whole: true, whole[:20] + "\n" + whole: true} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Transcripts().Exists(t.Context(), ref); got != want || err != nil {
			t.Errorf("with %q it exists: %v, %v", text, got, err)
		}
	}
}

// A listing shows the first prompt of a session, also when no line says where it was.
func TestListShowsTheFirstPrompt(t *testing.T) {
	root := layout.Root(t.TempDir())
	s := open(t, root)
	line := `{"type":"user","uuid":"%s","message":{"role":"user","content":"%s"}}` + "\n"
	write(t, root.Transcript("/p", "00000000-0000-4000-8000-000000000001", ""), fmt.Sprintf(line+line, "u1", "first", "u2", "second"))
	for _, project := range []string{"", "/p"} {
		infos, err := s.Transcripts().List(t.Context(), project)
		if err != nil || len(infos) != 1 || infos[0].FirstAsk != "first" {
			t.Errorf("sessions of %q: %+v, %v", project, infos, err)
		}
	}
}

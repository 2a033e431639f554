package filestore_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/filestore"
	"github.com/cadre-dev/cadre/internal/jsonx"
	"github.com/cadre-dev/cadre/internal/layout"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/transcript"
)

// The files under testdata are what Claude Code 2.1.41 wrote (facts:
// claude-code §2, §3, §5, §11).

func fixture(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// put copies a fixture to where the store keeps such a file.
func put(t *testing.T, from, to string) {
	t.Helper()
	write(t, to, fixture(t, from))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", filepath.Base(path), diff)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quiet(t *testing.T) (layout.Root, *filestore.Store) {
	root := layout.Root(t.TempDir())
	return root, open(t, root, filestore.WithWarn(func(err error) { t.Errorf("warning: %v", err) }))
}

func ptr[T any](v T) *T { return &v }

const leadSession = "62c88335-268d-4933-83f4-81bc04a35760"

func alphaTeam() roster.Roster {
	return roster.Roster{
		Name: "alpha-team", Description: "Test team", CreatedAt: 1795231010482,
		LeadAgentID: "team-lead@alpha-team", LeadSessionID: leadSession,
		Members: []roster.Member{{AgentID: "team-lead@alpha-team", Name: "team-lead", AgentType: "team-lead",
			Model: "claude-sonnet-4-5-20250929", JoinedAt: 1795231010482, Cwd: "/work-dir"}},
	}
}

func alphaMate(name, model, prompt, color string, joined int64) roster.Member {
	return roster.Member{AgentID: name + "@alpha-team", Name: name, AgentType: "general-purpose", Model: model, Prompt: prompt,
		Color: color, JoinedAt: joined, PaneID: "in-process", Cwd: "/work-dir", BackendType: "in-process"}
}

func TestGoldenRoster(t *testing.T) {
	root, s := quiet(t)
	path := root.TeamConfig("alpha-team")
	check(t, s.Teams().Create(t.Context(), alphaTeam()))
	same(t, path, fixture(t, "01-teamcreate/config.json"))
	for _, m := range []roster.Member{
		alphaMate("w1", "claude-opus-4-6", "@@w1@@ Do the thing.\nSecond line <tag> & \"q\".", "blue", 1795231084242),
		alphaMate("w2", "haiku", "@@w2@@ second worker", "green", 1795231105371),
	} {
		_, err := s.Teams().Update(t.Context(), "alpha-team", func(c *roster.Roster) error {
			c.Members = append(c.Members, m)
			return nil
		})
		check(t, err)
	}
	same(t, path, fixture(t, "05-messages/config.json"))
}

func TestRosterOfAnotherProgram(t *testing.T) {
	root, s := quiet(t)
	path := root.TeamConfig("goteam")
	put(t, "foreign/config.json", path)
	before := fixture(t, "foreign/config.json")
	update := func(change func(*roster.Roster)) {
		t.Helper()
		_, err := s.Teams().Update(t.Context(), "goteam", func(c *roster.Roster) error { change(c); return nil })
		check(t, err)
	}
	update(func(*roster.Roster) {})
	same(t, path, strings.TrimSuffix(before, "\n"))
	update(func(c *roster.Roster) { c.Find("ext").IsActive = ptr(false) })
	want := strings.TrimSuffix(strings.Replace(before, `"isActive": true`, `"isActive": false`, 1), "\n")
	same(t, path, want)
	update(func(c *roster.Roster) {
		if got := string(c.Find("ext").Extra.Raw("x-foreign")); !strings.Contains(got, `"a": 1`) {
			t.Errorf("foreign field is %q", got)
		}
		c.Members[0].IsActive = ptr(true)
	})
	same(t, path, strings.Replace(want, "\"subscriptions\": []\n    },", "\"subscriptions\": [],\n      \"isActive\": true\n    },", 1))
}

func TestGoldenTasks(t *testing.T) {
	root, s := quiet(t)
	tasks, list := s.Tasks(), "alpha-team"
	var metadata, patch jsonx.Object
	metadata.Set("k", "v")
	metadata.Set("n", 1)
	for _, one := range []task.Task{
		{Subject: "Write parser", Description: "Write the parser module"},
		{Subject: "Test parser", Description: "Test it", ActiveForm: "Testing parser", Metadata: metadata},
		{Subject: "Ship", Description: "Ship it", ActiveForm: "Shipping"},
	} {
		_, err := tasks.Create(t.Context(), list, one)
		check(t, err)
	}
	update := func(id string, c task.Change) {
		t.Helper()
		_, err := tasks.Update(t.Context(), list, id, c)
		check(t, err)
	}
	update("3", task.Change{AddBlockedBy: []string{"1", "2"}})
	update("1", task.Change{AddBlocks: []string{"2"}})
	for _, id := range []string{"1", "2", "3"} {
		same(t, root.Task(list, id), fixture(t, "02-tasks/"+id+".json"))
	}
	check(t, func() error { _, err := os.Stat(filepath.Join(root.TaskList(list), ".lock")); return err }())

	update("2", task.Change{Owner: ptr("ghost")})
	if got, err := os.ReadFile(root.Task(list, "2")); err != nil || !strings.HasSuffix(string(got), "\"owner\": \"ghost\"\n}") {
		t.Errorf("a new key does not stand at the end: %s, %v", got, err)
	}
	patch.Set("k", nil)
	patch.Set("z", []int{1, 2})
	update("2", task.Change{Subject: ptr("Test parser v2"), Description: ptr("d2"), ActiveForm: ptr("Testing v2"),
		Status: ptr(task.InProgress), Metadata: patch})
	update("3", task.Change{Status: ptr(task.Deleted)})
	same(t, root.Task(list, "2"), fixture(t, "03-tasks-deleted/2.json"))
	_, err := tasks.Create(t.Context(), list, task.Task{Subject: "4"})
	check(t, err)
	update("4", task.Change{Status: ptr(task.Deleted)})
	same(t, filepath.Join(root.TaskList(list), ".highwatermark"), fixture(t, "03-tasks-deleted/highwatermark"))
	_, err = tasks.Create(t.Context(), list, task.Task{Subject: "After delete 2", Description: "x"})
	check(t, err)
	same(t, root.Task(list, "5"), fixture(t, "03-tasks-deleted/5.json"))

	var internal jsonx.Object
	internal.Set("_internal", true)
	_, err = tasks.Create(t.Context(), list, task.Task{Subject: "w1", Status: task.InProgress, Metadata: internal,
		Description: "@@w1@@ Do the thing.\nSecond line <tag> & \"q\"."})
	check(t, err)
	update("6", task.Change{Owner: ptr("w2")})
	same(t, root.Task(list, "6"), fixture(t, "05-messages/6.json"))
}

func TestTaskOfAnotherProgram(t *testing.T) {
	root, s := quiet(t)
	tasks, list := s.Tasks(), "l"
	path := root.Task(list, "7")
	write(t, path, `{"x-a":{"n":1.50},"id":"7","status":"pending","subject":"caf\u00e9","description":"d","blocks":[],"blockedBy":[],"owner":"w1","activeForm":3}`)
	before, err := os.ReadFile(path)
	check(t, err)
	outcome, err := tasks.Update(t.Context(), list, "7", task.Change{Subject: ptr("café")})
	check(t, err)
	if len(outcome.Fields) != 0 {
		t.Errorf("changed %v", outcome.Fields)
	}
	same(t, path, string(before))
	released, err := tasks.Release(t.Context(), list, "w1")
	check(t, err)
	if len(released) != 1 {
		t.Fatalf("released %v", released)
	}
	same(t, path, `{
  "id": "7",
  "subject": "caf\u00e9",
  "description": "d",
  "activeForm": 3,
  "status": "pending",
  "blocks": [],
  "blockedBy": [],
  "x-a": {
    "n": 1.50
  }
}`)
	for name, text := range map[string]string{"8": `{"id":"8","subject":"no description"}`, "note": `[1]`, "9": `null`} {
		write(t, root.Task(list, name), text)
	}
	all, err := open(t, root, filestore.WithWarn(func(error) {})).Tasks().List(t.Context(), list)
	check(t, err)
	if len(all) != 1 {
		t.Errorf("listed %v", all)
	}
}

func post(from, text, summary, at, color string) mailbox.Message {
	return mailbox.Message{From: from, Text: text, Summary: summary, Timestamp: at, Color: color}
}

func TestGoldenInbox(t *testing.T) {
	root, s := quiet(t)
	mail := s.Mail()
	w1 := mailbox.Address{Team: "alpha-team", Agent: "w1"}
	path := root.Inbox("alpha-team", "w1")
	assignment := `{"type":"task_assignment","taskId":"5","subject":"After delete 2","description":"x","assignedBy":"w1","timestamp":"2026-11-21T03:18:27.686Z"}`
	for _, m := range []mailbox.Message{
		post("w1", "self", "s", "2026-11-21T03:18:27.524Z", "blue"),
		post("w1", assignment, "", "2026-11-21T03:18:27.686Z", "blue"),
	} {
		check(t, mail.Post(t.Context(), w1, m))
	}
	same(t, path, fixture(t, "05-messages/w1.json"))
	unread, err := mail.Unread(t.Context(), w1)
	check(t, err)
	check(t, mail.MarkRead(t.Context(), w1, []mailbox.ID{unread[0].ID, unread[1].ID}))
	for _, m := range []mailbox.Message{
		post("team-lead", "all hands", "bcast", "2026-11-21T03:18:58.199Z", ""),
		post("w2", "w2 says all", "w2 bcast", "2026-11-21T03:18:58.490Z", "green"),
	} {
		check(t, mail.Post(t.Context(), w1, m))
	}
	same(t, path, fixture(t, "06-msgs/w1.json"))
}

// A cold store adds to a file by replacing it, a warm one by writing to its end:
// the bytes are the same.
func TestInboxIsTheSameColdAndWarm(t *testing.T) {
	root := layout.Root(t.TempDir())
	at := mailbox.Address{Team: "alpha-team", Agent: "w2"}
	warm := open(t, root).Mail()
	for _, name := range []string{"w2", "cold"} {
		put(t, "05-messages/w2.json", root.Inbox("alpha-team", name))
	}
	for range 3 {
		m := post("team-lead", "from lead to <w2>", "lead dm", "2026-11-21T03:18:57.981Z", "")
		check(t, warm.Post(t.Context(), at, m))
		check(t, open(t, root).Mail().Post(t.Context(), mailbox.Address{Team: "alpha-team", Agent: "cold"}, m))
	}
	cold, err := os.ReadFile(root.Inbox("alpha-team", "cold"))
	check(t, err)
	same(t, root.Inbox("alpha-team", "w2"), string(cold))
}

func TestInboxOfAnotherProgram(t *testing.T) {
	root, s := quiet(t)
	at := mailbox.Address{Team: "goteam", Agent: "ext"}
	path := root.Inbox("goteam", "ext")
	put(t, "foreign/ext.json", path)
	unread, err := s.Mail().Unread(t.Context(), at)
	check(t, err)
	if len(unread) != 1 || unread[0].Text != "@@hl@@ headless start" {
		t.Fatalf("unread %v", unread)
	}
	same(t, path, fixture(t, "foreign/ext.json")) // reading writes nothing
	check(t, s.Mail().Post(t.Context(), at, post("w1", "x", "", "2026-11-21T03:18:57.981Z", "")))
	same(t, path, `[
  {
    "from": "team-lead",
    "text": "@@hl@@ headless start",
    "timestamp": "2026-11-21T03:45:00.000Z",
    "read": false
  },
  {
    "from": "w1",
    "text": "x",
    "timestamp": "2026-11-21T03:18:57.981Z",
    "read": false
  }
]`)
	odd := "\ufeff[ 5, {\"text\":7,\"x\":{\"y\":[ ]},\"from\":\"a\"}, [{\"from\":\"b\"}], {}, \"{\" ]\r\n"
	write(t, path, odd)
	all, err := s.Mail().All(t.Context(), at)
	check(t, err)
	if len(all) != 2 || all[0].From != "a" || string(all[0].Extra.Raw("text")) != "7" {
		t.Fatalf("messages %v", all)
	}
	check(t, s.Mail().MarkRead(t.Context(), at, []mailbox.ID{all[0].ID, all[1].ID}))
	same(t, path, `[
  5,
  {
    "text": 7,
    "x": {
      "y": []
    },
    "from": "a",
    "read": true
  },
  [
    {
      "from": "b"
    }
  ],
  {
    "read": true
  },
  "{"
]`)
}

func TestGoldenTranscript(t *testing.T) {
	root, s := quiet(t)
	ref := transcript.Ref{Project: "/work-dir", Session: leadSession}
	agent := transcript.Ref{Project: "/work-dir", Session: leadSession, Agent: "a0e9d22"}
	put(t, "transcript/main.jsonl", root.Transcript(ref.Project, ref.Session, ""))
	put(t, "transcript/agent.jsonl", root.Transcript(ref.Project, ref.Session, "a0e9d22"))
	entries, err := s.Transcripts().Read(t.Context(), ref)
	check(t, err)
	if len(entries) != 5 || entries[0].UUID != "10b32fde-2806-4435-a6a1-8f4c20b58ea6" {
		t.Fatalf("%d entries, first %+v", len(entries), entries[0])
	}
	// The line of a tool result has nothing in it that we do not keep.
	lines := strings.Split(fixture(t, "transcript/main.jsonl"), "\n")
	line, err := entries[2].MarshalJSON()
	check(t, err)
	if diff := cmp.Diff(lines[3], string(line)); diff != "" {
		t.Error(diff)
	}
	side, err := s.Transcripts().Read(t.Context(), agent)
	check(t, err)
	if len(side) != 2 || side[0].AgentID != "a0e9d22" || !side[0].Sidechain {
		t.Errorf("agent's entries %+v", side)
	}
	infos, err := s.Transcripts().List(t.Context(), "")
	check(t, err)
	want := []transcript.Ref{ref}
	if len(infos) != 1 || infos[0].FirstAsk != "@@lead@@ hello" || cmp.Diff(want[0], infos[0].Ref) != "" {
		t.Errorf("listed %+v", infos)
	}
	forked := transcript.Ref{Project: "/work-dir", Session: "forked"}
	check(t, s.Transcripts().Fork(t.Context(), ref, forked, false))
	same(t, root.Transcript("/work-dir", "forked", ""),
		strings.ReplaceAll(fixture(t, "transcript/main.jsonl"), leadSession, "forked"))
	if err := s.Transcripts().Fork(t.Context(), ref, forked, false); err == nil {
		t.Error("a session was overwritten by a fork")
	}
}

func TestForkKeepsReceipts(t *testing.T) {
	_, s := quiet(t)
	from, to := transcript.Ref{Project: "/p", Session: "a"}, transcript.Ref{Project: "/p", Session: "b"}
	log, err := s.Transcripts().Open(t.Context(), from)
	check(t, err)
	check(t, log.Append(t.Context(), transcript.Entry{UUID: "u1", Kind: transcript.KindUser, SessionID: "a",
		Message: transcript.UserText("x"), Receipts: []string{"mail:1"}}))
	check(t, s.Transcripts().Fork(t.Context(), from, to, true)) // while it is held
	check(t, log.Close())
	entries, err := s.Transcripts().Read(context.WithoutCancel(t.Context()), to)
	check(t, err)
	if len(entries) != 1 || cmp.Diff([]string{"mail:1"}, entries[0].Receipts) != "" || entries[0].SessionID != "b" {
		t.Errorf("forked %+v", entries)
	}
	raw, err := json.Marshal(entries[0])
	check(t, err)
	if strings.Contains(string(raw), "mail:1") {
		t.Error("a receipt stands in the shared file")
	}
}

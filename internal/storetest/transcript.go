package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cadre-dev/cadre/transcript"
)

// transcriptSuite checks an implementation of [transcript.Store].
func transcriptSuite(t *testing.T, open Open[transcript.Store]) {
	tests := map[string]func(*testing.T, transcript.Store, transcript.Store){
		"append and read":         appendAndRead,
		"one owner at a time":     oneOwner,
		"receipts":                receipts,
		"agents beside a session": agentTranscripts,
		"list":                    listSessions,
		"remove":                  removeSession,
		"bad names":               badNames,
		"a cancelled append":      cancelledAppend,
		"fork":                    forkSession,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			test(t, a, b)
		})
	}
}

const session1 = "62c88335-268d-4933-83f4-81bc04a35760"

var (
	mainRef           = transcript.Ref{Project: "/work-dir", Session: session1}
	transcriptOptions = []cmp.Option{cmpopts.EquateEmpty()}
)

func entry(n int, kind transcript.Kind, blocks ...transcript.Block) transcript.Entry {
	e := transcript.Entry{
		UUID: fmt.Sprintf("uuid-%d", n), Kind: kind, SessionID: session1, Cwd: "/work-dir", Version: "2.1.41",
		GitBranch: "HEAD", At: time.UnixMilli(1795231010482 + int64(n)).UTC(),
		Message: transcript.Message{Role: transcript.User, Content: blocks},
	}
	if n > 1 {
		e.ParentUUID = fmt.Sprintf("uuid-%d", n-1)
	}
	if kind == transcript.KindAssistant {
		e.RequestID = fmt.Sprintf("req-%d", n)
		e.Message.Role, e.Message.ID, e.Message.Model = transcript.Assistant, fmt.Sprintf("msg-%d", n), "m"
	}
	return e
}

func conversation() []transcript.Entry {
	use := transcript.Block{Type: transcript.ToolUse, ID: "toolu_1", Name: "Read", Input: json.RawMessage(`{"file_path":"/x"}`)}
	result := transcript.Block{Type: transcript.ToolResult, ToolUseID: "toolu_1", Text: "1\tx <y> & z\n"}
	answer := entry(3, transcript.KindUser, result)
	answer.ToolUseResult, answer.SourceAssistant = json.RawMessage(`{"lines":1}`), "uuid-2"
	return []transcript.Entry{
		entry(1, transcript.KindUser, transcript.TextBlock("hello <there> & \"you\"\u2028")),
		entry(2, transcript.KindAssistant, use),
		answer,
		entry(4, transcript.KindAssistant, transcript.TextBlock("done 😀")),
	}
}

func openLog(t *testing.T, s transcript.Store, ref transcript.Ref) transcript.Log {
	t.Helper()
	log, err := s.Open(t.Context(), ref)
	check(t, err)
	return log
}

func entries(t *testing.T, log transcript.Log) []transcript.Entry {
	t.Helper()
	got, err := log.Entries(t.Context())
	check(t, err)
	return got
}

func read(t *testing.T, s transcript.Store, ref transcript.Ref) []transcript.Entry {
	t.Helper()
	got, err := s.Read(t.Context(), ref)
	check(t, err)
	return got
}

func appendAndRead(t *testing.T, a, b transcript.Store) {
	if _, err := a.Read(t.Context(), mainRef); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("read before open: %v", err)
	}
	log := openLog(t, a, mainRef)
	equal(t, "new", len(entries(t, log)), 0)
	want := conversation()
	check(t, log.Append(t.Context()))
	exists(t, b, mainRef, false)
	check(t, log.Append(t.Context(), want[0]))
	exists(t, b, mainRef, true)
	equal(t, "first", read(t, b, mainRef), want[:1], transcriptOptions...)
	check(t, log.Append(t.Context(), want[1:]...))
	equal(t, "by the owner", entries(t, log), want, transcriptOptions...)
	equal(t, "by another", read(t, b, mainRef), want, transcriptOptions...)
	check(t, log.Close())
	log = openLog(t, b, mainRef)
	equal(t, "opened again", entries(t, log), want, transcriptOptions...)
	more := entry(5, transcript.KindUser, transcript.TextBlock(strings.Repeat("long ", 50_000)))
	check(t, log.Append(t.Context(), more))
	equal(t, "longer", entries(t, log), append(want, more), transcriptOptions...)
	check(t, log.Close())
}

func exists(t *testing.T, s transcript.Store, ref transcript.Ref, want bool) {
	t.Helper()
	got, err := s.Exists(t.Context(), ref)
	check(t, err)
	equal(t, "exists", got, want)
}

func oneOwner(t *testing.T, a, b transcript.Store) {
	log := openLog(t, a, mainRef)
	for name, s := range map[string]transcript.Store{"same": a, "other": b} {
		_, err := s.Open(t.Context(), mainRef)
		var held *transcript.HeldError
		if !errors.As(err, &held) {
			t.Fatalf("second open by the %s store: %v", name, err)
		}
		equal(t, "ref", held.Ref, mainRef)
		equal(t, "pid", held.PID, os.Getpid())
	}
	other := mainRef
	other.Session = "another"
	check(t, openLog(t, b, other).Close())
	check(t, log.Close())
	check(t, openLog(t, b, mainRef).Close())
}

func receipts(t *testing.T, a, b transcript.Store) {
	log := openLog(t, a, mainRef)
	want := conversation()
	want[0].Receipts = []string{"mail:1", "mail:2"}
	want[3].Receipts = []string{"notice:b1"}
	check(t, log.Append(t.Context(), want[:2]...))
	check(t, log.Append(t.Context(), want[2:]...))
	equal(t, "by the owner", entries(t, log), want, transcriptOptions...)
	equal(t, "by another", read(t, b, mainRef), want, transcriptOptions...)
	check(t, log.Close())
}

func agentTranscripts(t *testing.T, a, b transcript.Store) {
	agent := mainRef
	agent.Agent = "a0e9d22"
	main, side := openLog(t, a, mainRef), openLog(t, a, agent)
	want := conversation()
	for i := range want {
		want[i].Sidechain, want[i].AgentID = true, "a0e9d22"
	}
	check(t, side.Append(t.Context(), want...))
	check(t, main.Append(t.Context(), conversation()[0]))
	equal(t, "the agent's", read(t, b, agent), want, transcriptOptions...)
	equal(t, "the main one", len(read(t, b, mainRef)), 1)
	infos, err := b.List(t.Context(), "/work-dir")
	check(t, err)
	equal(t, "listed", len(infos), 1)
	check(t, main.Close())
	var held *transcript.HeldError
	if err := b.Remove(t.Context(), mainRef); !errors.As(err, &held) {
		t.Errorf("removal while an agent runs: %v", err)
	}
	equal(t, "still there", len(read(t, b, agent)), 4)
	check(t, side.Close())
	check(t, b.Remove(t.Context(), mainRef))
	if _, err := a.Read(t.Context(), agent); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("agent after removal: %v", err)
	}
}

func listSessions(t *testing.T, a, b transcript.Store) {
	long := "first   question\n" + strings.Repeat("x", 200)
	for i, text := range []string{"short", long} {
		ref := mainRef
		ref.Session = fmt.Sprint("session-", i)
		log := openLog(t, a, ref)
		check(t, log.Append(t.Context(), entry(1, transcript.KindUser, transcript.TextBlock(text)),
			entry(2, transcript.KindAssistant, transcript.TextBlock("answer"))))
		check(t, log.Close())
	}
	elsewhere := transcript.Ref{Project: "/other", Session: "session-9"}
	log := openLog(t, a, elsewhere)
	e := entry(1, transcript.KindUser, transcript.TextBlock("there"))
	e.Cwd = "/other"
	check(t, log.Append(t.Context(), e))
	check(t, log.Close())

	infos, err := b.List(t.Context(), "/work-dir")
	check(t, err)
	asks := make(map[string]string)
	for i, info := range infos {
		asks[info.Ref.Session] = info.FirstAsk
		equal(t, "project", info.Ref.Project, "/work-dir")
		if info.Size == 0 || info.Updated.IsZero() {
			t.Errorf("no size or time: %+v", info)
		}
		if i > 0 && infos[i-1].Updated.Before(info.Updated) {
			t.Error("not the newest first")
		}
	}
	equal(t, "asks", asks, map[string]string{
		"session-0": "short", "session-1": "first question " + strings.Repeat("x", 85) + "…",
	})
	all, err := b.List(t.Context(), "")
	check(t, err)
	projects := make(map[transcript.Ref]bool)
	for _, info := range all {
		projects[info.Ref] = true
	}
	equal(t, "of all folders", len(projects), 3)
	equal(t, "elsewhere", projects[elsewhere], true)
	none, err := b.List(t.Context(), "/nowhere")
	check(t, err)
	equal(t, "of no folder", len(none), 0)
}

func removeSession(t *testing.T, a, b transcript.Store) {
	if err := a.Remove(t.Context(), mainRef); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("removal of nothing: %v", err)
	}
	log := openLog(t, a, mainRef)
	check(t, log.Append(t.Context(), conversation()...))
	var held *transcript.HeldError
	if err := b.Remove(t.Context(), mainRef); !errors.As(err, &held) {
		t.Errorf("removal of an open session: %v", err)
	}
	equal(t, "still there", len(entries(t, log)), 4)
	check(t, log.Close())
	check(t, b.Remove(t.Context(), mainRef))
	if _, err := a.Read(t.Context(), mainRef); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("read after removal: %v", err)
	}
	log = openLog(t, a, mainRef)
	equal(t, "a new session", len(entries(t, log)), 0)
	check(t, log.Close())
}

func badNames(t *testing.T, a, _ transcript.Store) {
	if _, err := a.Open(t.Context(), transcript.Ref{Project: "/work-dir"}); err == nil {
		t.Error("a session without an id was opened")
	}
}

func cancelledAppend(t *testing.T, a, b transcript.Store) {
	log := openLog(t, a, mainRef)
	want := conversation()
	check(t, log.Append(t.Context(), want[0]))
	if err := log.Append(ended(), want[1:]...); err == nil {
		t.Error("append under a cancelled context succeeded")
	}
	bad := entry(2, transcript.KindAssistant, transcript.Block{Type: transcript.ToolUse, ID: "x", Input: json.RawMessage(`{"torn`)})
	if err := log.Append(t.Context(), want[1], bad); err == nil {
		t.Error("an entry that is no JSON was appended")
	}
	equal(t, "kept", read(t, b, mainRef), want[:1], transcriptOptions...)
	check(t, log.Append(t.Context(), want[1:]...))
	equal(t, "kept", read(t, b, mainRef), want, transcriptOptions...)
	check(t, log.Close())
}

func forkSession(t *testing.T, a, b transcript.Store) {
	agent := transcript.Ref{Project: "/work-dir", Session: session1, Agent: "a0e9d22"}
	own := transcript.Ref{Project: "/work-dir", Session: "its-own"}
	if err := a.Fork(t.Context(), agent, own, true); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("fork of nothing: %v", err)
	}
	log := openLog(t, a, agent)
	said := conversation()
	for i := range said {
		said[i].Sidechain, said[i].AgentID = true, agent.Agent
	}
	said[0].Receipts = []string{"mail:1"}
	check(t, log.Append(t.Context(), said...))
	check(t, b.Fork(t.Context(), agent, own, true)) // while it is held
	beside := own
	beside.Agent = "b1"
	check(t, b.Fork(t.Context(), agent, beside, false))
	equal(t, "the original", read(t, b, agent), said, transcriptOptions...)
	check(t, log.Close())

	want := slices.Clone(said)
	for i := range want {
		want[i].SessionID, want[i].AgentID, want[i].Sidechain = own.Session, "", false
	}
	equal(t, "in its place", read(t, a, own), want, transcriptOptions...)
	for i := range want {
		want[i].AgentID, want[i].Sidechain, want[i].Receipts = "b1", true, nil
	}
	equal(t, "beside it", read(t, a, beside), want, transcriptOptions...)
	fails(t, "fork over a session", a.Fork(t.Context(), agent, own, true), fs.ErrExist)
	log = openLog(t, a, own)
	equal(t, "opened", len(entries(t, log)), len(want))
	check(t, log.Close())
}

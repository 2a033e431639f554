package transcript

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/race"
)

func session(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "session.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// entriesOf reads lines as a store does: what is no entry is skipped.
func entriesOf(lines []byte) []Entry {
	var entries []Entry
	for line := range bytes.Lines(lines) {
		var e Entry
		if json.Unmarshal(line, &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries
}

func checkConversation(t *testing.T, lines []byte) {
	t.Helper()
	entries := entriesOf(lines)
	messages := Conversation(entries)
	if err := Check(messages); err != nil {
		t.Errorf("cannot be sent to a model: %v", err)
	}
	if !reflect.DeepEqual(entries, entriesOf(lines)) {
		t.Error("the entries were changed")
	}
	if _, err := json.Marshal(messages); err != nil {
		t.Errorf("cannot be written: %v", err)
	}
}

func TestTranscriptCutAnywhere(t *testing.T) {
	whole, step := session(t), 31
	if os.Getenv("CADRE_TEST_ALL") != "" && !race.Enabled {
		step = 1
	}
	for cut := 0; cut < len(whole); cut += step {
		checkConversation(t, []byte(whole[:cut]))
	}
}

// FuzzConversation: whatever lines a transcript has, what comes out can be sent
// to a model.
func FuzzConversation(f *testing.F) {
	whole := session(f)
	f.Add([]byte(whole))
	f.Add([]byte(whole[:len(whole)*2/3]))
	lines := strings.SplitAfter(whole, "\n")
	for i := range lines {
		f.Add([]byte(strings.Join(lines[i:], "")))
		f.Add([]byte(strings.Join(append(lines[i:len(lines):len(lines)], lines[:i]...), "")))
	}
	f.Add([]byte(`{"type":"user","message":{"role":"user","content":[{"type":"tool_use","id":"x","name":"y","input":null},{"type":"thinking"}]}}`))
	f.Add([]byte(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"x"},{},{"type":"text"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) { checkConversation(t, data) })
}

// FuzzEntry: what was read once is written so that it reads the same again.
func FuzzEntry(f *testing.F) {
	for _, line := range strings.Split(session(f), "\n") {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":null,"is_error":true}]}}`))
	f.Add([]byte(`{"type":"assistant","message":{"id":"m","content":[{"type":"image","source":{"a":1}},{"type":"text","text":"\ud800 "}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var first Entry
		if first.UnmarshalJSON(line) != nil || first.Kind != KindUser && first.Kind != KindAssistant {
			t.Skip()
		}
		written, err := first.MarshalJSON()
		if err != nil {
			t.Skip() // a number or text that JSON cannot carry on
		}
		if bytes.ContainsAny(written, "\r\n") {
			t.Fatalf("not one line: %q", written)
		}
		var second Entry
		if err := second.UnmarshalJSON(written); err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		again, err := second.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(written), string(again)); diff != "" {
			t.Errorf("changed by reading: %s", diff)
		}
	})
}

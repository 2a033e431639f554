package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wiretest"
	"github.com/cadre-dev/cadre/transcript"
)

const canary = "sk-ant-canary-5f1e"

// newModel makes a model that talks to server. Failures are not retried unless
// change says otherwise.
func newModel(t testing.TB, server *fakeapi.Server, change ...func(*Options)) *Model {
	t.Helper()
	o := Options{BaseURL: server.URL, APIKey: canary, HTTPClient: server.Client(), Retry: provider.RetryPolicy{For: -1}}
	for _, f := range change {
		f(&o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(text string) provider.Request {
	return provider.Request{Model: "claude-sonnet-4-5-20250929", Messages: []transcript.Message{transcript.UserText(text)}}
}

func TestAnswerOfEveryKind(t *testing.T) {
	reply := fakeapi.Answer(
		fakeapi.Thought("let me see", "sig"),
		fakeapi.Block{Type: "redacted_thinking", Text: "opaque"},
		fakeapi.Text("Grüße"),
		fakeapi.ToolUse("toolu_1", "Read", `{"file_path": "/a"}`),
		fakeapi.ToolUse("toolu_2", "Bash", `{}`),
	)
	reply.Usage = fakeapi.Usage{Input: 1, CacheWrite: 2, CacheRead: 3, Output: 4}
	server := wiretest.Start(t, wiretest.Always(reply))
	h := wiretest.Collect(t.Context(), newModel(t, server), ask("hi"))
	got := h.Whole(t)
	want := transcript.Message{
		ID: "msg_fake", Role: transcript.Assistant, Model: "fake-model", StopReason: "tool_use",
		Usage: transcript.Usage{InputTokens: 1, CacheCreationInputTokens: 2, CacheReadInputTokens: 3, OutputTokens: 4},
		Content: []transcript.Block{
			{Type: transcript.Thinking, Text: "let me see", Signature: "sig"},
			{Type: transcript.RedactedThinking, Data: "opaque"},
			transcript.TextBlock("Grüße"),
			{Type: transcript.ToolUse, ID: "toolu_1", Name: "Read", Input: json.RawMessage(`{"file_path":"/a"}`)},
			{Type: transcript.ToolUse, ID: "toolu_2", Name: "Bash", Input: json.RawMessage(`{}`)},
		},
	}
	if diff := cmp.Diff(want, got.Message); diff != "" {
		t.Error("message (-want +got):\n" + diff)
	}
	if got.RequestID != "req_fake" {
		t.Errorf("request id = %q", got.RequestID)
	}
	var text, thought, input strings.Builder
	for _, ev := range h.Deltas {
		switch ev := ev.(type) {
		case provider.TextDelta:
			text.WriteString(ev.Text)
		case provider.ThinkingDelta:
			thought.WriteString(ev.Text)
		case provider.ToolDelta:
			input.WriteString(ev.Name[:1] + ev.JSON)
		}
	}
	if text.String() != "Grüße" || thought.String() != "let me see" {
		t.Errorf("streamed text %q, thought %q", &text, &thought)
	}
	if want := `RR{"fileR_path"R: "/a"}BB{B}`; input.String() != want {
		t.Errorf("streamed calls %q, want %q", &input, want)
	}
}

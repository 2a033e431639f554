package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
	"github.com/cadre-dev/cadre/provider/internal/wiretest"
	"github.com/cadre-dev/cadre/transcript"
)

func offline(t testing.TB) *Model {
	t.Helper()
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func encoded(t testing.TB, m *Model, req provider.Request) []byte {
	t.Helper()
	body := m.body(req)
	data, err := io.ReadAll(body.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(data)) != body.Size() {
		t.Fatalf("body has %d bytes and says %d", len(data), body.Size())
	}
	if !json.Valid(data) {
		t.Fatalf("body is no JSON: %s", data)
	}
	return data
}

const pixel = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`

// everything is a request with all that can be in one.
func everything() provider.Request {
	return provider.Request{
		Model:    "claude-sonnet-4-5-20250929",
		Thinking: 2048,
		System:   []string{"You are careful.", "", "Folder: /srv/repo"},
		Tools: []provider.Tool{
			{Name: "Read", Description: "Reads a \"file\".", Schema: json.RawMessage("{\n \"type\": \"object\",\n \"properties\": {\"file_path\": {\"type\": \"string\"}},\n \"required\": [\"file_path\"]\n}")},
			{Name: "Bash", Description: "Runs <a & b>.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
		},
		Messages: []transcript.Message{
			{Role: transcript.User, Content: []transcript.Block{
				transcript.TextBlock("Look at this:\t<tag> \u2028 \x01"), {Type: transcript.Image, Raw: json.RawMessage(pixel)},
			}},
			{ID: "msg_1", Role: transcript.Assistant, Model: "x", Content: []transcript.Block{
				{Type: transcript.Thinking, Text: "", Signature: "sig0"},
				{Type: transcript.Thinking, Text: "hm", Signature: "sig1"},
				{Type: transcript.Thinking, Text: "never signed"},
				{Type: transcript.RedactedThinking, Data: "opaque"},
				transcript.TextBlock("\n\n"),
				transcript.TextBlock("Reading."),
				{Type: transcript.ToolUse, ID: "toolu_1", Name: "Read", Input: json.RawMessage("{\n\"file_path\": \"/a\"}")},
				{Type: transcript.ToolUse, ID: "functions.Bash:0", Name: "Bash", Input: nil},
			}},
			{Role: transcript.User, Content: []transcript.Block{
				{Type: transcript.ToolResult, ToolUseID: "toolu_1", Content: []transcript.Block{transcript.TextBlock("1\tx"), transcript.TextBlock(""), {Type: transcript.Image, Raw: json.RawMessage(pixel)}}},
				{Type: transcript.ToolResult, ToolUseID: "functions.Bash:0", IsError: true},
				transcript.TextBlock("(a note)"),
			}},
			{ID: "msg_2", Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.Thinking, Text: "only this"}}},
			transcript.UserText("go on"),
		},
	}
}

func TestGoldenRequest(t *testing.T) {
	got := encoded(t, offline(t), everything())
	wiretest.Golden(t, filepath.Join("testdata", "request.json"), got)
}

// TestBodyIsTheSDKs compares the body with what the SDK's own types make of the
// same conversation.
func TestBodyIsTheSDKs(t *testing.T) {
	image := sdk.NewImageBlockBase64("image/png", "iVBORw0KGgo=")
	mark := sdk.NewCacheControlEphemeralParam()
	want := sdk.MessageNewParams{
		Model:     "claude-sonnet-4-5-20250929",
		MaxTokens: 64_000,
		Thinking:  sdk.ThinkingConfigParamOfEnabled(2048),
		System:    []sdk.TextBlockParam{{Text: "You are careful."}, {Text: "Folder: /srv/repo", CacheControl: mark}},
		Tools: []sdk.ToolUnionParam{
			{OfTool: &sdk.ToolParam{Name: "Read", Description: param.NewOpt(`Reads a "file".`), InputSchema: sdk.ToolInputSchemaParam{
				Properties: map[string]any{"file_path": map[string]any{"type": "string"}}, Required: []string{"file_path"},
			}}},
			{OfTool: &sdk.ToolParam{Name: "Bash", Description: param.NewOpt("Runs <a & b>."), CacheControl: mark, InputSchema: sdk.ToolInputSchemaParam{
				Properties: map[string]any{"command": map[string]any{"type": "string"}},
			}}},
		},
		Messages: []sdk.MessageParam{
			sdk.NewUserMessage(sdk.NewTextBlock("Look at this:\t<tag> \u2028 \x01"), image),
			sdk.NewAssistantMessage(
				sdk.NewThinkingBlock("sig0", ""), sdk.NewThinkingBlock("sig1", "hm"), sdk.NewRedactedThinkingBlock("opaque"),
				sdk.NewTextBlock("Reading."),
				sdk.NewToolUseBlock("toolu_1", map[string]any{"file_path": "/a"}, "Read"),
				sdk.NewToolUseBlock("functions_Bash_0", map[string]any{}, "Bash"),
			),
			sdk.NewUserMessage(
				sdk.ContentBlockParamUnion{OfToolResult: &sdk.ToolResultBlockParam{ToolUseID: "toolu_1", Content: []sdk.ToolResultBlockParamContentUnion{
					{OfText: &sdk.TextBlockParam{Text: "1\tx"}}, {OfImage: image.OfImage},
				}}},
				sdk.NewToolResultBlock("functions_Bash_0", "(no output)", true),
				sdk.ContentBlockParamUnion{OfText: &sdk.TextBlockParam{Text: "(a note)", CacheControl: mark}},
			),
			sdk.NewAssistantMessage(sdk.NewTextBlock("(no text)")),
			sdk.NewUserMessage(sdk.ContentBlockParamUnion{OfText: &sdk.TextBlockParam{Text: "go on", CacheControl: mark}}),
		},
	}
	var got sdk.MessageNewParams
	if err := json.Unmarshal(encoded(t, offline(t), everything()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
		t.Error("params (-want +got):\n" + diff)
	}
}

// normal is params as plain values. The SDK spells content that is one string
// as a list, and writes is_error when it is false.
func normal(t *testing.T, params sdk.MessageNewParams) any {
	t.Helper()
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "stream")
	return relax(v)
}

func relax(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["is_error"] == false {
			delete(v, "is_error")
		}
		if text, ok := v["content"].(string); ok {
			v["content"] = []any{map[string]any{"type": "text", "text": text}}
		}
		for k := range v {
			v[k] = relax(v[k])
		}
	case []any:
		for i := range v {
			v[i] = relax(v[i])
		}
	}
	return v
}

// TestPrefixStaysTheSame: what the API remembers of one request stands at the
// beginning of the next.
func TestPrefixStaysTheSame(t *testing.T) {
	m := offline(t)
	req := provider.Request{Model: "opus", System: []string{"s"}, Tools: everything().Tools, Messages: rounds(3)}
	for range 5 {
		before := encoded(t, m, req)
		req.Messages = appendRound(req.Messages, len(req.Messages))
		after := encoded(t, m, req)
		plain := func(data []byte) string {
			return strings.ReplaceAll(string(data), `,"cache_control":{"type":"ephemeral"}}`, "}")
		}
		if !strings.HasPrefix(plain(after), strings.TrimSuffix(plain(before), "]}")) {
			t.Fatalf("request\n%s\nis not the beginning of\n%s", before, after)
		}
		if n := bytes.Count(after, []byte("cache_control")); n != 4 {
			t.Errorf("%d cache marks, want 4", n)
		}
	}
	other := req
	other.Agent = provider.Agent{Name: "worker"}
	other.Messages = []transcript.Message{transcript.UserText("another agent of the team")}
	head := func(data []byte) string { return string(data[:bytes.Index(data, []byte(`"messages"`))]) }
	if a, b := head(encoded(t, m, req)), head(encoded(t, m, other)); a != b {
		t.Errorf("system and tools differ between agents:\n%s\n%s", a, b)
	}
}

// TestMemoryChangesNothing: whatever becomes of a conversation, its encoding is
// that of a model which remembers nothing, and bodies already made stay as they
// were.
func TestMemoryChangesNothing(t *testing.T) {
	text := rapid.StringN(0, 8, -1)
	message := func(rt *rapid.T, i int) transcript.Message {
		if i%2 == 0 {
			return transcript.UserText(text.Draw(rt, "text"))
		}
		return transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{
			{Type: transcript.Thinking, Text: "t", Signature: text.Draw(rt, "signature")}, transcript.TextBlock(text.Draw(rt, "text")),
		}}
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := offline(t)
		var messages []transcript.Message
		type sent struct {
			body *wire.Body
			want []byte
		}
		var all []sent
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0: // cut, as a rewind does
				messages = slices.Clip(messages[:rapid.IntRange(0, len(messages)).Draw(rt, "length")])
			case 1: // change in the middle, as clearing old results does
				if len(messages) > 0 {
					messages = slices.Clone(messages)
					i := rapid.IntRange(0, len(messages)-1).Draw(rt, "at")
					messages[i] = message(rt, i)
				}
			case 2: // change one block of the last, and join another to it
				if n := len(messages); n > 0 {
					content := slices.Clone(messages[n-1].Content)
					content[0].Text = text.Draw(rt, "changed")
					messages[n-1].Content = append(content, transcript.TextBlock(text.Draw(rt, "joined")))
				}
			default:
				messages = append(messages, message(rt, len(messages)))
			}
			if len(messages) == 0 {
				continue
			}
			req := provider.Request{Model: "claude-sonnet-4-5-20250929", Messages: messages}
			want := encoded(t, offline(t), req)
			all = append(all, sent{m.body(req), want})
			for i, s := range all {
				got, err := io.ReadAll(s.body.Reader())
				if err != nil || !bytes.Equal(got, s.want) {
					rt.Fatalf("body %d of %d is\n%s\nwant\n%s", i, len(all), got, s.want)
				}
			}
		}
	})
}

func TestTokenLimits(t *testing.T) {
	const budget, adaptive = `"type":"enabled","budget_tokens":%d`, `"thinking":{"type":"adaptive","display":"summarized"}`
	for _, c := range []struct {
		name                string
		model               string
		maxTokens, thinking int
		want                []string
	}{
		{"the model's own", "claude-opus-4-6", 0, 0, []string{`"max_tokens":128000`}},
		{"unknown model", "my-model", 0, 0, []string{`"model":"my-model"`, `"max_tokens":8192`}},
		{"asked", "claude-sonnet-4-5-20250929", 1000, 0, []string{`"max_tokens":1000`}},
		{"budget", "claude-sonnet-4-5-20250929", 20000, 8000, []string{`"max_tokens":20000`, fmt.Sprintf(budget, 8000)}},
		{"budget beyond max_tokens", "claude-sonnet-4-5-20250929", 4000, 8000, []string{`"max_tokens":12096`, fmt.Sprintf(budget, 8000)}},
		{"budget beyond the model", "claude-sonnet-4-5-20250929", 0, 100000, []string{`"max_tokens":64000`, fmt.Sprintf(budget, 59904)}},
		{"tiny budget", "claude-sonnet-4-5-20250929", 0, 1, []string{fmt.Sprintf(budget, 1024)}},
		{"adaptive model", "claude-opus-5-5", 0, 9000, []string{`"max_tokens":128000`, adaptive}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(encoded(t, offline(t), provider.Request{Model: c.model, MaxTokens: c.maxTokens, Thinking: c.thinking, Messages: []transcript.Message{transcript.UserText("x")}}))
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s\ndoes not have %s", got, want)
				}
			}
			if c.thinking == 0 && strings.Contains(got, "thinking") {
				t.Errorf("%s\nhas thinking", got)
			}
		})
	}
}

// TestNoThinkingInTheMiddle: the API refuses it when the calls being answered
// were made without.
func TestNoThinkingInTheMiddle(t *testing.T) {
	req := provider.Request{Model: "claude-sonnet-4-5-20250929", Thinking: 4000, Messages: rounds(1)}
	if got := encoded(t, offline(t), req); bytes.Contains(got, []byte("budget_tokens")) {
		t.Errorf("thinking is on: %s", got)
	}
	calls := &req.Messages[1]
	calls.Content = slices.Insert(calls.Content, 0, transcript.Block{Type: transcript.Thinking, Signature: "s"})
	if got := encoded(t, offline(t), req); !bytes.Contains(got, []byte("budget_tokens")) {
		t.Errorf("thinking is off: %s", got)
	}
}

func TestForeignCacheMarksAreDropped(t *testing.T) {
	req := provider.Request{Model: "claude-sonnet-4-5-20250929", Messages: []transcript.Message{{Role: transcript.User, Content: []transcript.Block{
		{Type: "document", Raw: json.RawMessage(`{"type": "document", "source": {}, "cache_control": {"type": "ephemeral"}}`)},
		{Type: "broken", Raw: json.RawMessage(`not json`)},
		transcript.TextBlock("bad \xff utf-8"),
	}}}}
	got := encoded(t, offline(t), req)
	want := `"content":[{"type":"document","source":{}},{"type":"text","text":"bad ` + "\ufffd" + ` utf-8","cache_control":{"type":"ephemeral"}}]`
	if !bytes.Contains(got, []byte(want)) {
		t.Errorf("%s\ndoes not have %s", got, want)
	}
}

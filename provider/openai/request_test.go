package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wiretest"
	"github.com/cadre-dev/cadre/transcript"
)

func encoded(t testing.TB, m *Model, req provider.Request) []byte {
	t.Helper()
	body := m.body(req)
	data, err := io.ReadAll(body.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(data)) != body.Size() || !json.Valid(data) {
		t.Fatalf("body of %d bytes says %d, or is no JSON: %s", len(data), body.Size(), data)
	}
	return data
}

func offline(t testing.TB, base string) *Model {
	t.Helper()
	m, err := New(Options{BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const pixel = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`

func everything() provider.Request {
	image := transcript.Block{Type: transcript.Image, Raw: json.RawMessage(pixel)}
	return provider.Request{
		Model:     "gpt-5",
		MaxTokens: 1000,
		Thinking:  5000,
		System:    []string{"You are careful.", "Folder: /srv/repo"},
		Tools: []provider.Tool{
			{Name: "Read", Description: "Reads a \"file\".", Schema: json.RawMessage("{\n \"type\": \"object\",\n \"properties\": {\"file_path\": {\"type\": \"string\"}}}")},
			{Name: "Bash", Description: "Runs <a & b>.", Schema: json.RawMessage(`{"type":"object"}`)},
		},
		Messages: []transcript.Message{
			{Role: transcript.User, Content: []transcript.Block{
				transcript.TextBlock("Look at this:"), image,
				{Type: transcript.Image, Raw: json.RawMessage(`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`)},
				{Type: "document", Raw: json.RawMessage(`{"type":"document"}`)},
			}},
			{Role: transcript.Assistant, Content: []transcript.Block{
				{Type: transcript.Thinking, Text: "hm", Signature: "s"}, transcript.TextBlock("Reading."),
				{Type: transcript.ToolUse, ID: "call_1", Name: "Read", Input: json.RawMessage("{\n\"file_path\": \"/a\"}")},
				{Type: transcript.ToolUse, ID: "call_2", Name: "Bash"},
			}},
			{Role: transcript.User, Content: []transcript.Block{
				{Type: transcript.ToolResult, ToolUseID: "call_1", Content: []transcript.Block{transcript.TextBlock("1\tx"), image}},
				{Type: transcript.ToolResult, ToolUseID: "call_2", Text: "exit status 1", IsError: true},
				transcript.TextBlock("(a note)"),
			}},
			{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.ToolUse, ID: "call_3", Name: "Bash", Input: json.RawMessage(`{}`)}}},
			{Role: transcript.User, Content: []transcript.Block{{Type: transcript.ToolResult, ToolUseID: "call_3", Text: "ok"}}},
			{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.Thinking, Text: "only this"}}},
			{Role: transcript.User, Content: []transcript.Block{transcript.TextBlock("go"), transcript.TextBlock("on")}},
		},
	}
}

func TestGoldenRequest(t *testing.T) {
	wiretest.Golden(t, filepath.Join("testdata", "request.json"), encoded(t, offline(t, "http://localhost:11434/v1"), everything()))
}

// TestBodyIsTheSDKs compares the body with what the SDK's own types make of the
// same conversation.
func TestBodyIsTheSDKs(t *testing.T) {
	call := func(id, name, arguments string) sdk.ChatCompletionMessageToolCallUnionParam {
		return sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID: id, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: name, Arguments: arguments},
		}}
	}
	text, picture := sdk.TextContentPart, func(url string) sdk.ChatCompletionContentPartUnionParam {
		return sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: url})
	}
	const data = "data:image/png;base64,iVBORw0KGgo="
	tool := func(name, description string, schema shared.FunctionParameters) sdk.ChatCompletionToolUnionParam {
		return sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Description: param.NewOpt(description), Parameters: schema})
	}
	want := sdk.ChatCompletionNewParams{
		Model:               "gpt-5",
		MaxCompletionTokens: param.NewOpt[int64](1000),
		StreamOptions:       sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
		Tools: []sdk.ChatCompletionToolUnionParam{
			tool("Read", `Reads a "file".`, shared.FunctionParameters{"type": "object", "properties": map[string]any{"file_path": map[string]any{"type": "string"}}}),
			tool("Bash", "Runs <a & b>.", shared.FunctionParameters{"type": "object"}),
		},
		Messages: []sdk.ChatCompletionMessageParamUnion{
			sdk.SystemMessage("You are careful.\n\nFolder: /srv/repo"),
			sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{
				text("Look at this:"), picture(data), picture("https://example.com/a.png"),
				text("(a block of type document, which this model cannot be shown)"),
			}),
			{OfAssistant: &sdk.ChatCompletionAssistantMessageParam{
				Content:   sdk.ChatCompletionAssistantMessageParamContentUnion{OfString: param.NewOpt("Reading.")},
				ToolCalls: []sdk.ChatCompletionMessageToolCallUnionParam{call("call_1", "Read", `{"file_path":"/a"}`), call("call_2", "Bash", `{}`)},
			}},
			sdk.ToolMessage("1\tx", "call_1"),
			sdk.ToolMessage("exit status 1", "call_2"),
			sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{text("From the result of call call_1:"), picture(data), text("(a note)")}),
			{OfAssistant: &sdk.ChatCompletionAssistantMessageParam{ToolCalls: []sdk.ChatCompletionMessageToolCallUnionParam{call("call_3", "Bash", `{}`)}}},
			sdk.ToolMessage("ok", "call_3"),
			sdk.AssistantMessage("(no text)"),
			sdk.UserMessage("go\non"),
		},
	}
	var got sdk.ChatCompletionNewParams
	if err := json.Unmarshal(encoded(t, offline(t, ""), everything()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
		t.Error("params (-want +got):\n" + diff)
	}
}

// normal is params as plain values; content that is null is none.
func normal(t *testing.T, params sdk.ChatCompletionNewParams) any {
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
	for _, m := range v["messages"].([]any) {
		if m := m.(map[string]any); m["content"] == nil {
			delete(m, "content")
		}
	}
	return v
}

func TestParams(t *testing.T) {
	hi := []transcript.Message{transcript.UserText("hi")}
	for _, c := range []struct {
		base string
		req  provider.Request
		want string
	}{
		{"", provider.Request{Model: "gpt-5", Messages: hi}, `{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`},
		{"", provider.Request{Model: "gpt-5", MaxTokens: 7, Messages: hi}, `"max_completion_tokens":7,`},
		{"http://localhost:1/v1", provider.Request{Model: "sonnet", MaxTokens: 7, Messages: hi}, `{"model":"sonnet","max_tokens":7,`},
		{"", provider.Request{Model: "x", System: []string{" "}, Messages: hi}, `"messages":[{"role":"user"`},
	} {
		if got := string(encoded(t, offline(t, c.base), c.req)); !strings.Contains(got, c.want) {
			t.Errorf("%s\ndoes not have %s", got, c.want)
		}
	}
}

// TestPrefixStaysTheSame: servers remember prompts by their beginning.
func TestPrefixStaysTheSame(t *testing.T) {
	m := offline(t, "")
	req := everything()
	for i := range 5 {
		before := encoded(t, m, req)
		req.Messages = append(req.Messages,
			transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{transcript.TextBlock(fmt.Sprint("step ", i))}},
			transcript.UserText("next"))
		after := encoded(t, m, req)
		if !bytes.HasPrefix(after, bytes.TrimSuffix(before, []byte("]}"))) {
			t.Fatalf("request\n%s\nis not the beginning of\n%s", before, after)
		}
	}
}

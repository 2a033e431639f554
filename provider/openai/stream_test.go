package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
	"github.com/cadre-dev/cadre/provider/internal/wiretest"
	"github.com/cadre-dev/cadre/transcript"
)

const canary = "sk-canary-77ab"

func newModel(t testing.TB, server *fakeapi.Server, change ...func(*Options)) *Model {
	t.Helper()
	o := Options{BaseURL: server.URL + "/v1", APIKey: canary, HTTPClient: server.Client(), Retry: provider.RetryPolicy{For: -1}}
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
	return provider.Request{Model: "gpt-5", Messages: []transcript.Message{transcript.UserText(text)}}
}

// full is an answer with every kind of block.
func full() fakeapi.Reply {
	reply := fakeapi.Answer(
		fakeapi.Thought("a thought", ""),
		fakeapi.Text("Grüße to you."),
		fakeapi.ToolUse("call_1", "Read", `{"file_path":"/a"}`),
		fakeapi.ToolUse("call_2", "Bash", `{"command":"ls"}`),
	)
	reply.Usage = fakeapi.Usage{Input: 5, CacheRead: 90, CacheWrite: 3, Output: 20}
	return reply
}

func fullMessage() transcript.Message {
	return transcript.Message{
		ID: "chatcmpl-fake", Role: transcript.Assistant, Model: "fake-model", StopReason: "tool_use",
		Usage: transcript.Usage{InputTokens: 5, CacheReadInputTokens: 90, CacheCreationInputTokens: 3, OutputTokens: 20},
		Content: []transcript.Block{
			{Type: transcript.Thinking, Text: "a thought"},
			transcript.TextBlock("Grüße to you."),
			{Type: transcript.ToolUse, ID: "call_1", Name: "Read", Input: json.RawMessage(`{"file_path":"/a"}`)},
			{Type: transcript.ToolUse, ID: "call_2", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)},
		},
	}
}

func TestAnswerWithAllQuirks(t *testing.T) {
	for _, c := range []struct {
		name   string
		quirks fakeapi.Quirks
		change func(*transcript.Message)
	}{
		{"by the book", fakeapi.Quirks{}, nil},
		{"no usage", fakeapi.Quirks{NoUsage: true}, func(m *transcript.Message) { m.Usage = transcript.Usage{} }},
		{"no [DONE]", fakeapi.Quirks{NoDone: true}, nil},
		{"no finish_reason", fakeapi.Quirks{NoFinish: true}, nil},
		{"no index", fakeapi.Quirks{NoIndex: true}, nil},
		{"all calls are number 0", fakeapi.Quirks{ZeroIndex: true}, nil},
		{"arguments in one chunk", fakeapi.Quirks{WholeArguments: true}, nil},
		{"arguments in one chunk without index", fakeapi.Quirks{WholeArguments: true, NoIndex: true}, nil},
		{"arguments as an object", fakeapi.Quirks{ObjectArguments: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply := full()
			reply.Quirks = c.quirks
			server := wiretest.Start(t, wiretest.Always(reply))
			h := wiretest.Collect(t.Context(), newModel(t, server), ask("hi"))
			got, want := h.Whole(t), fullMessage()
			if c.change != nil {
				c.change(&want)
			}
			if diff := cmp.Diff(want, got.Message); diff != "" {
				t.Error("message (-want +got):\n" + diff)
			}
			if got.RequestID != "req_fake" {
				t.Errorf("request id %q", got.RequestID)
			}
			checkDeltas(t, h.Deltas, want)
		})
	}
}

// checkDeltas: the streamed pieces add up to the blocks, under their positions.
func checkDeltas(t *testing.T, deltas []provider.Event, m transcript.Message) {
	t.Helper()
	pieces := map[int]string{}
	for _, ev := range deltas {
		switch ev := ev.(type) {
		case provider.TextDelta:
			pieces[ev.Index] += ev.Text
		case provider.ThinkingDelta:
			pieces[ev.Index] += ev.Text
		case provider.ToolDelta:
			pieces[ev.Index] += ev.JSON
			if ev.Name != m.Content[ev.Index].Name {
				t.Errorf("delta %+v of call %s", ev, m.Content[ev.Index].Name)
			}
		}
	}
	for i, b := range m.Content {
		if want := b.Text + string(b.Input); pieces[i] != want {
			t.Errorf("block %d was streamed as %q, want %q", i, pieces[i], want)
		}
	}
}

// TestCutAfterEveryEvent: see the test of the same name in package anthropic.
// Here a block is known to be whole when the next one has begun.
func TestCutAfterEveryEvent(t *testing.T) {
	reply := full()
	events := reply.EventsOf(fakeapi.Chat)
	want := fullMessage()
	for k := range events {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			server := wiretest.Start(t, func(r *fakeapi.Request) fakeapi.Reply {
				return fakeapi.Reply{Events: events, Faults: fakeapi.Faults{Cut: r.Seq == 1, CutAfter: k}}
			})
			h := wiretest.Collect(t.Context(), newModel(t, server, func(o *Options) {
				o.Retry = provider.RetryPolicy{Base: 1, Cap: 1}
			}), ask("hi"))
			if h.Err != nil || h.Reply == nil {
				t.Fatalf("error %v, reply %+v", h.Err, h.Reply)
			}
			seen := bytes.Join(events[:k], nil)
			if retried := len(server.Requests()) == 2; retried != (k <= 1) { // the first chunk says nothing
				t.Fatalf("retried = %v", retried)
			}
			if k <= 1 || bytes.Contains(seen, []byte(`"finish_reason":"tool_calls"`)) {
				got := h.Whole(t).Message
				got.Usage = want.Usage // which may have been cut off
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error("message (-want +got):\n" + diff)
				}
				return
			}
			var e *provider.Error
			if !errors.As(h.Reply.Broken, &e) || e.Class != provider.Network {
				t.Errorf("broken by %v", h.Reply.Broken)
			}
			calls := h.Reply.Message.ToolUses()
			if begun := bytes.Contains(seen, []byte("call_2")); begun != (len(calls) == 1) {
				t.Errorf("calls %+v, the second has begun = %v", calls, begun)
			}
			if len(calls) == 1 {
				if diff := cmp.Diff(want.Content[2], calls[0]); diff != "" {
					t.Error("call (-want +got):\n" + diff)
				}
			}
			if h.Reply.Message.StopReason != "" {
				t.Errorf("stop reason %q", h.Reply.Message.StopReason)
			}
		})
	}
}

// decode reads a stream of data lines without a server.
func decode(stream io.Reader) (provider.Reply, error) {
	a := newAnswer("m")
	events := wire.NewEvents(stream)
	for !a.Done() && events.Next() {
		if _, err := a.Add(events.Event(), func(provider.Event) bool { return true }); err != nil {
			return a.Reply(), err
		}
	}
	return a.Reply(), events.Err()
}

func chunks(choices ...string) io.Reader {
	var b strings.Builder
	for _, c := range choices {
		fmt.Fprintf(&b, "data: {\"choices\":[%s]}\n\n", c)
	}
	return strings.NewReader(b.String())
}

func TestOddStreams(t *testing.T) {
	many := []string{}
	for i := range 200 {
		many = append(many, fmt.Sprintf(`{"delta":{"tool_calls":[{"index":%d,"id":"same","function":{"name":"T","arguments":"{\"n\":%d}"}}]}}`, i, i))
	}
	many = append(many, `{"finish_reason":"stop"}`)
	for _, c := range []struct {
		name   string
		stream io.Reader
		check  func(transcript.Message) bool
	}{
		{"nothing at all", chunks(`{"finish_reason":"stop"}`), func(m transcript.Message) bool {
			return len(m.Content) == 0 && m.StopReason == "end_turn" && m.ID != ""
		}},
		{"calls under stop, one id", chunks(many...), func(m transcript.Message) bool {
			ids := map[string]bool{}
			for i, b := range m.Content {
				ids[b.ID] = true
				if string(b.Input) != fmt.Sprintf(`{"n":%d}`, i) {
					return false
				}
			}
			return len(ids) == 200 && m.StopReason == "tool_use"
		}},
		{"length", chunks(`{"delta":{"content":"x"}}`, `{"finish_reason":"length"}`), func(m transcript.Message) bool { return m.StopReason == "max_tokens" }},
		{"length inside a call", chunks(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"T","arguments":"{\"x\":"}}]}}`, `{"finish_reason":"length"}`), func(m transcript.Message) bool {
			return m.StopReason == "max_tokens" && string(m.Content[0].Input) == `{"invalid_json":"{\"x\":"}`
		}},
		{"content filter", chunks(`{"finish_reason":"content_filter"}`), func(m transcript.Message) bool { return m.StopReason == "refusal" }},
		{"refusal", chunks(`{"delta":{"refusal":"No."}}`, `{"finish_reason":"stop"}`), func(m transcript.Message) bool {
			return m.StopReason == "refusal" && m.Content[0].Text == "No."
		}},
		{"a reason of its own", chunks(`{"finish_reason":"insane"}`), func(m transcript.Message) bool { return m.StopReason == "insane" }},
		{"content of other shapes", chunks(`{"delta":{"content":null}}`, `{"delta":{"content":[{"type":"text","text":"a"},{"text":"b"}]}}`, `{"delta":{"content":{"x":1}}}`, `{"finish_reason":"stop"}`), func(m transcript.Message) bool {
			return len(m.Content) == 1 && m.Content[0].Text == "ab"
		}},
		{"other choices", chunks(`{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}`, `{"finish_reason":"stop"}`), func(m transcript.Message) bool { return m.Content[0].Text == "yes" }},
		{"name repeated in each piece", chunks(
			`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"T","arguments":"{"}}]}}`,
			`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"T","arguments":"}"}}]}}`, `{"finish_reason":"tool_calls"}`), func(m transcript.Message) bool {
			return len(m.Content) == 1 && m.Content[0].Name == "T" && string(m.Content[0].Input) == "{}"
		}},
		{"calls without id and index", chunks(
			`{"delta":{"tool_calls":[{"function":{"name":"A","arguments":"{}"}}]}}`,
			`{"delta":{"tool_calls":[{"function":{"name":"B","arguments":"{"}}]}}`,
			`{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]}}`, `{"finish_reason":"tool_calls"}`), func(m transcript.Message) bool {
			return len(m.Content) == 2 && m.Content[0].ID != "" && m.Content[0].ID != m.Content[1].ID && string(m.Content[1].Input) == "{}"
		}},
		{"null arguments", chunks(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"T","arguments":null}}]}}`, `{"finish_reason":"tool_calls"}`), func(m transcript.Message) bool { return string(m.Content[0].Input) == "{}" }},
		{"a nameless call", chunks(`{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}}`, `{"finish_reason":"tool_calls"}`), func(m transcript.Message) bool { return len(m.Content) == 0 }},
		{"reasoning under the other name", chunks(`{"delta":{"reasoning":"r"}}`, `{"finish_reason":"stop"}`), func(m transcript.Message) bool { return m.Content[0].Type == transcript.Thinking }},
		{"done without a reason", strings.NewReader("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\ndata: {}\n\n"), func(m transcript.Message) bool { return m.StopReason == "end_turn" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode(c.stream)
			if err != nil || !c.check(got.Message) {
				t.Errorf("error %v, message %+v", err, got.Message)
			}
		})
	}
}

func TestErrorsInTheStream(t *testing.T) {
	for data, want := range map[string]provider.Class{
		`{"error":{"message":"rate limited","code":429}}`:    provider.RateLimit,
		`{"error":{"message":"oops","type":"server_error"}}`: provider.Server,
		`{"error":"out of memory"}`:                          provider.Server,
		`{"choices":[{"delta":{"tool_calls":"no"}}]}`:        provider.Malformed,
		`{"choices":`: provider.Malformed,
		`{"error":{"code":"context_length_exceeded","message":"x"}}`: provider.TooLong,
	} {
		server := wiretest.Start(t, wiretest.Always(fakeapi.Reply{Events: [][]byte{[]byte("data: " + data + "\n\n")}}))
		h := wiretest.Collect(t.Context(), newModel(t, server), ask("hi"))
		var e *provider.Error
		if !errors.As(h.Err, &e) || e.Class != want {
			t.Errorf("%s: %v, want %s", data, h.Err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   provider.Class
	}{
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, provider.TooLong},
		{401, `{"error":{"message":"Incorrect API key provided: ` + canary + `","code":"invalid_api_key"}}`, provider.Auth},
		{404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`, provider.ModelNotFound},
		{429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, provider.Billing},
		{429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`, provider.RateLimit},
		{500, ``, provider.Server}, {503, `<html>`, provider.Overloaded},
	} {
		server := wiretest.Start(t, func(*fakeapi.Request) fakeapi.Reply {
			return fakeapi.Reply{Status: c.status, Body: strings.NewReader(c.body)}
		})
		h := wiretest.Collect(t.Context(), newModel(t, server), ask("hi"))
		var e *provider.Error
		if !errors.As(h.Err, &e) || e.Class != c.want || e.Status != c.status || e.Message == "" {
			t.Errorf("%d %s: %v, want %s", c.status, c.body, h.Err, c.want)
		}
		if strings.Contains(fmt.Sprintf("%+v", e), canary) {
			t.Errorf("the key is in %+v", e)
		}
	}
}

// TestErrorsNameWhatToLookAt: see package anthropic.
func TestErrorsNameWhatToLookAt(t *testing.T) {
	for status, want := range map[int]string{
		401: "401 authentication_failed: x (set OPENAI_API_KEY)",
		404: `404 model_not_found: x (check --model, "model" in the settings or OPENAI_BASE_URL, which leads to URL/chat/completions)`,
	} {
		server := wiretest.Start(t, func(*fakeapi.Request) fakeapi.Reply {
			return fakeapi.Reply{Status: status, Body: strings.NewReader(`{"error":{"message":"x"}}`)}
		})
		m := newModel(t, server, func(o *Options) { o.APIKey, o.BaseURL = "", server.URL })
		h := wiretest.Collect(t.Context(), m, ask("hi"))
		if got := strings.ReplaceAll(h.Err.Error(), server.URL, "URL"); got != want {
			t.Errorf("error %q\n want %q", got, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Env: from-the-environment")
	server := wiretest.Start(t, wiretest.Always(fakeapi.Answer(fakeapi.Text("x"))))
	wiretest.Collect(t.Context(), newModel(t, server, func(o *Options) { o.UserAgent = "cadre/9" }), ask("hi")).Whole(t)
	wiretest.Collect(t.Context(), newModel(t, server, func(o *Options) { o.APIKey = "" }), ask("hi")).Whole(t)
	for i, want := range []string{"Bearer " + canary, ""} {
		r := server.Requests()[i]
		if got := r.Header.Get("Authorization"); got != want || r.Path != "/v1/chat/completions" {
			t.Errorf("request %d to %s has authorization %q, want %q", i, r.Path, got, want)
		}
		if r.Header.Get("Content-Length") != fmt.Sprint(len(r.Raw)) {
			t.Errorf("request %d has no length: %v", i, r.Header)
		}
		if strings.Contains(fmt.Sprint(r.Header), "from-the-environment") {
			t.Errorf("the environment shows in %v", r.Header)
		}
	}
	if got := server.Requests()[0].Header.Get("User-Agent"); got != "cadre/9" {
		t.Errorf("user agent %q", got)
	}
}

// TestRetriesAreVisible, and what is silent ends.
func TestRetriesAreVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.StartInMemory(func(r *fakeapi.Request) fakeapi.Reply {
			switch r.Seq {
			case 1:
				return fakeapi.Reply{Status: 429, Header: http.Header{"Retry-After": {"12"}}}
			case 2:
				return fakeapi.Reply{Faults: fakeapi.Faults{CutHeaders: true}}
			case 3:
				return fakeapi.Reply{Events: [][]byte{}, Faults: fakeapi.Faults{HoldOpen: true}}
			}
			reply := full()
			reply.Quirks.NoDone = true
			reply.Faults.HoldOpen = true // it is whole nevertheless
			return reply
		})
		defer server.Close()
		begun := time.Now()
		h := wiretest.Collect(t.Context(), newModel(t, server, func(o *Options) { o.Retry = provider.RetryPolicy{} }), ask("hi"))
		h.Whole(t)
		var classes []provider.Class
		for _, r := range h.Retries {
			classes = append(classes, r.Err.Class)
		}
		if diff := cmp.Diff([]provider.Class{provider.RateLimit, provider.Network, provider.Stalled}, classes); diff != "" {
			t.Error("retries (-want +got):\n" + diff)
		}
		if took := time.Since(begun); took < provider.DefaultPatience+12*time.Second || took > provider.DefaultPatience+30*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// FuzzAnswer and TestDamagedStreams: see package anthropic.
func FuzzAnswer(f *testing.F) {
	for _, stream := range quirky() {
		f.Add(bytes.Join(stream, nil))
	}
	f.Fuzz(func(t *testing.T, stream []byte) { wiretest.CheckAnyStream(t, decode, stream) })
}

// quirky are the events of an answer, by the book and with quirks.
func quirky() [][][]byte {
	var streams [][][]byte
	for _, q := range []fakeapi.Quirks{{}, {NoIndex: true}, {ZeroIndex: true}, {ObjectArguments: true}} {
		reply := full()
		reply.Quirks = q
		streams = append(streams, reply.EventsOf(fakeapi.Chat))
	}
	return streams
}

func TestDamagedStreams(t *testing.T) { wiretest.CheckDamaged(t, decode, quirky()...) }

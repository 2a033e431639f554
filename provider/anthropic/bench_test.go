package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wiretest"
	"github.com/cadre-dev/cadre/transcript"
)

// rounds makes a conversation of n rounds of about 2 KB each.
func rounds(n int) []transcript.Message {
	messages := []transcript.Message{transcript.UserText("Do the work.")}
	for i := range n {
		messages = appendRound(messages, i)
	}
	return messages
}

func appendRound(messages []transcript.Message, i int) []transcript.Message {
	id := fmt.Sprintf("toolu_%06d", i)
	input, _ := json.Marshal(map[string]string{"file_path": fmt.Sprintf("/srv/repo/pkg/file%d.go", i)})
	result := strings.Repeat(fmt.Sprintf("%6d\tfunc line%d() { return \"x\" }\n", i, i), 45)
	return append(messages,
		transcript.Message{ID: "msg_" + id, Role: transcript.Assistant, Content: []transcript.Block{
			transcript.TextBlock("I will read the next file now, to see what it says about the task."),
			{Type: transcript.ToolUse, ID: id, Name: "Read", Input: input},
		}},
		transcript.Message{Role: transcript.User, Content: []transcript.Block{
			{Type: transcript.ToolResult, ToolUseID: id, Text: result},
		}})
}

// workload is a request like a session's: a system prompt of 12 KB, 20 tools of
// 1.5 KB.
func workload(n int) provider.Request {
	req := provider.Request{Model: "claude-sonnet-4-5-20250929", System: []string{strings.Repeat("You are careful. ", 700)}, Messages: rounds(n)}
	schema := json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string","description":"` + strings.Repeat("d", 500) + `"}}}`)
	for i := range 20 {
		req.Tools = append(req.Tools, provider.Tool{Name: fmt.Sprintf("Tool%d", i), Description: strings.Repeat("Does it. ", 100), Schema: schema})
	}
	return req
}

// grow adds a round for iteration i and shrinks the conversation back after 50,
// so that it stays about as long.
func grow(messages []transcript.Message, n, i int) []transcript.Message {
	if len(messages) > 2*(n+50) {
		messages = messages[: 2*n+1 : 2*n+1]
	}
	return appendRound(messages, 1_000_000+i)
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{10, 200, 1000} {
		b.Run(fmt.Sprintf("rounds=%d", n), func(b *testing.B) {
			m, err := New(Options{})
			if err != nil {
				b.Fatal(err)
			}
			req := workload(n)
			m.body(req)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				req.Messages = grow(req.Messages, n, i)
				body := m.body(req)
				b.ReportMetric(float64(body.Size()), "B/body")
				i++
			}
		})
	}
}

// BenchmarkEncodeAnew is a first request: after a start, or when the memory of
// the conversation was dropped.
func BenchmarkEncodeAnew(b *testing.B) {
	for _, n := range []int{200, 1000} {
		b.Run(fmt.Sprintf("rounds=%d", n), func(b *testing.B) {
			req := workload(n)
			for b.Loop() {
				m, _ := New(Options{})
				m.body(req)
			}
		})
	}
}

// BenchmarkTurn sends a request and reads its answer, over loopback TCP; the
// minimal variant posts the same bytes and scans the answer's lines.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{200, 1000} {
		reply := fakeapi.Answer(fakeapi.Text("Now the next one."), fakeapi.ToolUse("toolu_x", "Read", `{"file_path":"/srv/repo/a.go"}`))
		events := [][]byte{bytes.Join(reply.EventsOf(fakeapi.Messages), nil)}
		server := fakeapi.StartDiscarding(fakeapi.Reply{Events: events})
		b.Run(fmt.Sprintf("rounds=%d/cadre", n), func(b *testing.B) {
			m := newModel(b, server)
			req := workload(n)
			wiretest.Collect(b.Context(), m, req)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				req.Messages = grow(req.Messages, n, i)
				if h := wiretest.Collect(b.Context(), m, req); h.Reply == nil {
					b.Fatal(h.Err)
				}
				i++
			}
		})
		b.Run(fmt.Sprintf("rounds=%d/minimal", n), func(b *testing.B) {
			m, _ := New(Options{})
			data, err := io.ReadAll(m.body(workload(n + 25)).Reader())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				minimal(b, server, data)
			}
		})
		server.Close()
	}
}

func minimal(b *testing.B, server *fakeapi.Server, data []byte) {
	resp, err := server.Client().Post(server.URL+"/v1/messages", "application/json", bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status)
	}
	scanner := bufio.NewScanner(resp.Body)
	for scanner.Scan() {
		if data, ok := bytes.CutPrefix(scanner.Bytes(), []byte("data: ")); ok {
			var v struct{ Type string }
			if err := json.Unmarshal(data, &v); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkNew is what a start pays.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(Options{APIKey: "k"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode reads an answer of 2,000 pieces, as we do and as the SDK does.
func BenchmarkDecode(b *testing.B) {
	text := fakeapi.Text(strings.Repeat("some words of text ", 1000))
	text.Pieces = 2000
	reply := fakeapi.Answer(text)
	stream := bytes.Join(reply.EventsOf(fakeapi.Messages), nil)
	b.Run("cadre", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got, err := decode(bytes.NewReader(stream)); err != nil || len(got.Message.Content) != 1 {
				b.Fatal(err)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			resp := &http.Response{Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(stream))}
			events := ssestream.NewStream[sdk.MessageStreamEventUnion](ssestream.NewDecoder(resp), nil)
			var m sdk.Message
			for events.Next() {
				if err := m.Accumulate(events.Current()); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

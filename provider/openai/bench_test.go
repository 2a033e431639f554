package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// BenchmarkEncode adds a round of about 2 KB to a conversation of n.
func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{200, 1000} {
		b.Run(fmt.Sprintf("rounds=%d", n), func(b *testing.B) {
			m := offline(b, "")
			req := provider.Request{Model: "gpt-5", System: []string{strings.Repeat("You are careful. ", 700)}, Tools: everything().Tools,
				Messages: []transcript.Message{transcript.UserText("Do the work.")}}
			for i := range n {
				req.Messages = appendRound(req.Messages, i)
			}
			full := len(req.Messages)
			m.body(req)
			b.ReportAllocs()
			i := n
			for b.Loop() {
				if len(req.Messages) > full+100 {
					req.Messages = req.Messages[:full:full]
				}
				req.Messages = appendRound(req.Messages, i)
				b.ReportMetric(float64(m.body(req).Size()), "B/body")
				i++
			}
		})
	}
}

func appendRound(messages []transcript.Message, i int) []transcript.Message {
	id := fmt.Sprintf("call_%06d", i)
	return append(messages,
		transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{
			transcript.TextBlock("I will read the next file now."),
			{Type: transcript.ToolUse, ID: id, Name: "Read", Input: json.RawMessage(`{"file_path":"/srv/repo/file.go"}`)},
		}},
		transcript.Message{Role: transcript.User, Content: []transcript.Block{
			{Type: transcript.ToolResult, ToolUseID: id, Text: strings.Repeat(fmt.Sprintf("%6d\tfunc line%d() { return \"x\" }\n", i, i), 45)},
		}})
}

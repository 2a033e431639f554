package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/transcript"
)

// The conversation of a teammate that was resumed in another place is a copy, which goes
// on: what it has in common with the first is listed once, with a result that only it has.
func TestACopiedConversationIsToldOnce(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	line := func(uuid string, kind transcript.Kind, b transcript.Block) transcript.Entry {
		return transcript.Entry{
			UUID: uuid, Kind: kind, TeamName: "alpha", AgentName: "ann", At: at, Message: transcript.Message{Content: []transcript.Block{b}},
		}
	}
	said := line("1", transcript.KindAssistant, transcript.TextBlock("I begin."))
	call := line("2", transcript.KindAssistant, transcript.Block{
		Type: transcript.ToolUse, ID: "toolu_1", Name: "TaskList", Input: json.RawMessage(`{}`),
	})
	failed := line("3", transcript.KindUser, transcript.Block{Type: transcript.ToolResult, ToolUseID: "toolu_1", Text: "lost", IsError: true})
	again := call
	again.UUID, again.Message.Content = "4", []transcript.Block{{Type: transcript.ToolUse, ID: "toolu_2", Name: "TaskList", Input: json.RawMessage(`{}`)}}
	g := gathered{calls: make(map[string]map[string]int)}
	g.add([]transcript.Entry{said, call}, "alpha")
	g.add([]transcript.Entry{said, call, failed, again}, "alpha")
	var got []string
	for _, d := range g.deeds {
		got = append(got, d.Kind+" "+d.Tool+d.Error)
	}
	if diff := cmp.Diff([]string{"text ", "call TaskListlost", "call TaskList"}, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

package control

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/transcript"
)

var identity = Identity{
	SessionID: "s-1", Cwd: "/w", Model: "claude-x", PermissionMode: "default", APIKeySource: "ANTHROPIC_API_KEY",
	Version: "2.1.41", Tools: []string{"Read", "Agent"}, Agents: []string{"general-purpose"},
}

var lead = event.Agent{Session: "s-1"}

// lines writes events and returns what came out, a decoded object per line, and
// the text of each.
func lines(t *testing.T, events ...event.Event) ([]map[string]any, []string) {
	t.Helper()
	var out strings.Builder
	w := NewWriter(&out, identity)
	for _, ev := range events {
		if err := w.Event(ev); err != nil {
			t.Fatal(err)
		}
	}
	var objects []map[string]any
	var texts []string
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("line is no JSON object: %v\n%s", err, line)
		}
		objects, texts = append(objects, m), append(texts, strings.TrimSuffix(line, "\n"))
	}
	return objects, texts
}

func on(a event.Agent, body event.Body) event.Event { return event.Event{Agent: a, Body: body} }

func assistant(uuid, id string, blocks ...transcript.Block) event.Stored {
	return event.Stored{Entry: transcript.Entry{
		UUID: uuid, Kind: transcript.KindAssistant,
		Message: transcript.Message{
			ID: id, Role: transcript.Assistant, Model: "claude-x", Content: blocks, StopReason: "tool_use",
			Usage: transcript.Usage{InputTokens: 10, OutputTokens: 1},
		},
	}}
}

func user(uuid string, blocks ...transcript.Block) event.Stored {
	return event.Stored{Entry: transcript.Entry{
		UUID: uuid, Kind: transcript.KindUser, Message: transcript.Message{Role: transcript.User, Content: blocks},
	}}
}

func use(id, name string) transcript.Block {
	return transcript.Block{Type: transcript.ToolUse, ID: id, Name: name, Input: json.RawMessage(`{"a":1}`)}
}

func result(id, text string) transcript.Block {
	return transcript.Block{Type: transcript.ToolResult, ToolUseID: id, Text: text}
}

func keysOf(line string) []string {
	dec := json.NewDecoder(strings.NewReader(line))
	var keys []string
	depth, isKey := 0, false
	for {
		tok, err := dec.Token()
		if err != nil {
			return keys
		}
		if d, ok := tok.(json.Delim); ok {
			if d == '{' || d == '[' {
				depth++
			} else {
				depth--
			}
			isKey = depth == 1
			continue
		}
		if depth != 1 {
			continue
		}
		if isKey {
			keys = append(keys, tok.(string))
		}
		isKey = !isKey
	}
}

func TestInit(t *testing.T) {
	objects, texts := lines(t, on(lead, event.TurnStarted{}))
	want := []string{ // facts: claude-code §12
		"type", "subtype", "cwd", "session_id", "tools", "mcp_servers", "model", "permissionMode", "slash_commands",
		"apiKeySource", "claude_code_version", "output_style", "agents", "skills", "plugins", "uuid", "fast_mode_state",
	}
	if diff := cmp.Diff(want, keysOf(texts[0])); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, list := range []string{"tools", "mcp_servers", "slash_commands", "agents", "skills", "plugins"} {
		if _, ok := objects[0][list].([]any); !ok {
			t.Errorf("%s is %v, want a list", list, objects[0][list])
		}
	}
	if diff := cmp.Diff([]any{"Read", "Task"}, objects[0]["tools"]); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestMainThread(t *testing.T) {
	withTwin := user("u-5", result("toolu_1", "ok"))
	withTwin.Entry.ToolUseResult = json.RawMessage(`{"stdout":"ok"}`)
	_, texts := lines(t,
		on(lead, user("u-1", transcript.TextBlock("the prompt"))),
		on(lead, assistant("u-2", "msg_1", transcript.TextBlock("hi"))),
		on(lead, assistant("u-3", "msg_1", use("toolu_1", "Bash"))),
		on(lead, withTwin),
		on(lead, user("u-6", transcript.TextBlock("mail <b>"))),
		on(lead, user("u-7", transcript.TextBlock(transcript.InterruptedForTool))),
	)
	want := []string{
		`{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"hi"}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,"service_tier":"standard"},"context_management":null},"parent_tool_use_id":null,"session_id":"s-1","uuid":"u-2"}`,
		`{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"a":1}}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,"service_tier":"standard"},"context_management":null},"parent_tool_use_id":null,"session_id":"s-1","uuid":"u-3"}`,
		`{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"ok"}]},"parent_tool_use_id":null,"session_id":"s-1","uuid":"u-5","tool_use_result":{"stdout":"ok"}}`,
		`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]},"parent_tool_use_id":null,"session_id":"s-1","uuid":"u-7"}`,
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestSubAgentsAreToldTeammatesAreNot(t *testing.T) {
	sub := event.Agent{Session: "s-1", ID: "a1", Call: "toolu_1"}
	nested := event.Agent{Session: "s-1", ID: "a2", Call: "toolu_2"}
	mate := event.Agent{Session: "s-1", ID: "t1", Name: "ann", Call: "toolu_3"}
	ofMate := event.Agent{Session: "s-1", ID: "a3", Call: "toolu_4"}
	objects, _ := lines(t,
		on(lead, assistant("u-1", "m1", use("toolu_1", "Agent"), use("toolu_3", "Agent"))),
		on(sub, event.TurnStarted{}), // a sub-agent has no init
		on(sub, user("u-2", transcript.TextBlock("its prompt"))),
		on(sub, assistant("u-3", "m2", transcript.TextBlock("thinking aloud"))),
		on(sub, assistant("u-4", "m2", use("toolu_2", "Agent"))),
		on(nested, user("u-5", transcript.TextBlock("deeper"))),
		on(mate, event.AgentStarted{Teammate: true}),
		on(mate, user("u-6", transcript.TextBlock("its prompt"))),
		on(mate, assistant("u-7", "m3", use("toolu_4", "Agent"))),
		on(ofMate, user("u-8", transcript.TextBlock("a teammate's sub-agent"))),
	)
	var got [][2]any
	for _, o := range objects {
		got = append(got, [2]any{o["uuid"], o["parent_tool_use_id"]})
	}
	want := [][2]any{{"u-1", nil}, {"u-2", "toolu_1"}, {"u-4", "toolu_1"}, {"u-5", "toolu_2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uuid and parent (-want +got):\n%s", diff)
	}
}

func TestNotes(t *testing.T) {
	objects, _ := lines(t,
		on(lead, event.Retrying{Attempt: 2, Max: 6, Wait: 1500 * time.Millisecond, Status: 429, Reason: "slow down"}),
		on(lead, event.Retrying{Attempt: 3, Reason: "silent", Wait: time.Second, Silent: time.Minute}),
		on(lead, event.ToolDenied{Call: "toolu_1", Tool: "Bash", Reason: "no rule"}),
		on(lead, event.TurnEnded{Outcome: event.Outcome{Reason: event.Failed, Class: "overloaded", Status: 529, Err: "busy"}}),
	)
	for _, o := range objects {
		delete(o, "uuid")
	}
	want := []map[string]any{
		{"type": "system", "subtype": "api_retry", "attempt": 1.0, "max_retries": 5.0, "retry_delay_ms": 1500.0, "error_status": 429.0, "error": "slow down", "session_id": "s-1"},
		{"type": "system", "subtype": "api_retry", "attempt": 2.0, "max_retries": 2.0, "retry_delay_ms": 1000.0, "error_status": nil, "error": "silent", "session_id": "s-1",
			"no_response": map[string]any{"waited_ms": 60000.0, "retry_wait_ms": 1000.0}},
		{"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "toolu_1", "message": "no rule", "session_id": "s-1"},
	}
	if diff := cmp.Diff(want, objects[:3]); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	synthetic := objects[3]
	message := synthetic["message"].(map[string]any)
	if synthetic["error"] != "overloaded" || synthetic["is_api_error_message"] != true || message["model"] != "<synthetic>" {
		t.Errorf("the error of the API is written as %v", synthetic)
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestWriteErrorIsTheWriters(t *testing.T) {
	err := NewWriter(brokenPipe{}, identity).Event(on(lead, event.TurnStarted{}))
	if !errors.Is(err, errPipe) {
		t.Errorf("Event: %v, want %v", err, errPipe)
	}
}

// required are the fields without which SDKs do not read a result (facts:
// sdk-contract §2.3, §2.9).
var required = []string{
	"type", "subtype", "uuid", "session_id", "duration_ms", "duration_api_ms", "is_error", "num_turns", "stop_reason",
	"total_cost_usd", "usage", "modelUsage", "permission_denials",
}

func TestResult(t *testing.T) {
	done := event.Outcome{Reason: event.Done, Text: "the answer", StopReason: "end_turn", Rounds: 2, APITime: time.Second}
	with := func(change func(*event.Outcome)) event.Outcome {
		out := done
		change(&out)
		return out
	}
	for _, tc := range []struct {
		name    string
		outcome *event.Outcome
		mark    string // that the interruption left
		end     End
		want    map[string]any
	}{
		{"done", &done, "", End{}, map[string]any{
			"subtype": "success", "is_error": false, "terminal_reason": "completed", "result": "the answer", "errors": nil,
			"num_turns": 2.0, "stop_reason": "end_turn", "duration_api_ms": 1000.0,
		}},
		{"limit of rounds", ptr(with(func(o *event.Outcome) { o.Reason = event.MaxRounds; o.StopReason = "tool_use" })), "", End{}, map[string]any{
			"subtype": "error_max_turns", "is_error": true, "terminal_reason": "max_turns", "result": nil,
			"errors": []any{"Reached maximum number of turns (2)"}, "num_turns": 3.0, "stop_reason": "tool_use",
		}},
		{"error of the API", ptr(with(func(o *event.Outcome) {
			o.Reason, o.Class, o.Status, o.Err, o.StopReason = event.Failed, "invalid_request", 400, "BAD", ""
		})), "", End{}, map[string]any{
			"subtype": "success", "is_error": true, "terminal_reason": "api_error", "result": "API Error: 400 BAD", "errors": nil,
			"stop_reason": "stop_sequence", "api_error_status": 400.0,
		}},
		{"the loop gave up", ptr(with(func(o *event.Outcome) { o.Reason, o.Err = event.Failed, "nothing, repeatedly" })), "", End{}, map[string]any{
			"subtype": "error_during_execution", "is_error": true, "errors": []any{"nothing, repeatedly"}, "result": nil,
		}},
		{"interrupted while streaming", ptr(with(func(o *event.Outcome) { o.Reason = event.Interrupted })),
			transcript.Interrupted, End{Interrupted: true}, map[string]any{
				"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming", "errors": []any{},
			}},
		{"interrupted in a tool", ptr(with(func(o *event.Outcome) { o.Reason = event.Interrupted })),
			transcript.InterruptedForTool, End{Interrupted: true}, map[string]any{
				"subtype": "error_during_execution", "terminal_reason": "aborted_tools",
			}},
		{"the team was still at work", &done, "", End{OpenWork: errors.New("ann is at work")}, map[string]any{
			"subtype": "error_during_execution", "is_error": true, "terminal_reason": "open_work", "errors": []any{"ann is at work"}, "result": nil,
		}},
		{"no turn at all", nil, "", End{Err: errors.New("disk full")}, map[string]any{
			"subtype": "error_during_execution", "is_error": true, "errors": []any{"disk full"}, "stop_reason": nil, "num_turns": 0.0,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			main := event.AgentTally{Last: tc.outcome, Interruption: tc.mark}
			if out := tc.outcome; out != nil {
				main.Rounds, main.APITime, main.LastText = out.Rounds, out.APITime, out.Text
			}
			var out strings.Builder
			tc.end.SessionID = "s-1"
			if err := NewWriter(&out, identity).Result(NewResult([]event.AgentTally{main}, tc.end)); err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
				t.Fatal(err)
			}
			for _, key := range required {
				if _, ok := got[key]; !ok {
					t.Errorf("no %s in %s", key, out.String())
				}
			}
			for key, want := range tc.want {
				if diff := cmp.Diff(want, got[key]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
			if _, ok := got["errors"]; ok == (got["subtype"] == "success") {
				t.Errorf("errors present: %v with subtype %v", ok, got["subtype"])
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestResultAddsUpAgents: usage is the main session's, models and money are of
// all agents, and a model without a price is marked.
func TestResultAddsUpAgents(t *testing.T) {
	used := func(tokens int, usd float64, unpriced bool) event.Spending {
		return event.Spending{Usage: transcript.Usage{InputTokens: tokens}, CostUSD: usd, Unpriced: unpriced}
	}
	r := NewResult([]event.AgentTally{
		{Models: map[string]event.Spending{"claude-sonnet-4-5": used(2_000_000, 6, false)}, APITime: time.Second},
		{Agent: event.Agent{ID: "t1"}, APITime: time.Second, Denied: []event.Denied{{Tool: "Bash"}}, Models: map[string]event.Spending{
			"claude-sonnet-4-5": used(1_000_000, 3, false), "mystery-model": used(5, 0, true),
		}},
	}, End{})
	if r.Usage.InputTokens != 2_000_000 || r.DurationAPIMS != 2000 || len(r.PermissionDenials) != 1 {
		t.Errorf("%d input tokens of the main session, %d ms of all, denied %v", r.Usage.InputTokens, r.DurationAPIMS, r.PermissionDenials)
	}
	if got := r.ModelUsage["claude-sonnet-4-5"]; got.InputTokens != 3_000_000 || got.CostUSD != 9 || got.ContextWindow == 0 || got.CostBasis != "" {
		t.Errorf("usage of the known model: %+v", got)
	}
	if got := r.ModelUsage["mystery-model"]; got.InputTokens != 5 || got.CostUSD != 0 || got.CostBasis != "unknown" {
		t.Errorf("usage of the unknown model: %+v", got)
	}
	if r.TotalCostUSD != 9 {
		t.Errorf("total cost %v, want 9", r.TotalCostUSD)
	}
}

package builtin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

func TestTeamCreateAndDelete(t *testing.T) {
	o := newOffice(t)
	path := rosterPlace("My Team!")
	created := o.call(t, chief, "TeamCreate", `{"team_name":"My Team!","description":"d","agent_type":"boss"}`)
	want := "{\n  \"team_name\": \"My Team!\",\n  \"team_file_path\": " + quoted(t, path) + ",\n  \"lead_agent_id\": \"team-lead@My Team!\"\n}"
	if diff := cmp.Diff([]transcript.Block{transcript.TextBlock(want)}, created.Blocks); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"team_name":"My Team!","team_file_path":`+quoted(t, path)+`,"lead_agent_id":"team-lead@My Team!"}`, string(created.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	second := o.call(t, chief, "TeamCreate", `{"team_name":"beta"}`)
	if want := `Already leading team "My Team!". A leader can only manage one team at a time. Use TeamDelete to end the current team before creating a new one.`; !second.IsError || resultText(second) != want {
		t.Errorf("second team: %+v", second)
	}
	blank := o.call(t, tool.Caller{SessionID: "session-2"}, "TeamCreate", `{"team_name":"  "}`)
	if want := "<tool_use_error>team_name is required for TeamCreate</tool_use_error>"; !blank.IsError || resultText(blank) != want {
		t.Errorf("blank name: %+v", blank)
	}
	o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"Explore","name":"w1"}`)
	o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"Explore","name":"w2"}`)
	o.play(t, []step{{chief, "TeamDelete", `{}`, "{\n  \"success\": false,\n  \"message\": \"Cannot cleanup team with 2 active member(s): w1, w2. " +
		"Use requestShutdown to gracefully terminate teammates first.\",\n  \"team_name\": \"My Team!\"\n}", ``}})
	for _, name := range []string{"w1", "w2"} {
		if err := o.teams.Gone(t.Context(), mailbox.Address{Team: "My Team!", Agent: name}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	o.play(t, []step{
		{chief, "TeamDelete", `{}`, "{\n  \"success\": true,\n  \"message\": \"Cleaned up directories and worktrees for team \\\"My Team!\\\"\",\n  \"team_name\": \"My Team!\"\n}",
			`{"success":true,"message":"Cleaned up directories and worktrees for team \"My Team!\"","team_name":"My Team!"}`},
		{chief, "TeamDelete", `{}`, "{\n  \"success\": true,\n  \"message\": \"No team name found, nothing to clean up\"\n}", ``},
	})
}

func TestSpawnTeammate(t *testing.T) {
	o := officeWith(t)
	r := o.call(t, chief, "Task", `{"description":"d","prompt":"Do \"it\" <now>","subagent_type":"general-purpose","name":"w1","team_name":"alpha","model":"haiku"}`)
	want := "Spawned successfully.\nagent_id: w1@alpha\nname: w1\nteam_name: alpha\nThe agent is now running and will receive instructions via mailbox."
	if diff := cmp.Diff([]transcript.Block{transcript.TextBlock(want)}, r.Blocks); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	twin := `{"status":"teammate_spawned","prompt":"Do \"it\" <now>","teammate_id":"w1@alpha","agent_id":"w1@alpha","agent_type":"general-purpose","model":"haiku","name":"w1","color":"blue",` +
		`"tmux_session_name":"in-process","tmux_window_name":"in-process","tmux_pane_id":"in-process","team_name":"alpha","is_splitpane":false,"plan_mode_required":false}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
}

func TestSendMessage(t *testing.T) {
	o := officeWith(t, "w1", "w2")
	for _, tt := range []struct {
		by    tool.Caller
		input string
		twin  string
	}{
		{worker("w1"), `{"type":"message","recipient":"w2","content":"hi w2 from w1","summary":"peer dm"}`,
			`{"success":true,"message":"Message sent to w2's inbox","routing":{"sender":"w1","senderColor":"blue","target":"@w2","targetColor":"green","summary":"peer dm","content":"hi w2 from w1"}}`},
		{worker("w1"), `{"type":"message","recipient":"team-lead","content":"","summary":"s","request_id":"ignored"}`,
			`{"success":true,"message":"Message sent to team-lead's inbox","routing":{"sender":"w1","senderColor":"blue","target":"@team-lead","targetColor":"red","summary":"s","content":""}}`},
		{chief, `{"type":"message","recipient":"w2@alpha","content":"from lead","summary":"lead dm"}`,
			`{"success":true,"message":"Message sent to w2's inbox","routing":{"sender":"team-lead","target":"@w2","targetColor":"green","summary":"lead dm","content":"from lead"}}`},
		{chief, `{"to":"w1","message":"The tests of the parser fail since your last change, please look."}`,
			`{"success":true,"message":"Message sent to w1's inbox","routing":{"sender":"team-lead","target":"@w1","targetColor":"blue","summary":"The tests of the parser fail since your last change, …","content":"The tests of the parser fail since your last change, please look."}}`},
		{worker("w2"), `{"type":"broadcast","content":"w2 says all","summary":"w2 bcast"}`,
			`{"success":true,"message":"Message broadcast to 2 teammate(s): team-lead, w1","recipients":["team-lead","w1"],"routing":{"sender":"w2","senderColor":"green","target":"@team","summary":"w2 bcast","content":"w2 says all"}}`},
		{chief, `{"to":"*","message":"all hands","summary":"bcast"}`,
			`{"success":true,"message":"Message broadcast to 2 teammate(s): w1, w2","recipients":["w1","w2"],"routing":{"sender":"team-lead","target":"@team","summary":"bcast","content":"all hands"}}`},
	} {
		r := o.call(t, tt.by, "SendMessage", tt.input)
		if diff := cmp.Diff(tt.twin, string(r.Structured)); diff != "" {
			t.Errorf("SendMessage(%s) (-want +got):\n%s", tt.input, diff)
		}
		var indented strings.Builder
		enc := json.NewEncoder(&indented)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(json.RawMessage(tt.twin)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]transcript.Block{transcript.TextBlock(strings.TrimSpace(indented.String()))}, r.Blocks); diff != "" {
			t.Errorf("content of SendMessage(%s) (-want +got):\n%s", tt.input, diff)
		}
	}
	if diff := cmp.Diff([]string{"hi w2 from w1", "from lead", "all hands"}, o.inbox(t, "w2")); diff != "" {
		t.Errorf("inbox of w2 (-want +got):\n%s", diff)
	}
}

func TestSendMessageRefuses(t *testing.T) {
	o := officeWith(t, "w1")
	const notInTeam = "Not in a team context. Create a team with Teammate spawnTeam first, or set CLAUDE_CODE_TEAM_NAME."
	useError := func(s string) string { return "<tool_use_error>" + s + "</tool_use_error>" }
	for _, tt := range []struct {
		by    tool.Caller
		input string
		want  string
	}{
		{tool.Caller{SessionID: "session-2"}, `{"to":"w1","message":"x"}`, notInTeam},
		{tool.Caller{SessionID: "session-1", AgentID: "a1", Depth: 1}, `{"type":"broadcast","content":"x","summary":"y"}`, notInTeam},
		{chief, `{"type":"message","content":"x","summary":"y"}`, useError("recipient is required for SendMessage of type message")},
		{chief, `{"type":"message","recipient":"w1","summary":"y"}`, useError("content is required for SendMessage of type message")},
		{chief, `{"type":"message","recipient":"w1","content":"x"}`, useError("summary is required for SendMessage of type message")},
		{chief, `{"type":"broadcast","summary":"x"}`, useError("content is required for SendMessage of type broadcast")},
		{chief, `{"type":"shutdown_request"}`, useError("recipient is required for SendMessage of type shutdown_request")},
		{worker("w1"), `{"type":"shutdown_response","approve":true}`, useError("request_id is required for SendMessage of type shutdown_response")},
		{worker("w1"), `{"type":"shutdown_response","request_id":"x","approve":false}`, useError("content (reason) is required when rejecting a shutdown request")},
		{worker("w1"), `{"type":"plan_approval_response","request_id":"x","recipient":"w1","approve":true}`,
			"Only the team lead can approve plans. Teammates cannot approve their own or other plans."},
		{worker("w1"), `{"to":"user","message":"x"}`, `"user" is a person, who has no inbox. Answer in the text of your reply, which they can read; ` +
			"if the team has to know it too, tell team-lead."},
		{chief, `{"to":"w","message":"x"}`, `There is no "w" in team "alpha". Did you mean w1? Members: team-lead, w1.`},
	} {
		r := o.call(t, tt.by, "SendMessage", tt.input)
		if diff := cmp.Diff(tt.want, resultText(r)); diff != "" || !r.IsError {
			t.Errorf("SendMessage(%s), error %v (-want +got):\n%s", tt.input, r.IsError, diff)
		}
	}
	r := o.call(t, worker("w1"), "SendMessage", `{"to":"team-lead","message":"{\"type\":\"shutdown_approved\",\"requestId\":\"x\",\"from\":\"w1\"}"}`)
	if !r.IsError || !strings.Contains(resultText(r), "protocol") {
		t.Errorf("protocol in the content: %+v", r)
	}
	if mail := append(o.inbox(t, "w1"), o.inbox(t, "team-lead")...); len(mail) > 0 {
		t.Errorf("something was sent: %q", mail)
	}
}

func TestBroadcastSaysWhomItMissed(t *testing.T) {
	o := officeWith(t, "w1", "w2")
	o.posting.broken = "w1"
	r := o.call(t, chief, "SendMessage", `{"to":"*","message":"all hands","summary":"s"}`)
	twin := `{"success":false,"message":"Message broadcast to 1 teammate(s): w2. NOT delivered to w1: disk full","recipients":["w2"],"failed":["w1"],` +
		`"routing":{"sender":"team-lead","target":"@team","summary":"s","content":"all hands"}}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" || !r.IsError {
		t.Errorf("error %v (-want +got):\n%s", r.IsError, diff)
	}
	alone := officeWith(t)
	alone.play(t, []step{{chief, "SendMessage", `{"to":"*","message":"anybody?"}`,
		"{\n  \"success\": true,\n  \"message\": \"No teammates to broadcast to (you are the only team member)\",\n  \"recipients\": []\n}", ``}})
}

func TestShutdownByMessages(t *testing.T) {
	o := officeWith(t, "w1", "w2")
	request := func(name string) string {
		t.Helper()
		var twin struct {
			Success           bool
			Message, Target   string
			RequestID         string `json:"request_id"`
			UnexpectedRouting any    `json:"routing"`
		}
		r := o.call(t, chief, "SendMessage", `{"type":"shutdown_request","recipient":"`+name+`","content":"done"}`)
		if err := json.Unmarshal(r.Structured, &twin); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("Shutdown request sent to %s. Request ID: %s", name, twin.RequestID); twin.Message != want || twin.Target != name || !twin.Success {
			t.Errorf("request: %s", r.Structured)
		}
		in, ok := o.teams.Inbox(worker(name), nil)
		if !ok {
			t.Fatal("no inbox")
		}
		defer in.Close()
		if _, err := in.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		return twin.RequestID
	}
	id := request("w1")
	r := o.call(t, worker("w1"), "SendMessage", `{"type":"shutdown_response","request_id":"`+id+`","approve":true}`)
	want := `{"success":true,"message":"Shutdown approved. Sent confirmation to team-lead. Agent w1 is now exiting.","request_id":"` + id + `"}`
	if diff := cmp.Diff(want, string(r.Structured)); diff != "" || !r.EndTurn {
		t.Errorf("approval, ends the turn: %v (-want +got):\n%s", r.EndTurn, diff)
	}
	id = request("w2")
	if r = o.call(t, worker("w2"), "SendMessage", `{"type":"shutdown_response","request_id":"wrong","approve":true}`); !r.IsError || !strings.Contains(resultText(r), id) {
		t.Errorf("a wrong id: %s", resultText(r))
	}
	r = o.call(t, worker("w2"), "SendMessage", `{"type":"shutdown_response","request_id":"`+id+`","approve":false,"content":"still busy"}`)
	want = `{"success":true,"message":"Shutdown rejected. Reason: \"still busy\". Continuing to work.","request_id":"` + id + `"}`
	if diff := cmp.Diff(want, string(r.Structured)); diff != "" || r.EndTurn {
		t.Errorf("rejection, ends the turn: %v (-want +got):\n%s", r.EndTurn, diff)
	}
}

func TestPlanApprovalByMessages(t *testing.T) {
	for _, tt := range []struct{ approve, message string }{
		{`false`, `Plan rejected for pl with feedback: \"Plan needs revision\"`},
		{`false,"content":"add tests"`, `Plan rejected for pl with feedback: \"add tests\"`},
		{`true`, `Plan approved for pl. They will receive the approval and can proceed with implementation.`},
	} {
		o := officeWith(t, "pl")
		seat, _ := o.teams.Seat(worker("pl"))
		id, err := seat.Plans.Request(t.Context(), "/plans/p.md", "# Plan")
		if err != nil {
			t.Fatal(err)
		}
		in, _ := o.teams.Inbox(chief, nil)
		if _, err := in.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		in.Close()
		r := o.call(t, chief, "SendMessage", `{"type":"plan_approval_response","recipient":"pl","request_id":"`+id+`","approve":`+tt.approve+`}`)
		want := `{"success":true,"message":"` + tt.message + `","request_id":"` + id + `"}`
		if diff := cmp.Diff(want, string(r.Structured)); diff != "" {
			t.Errorf("approve %s: %s (-want +got):\n%s", tt.approve, resultText(r), diff)
		}
	}
}

func TestTeammatesFormNoTeams(t *testing.T) {
	o := officeWith(t, "w1")
	for name, input := range map[string]string{
		"TeamCreate": `{"team_name":"beta"}`,
		"TeamDelete": `{}`,
		"Agent":      `{"description":"d","prompt":"p","subagent_type":"general-purpose","name":"w2"}`,
	} {
		if r := o.call(t, worker("w1"), name, input); !r.IsError || resultText(r) == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAgentChecksTypeTeamAndName(t *testing.T) {
	o := officeWith(t)
	for _, tt := range []struct{ input, want string }{
		{`"subagent_type":"explore","name":"w1"`, `There is no agent type "explore". Did you mean Explore? Known types: general-purpose, Explore.`},
		{`"subagent_type":"Explore","name":"w1","team_name":"nope"`, `Team "nope" does not exist. Call spawnTeam first to create the team.`},
		{`"subagent_type":"Explore","name":"../x"`, `The name "../x" must not contain path separators. Choose another name.`},
	} {
		r := o.call(t, chief, "Agent", `{"description":"d","prompt":"p",`+tt.input+`}`)
		if diff := cmp.Diff(tt.want, resultText(r)); diff != "" || !r.IsError {
			t.Errorf("%s, error %v (-want +got):\n%s", tt.input, r.IsError, diff)
		}
	}
	if o.spawner.asked.Prompt != "" {
		t.Errorf("a sub-agent was started: %+v", o.spawner.asked)
	}
}

func TestSubAgent(t *testing.T) {
	o := newOffice(t)
	o.spawner.result = builtin.SubAgentResult{
		AgentID: "add4de9", Content: []transcript.Block{{Type: transcript.Thinking, Text: "hm"}, transcript.TextBlock("final answer")},
		Usage: transcript.Usage{InputTokens: 10, OutputTokens: 20}, Tokens: 30, ToolCalls: 1, Took: 11802 * time.Millisecond,
	}
	// A name without a team is an ordinary sub-agent.
	r := o.call(t, chief, "Agent", `{"description":"d","prompt":"do sync","subagent_type":"Explore","name":"x","max_turns":3,"model":"opus","resume":"a1"}`)
	want := []transcript.Block{
		transcript.TextBlock("final answer"),
		transcript.TextBlock("agentId: add4de9 (for resuming to continue this agent's work if needed)\n<usage>total_tokens: 30\ntool_uses: 1\nduration_ms: 11802</usage>"),
	}
	if diff := cmp.Diff(want, r.Blocks); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	twin := `{"status":"completed","prompt":"do sync","agentId":"add4de9","content":[{"type":"text","text":"final answer"}],"totalDurationMs":11802,"totalTokens":30,"totalToolUseCount":1,` +
		`"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20}}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
	asked := builtin.SubAgentRequest{
		Caller: chief, Call: "toolu_1", Type: "Explore", Model: "opus", Prompt: "do sync", Description: "d", MaxTurns: 3, Resume: "a1",
	}
	if diff := cmp.Diff(asked, o.spawner.asked); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}

	o.spawner.err = errors.New("model out of reach")
	if r = o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"Explore"}`); !r.IsError ||
		resultText(r) != "Model out of reach. (agentId: add4de9, to be continued with resume)" {
		t.Errorf("failure: %+v", r)
	}

	o.spawner.err, o.spawner.result = nil, builtin.SubAgentResult{AgentID: "aab5706", Async: true, OutputFile: "/out/aab5706.output"}
	r = o.call(t, chief, "Agent", `{"description":"Bg sub","prompt":"do bg","subagent_type":"Explore","run_in_background":true}`)
	if !o.spawner.asked.Background || !strings.HasPrefix(resultText(r), "Async agent launched successfully.\nagentId: aab5706 (") ||
		!strings.Contains(resultText(r), "\noutput_file: /out/aab5706.output\n") {
		t.Errorf("in the background: %+v", r)
	}
	twin = `{"isAsync":true,"status":"async_launched","agentId":"aab5706","description":"Bg sub","prompt":"do bg","outputFile":"/out/aab5706.output"}`
	if diff := cmp.Diff(twin, string(r.Structured)); diff != "" {
		t.Errorf("twin (-want +got):\n%s", diff)
	}
}

// Names, types and required properties of the schemas are a contract (facts:
// claude-code §1); what we add is optional.
func TestTeamToolSchemas(t *testing.T) {
	want := map[string]string{
		"TaskCreate":  "activeForm:string description:string* metadata:object subject:string*",
		"TaskGet":     "taskId:string*",
		"TaskUpdate":  "activeForm:string addBlockedBy:array addBlocks:array description:string metadata:object owner:string status:anyOf subject:string taskId:string*",
		"TaskList":    "",
		"TeamCreate":  "agent_type:string description:string team_name:string*",
		"TeamDelete":  "",
		"Wait":        "agents:array mode:string tasks:array timeout:number",
		"SendMessage": "approve:boolean content:string message:string receipt:boolean recipient:string request_id:string summary:string to:string type:string",
		"Agent": "description:string* max_turns:integer mode:string model:string name:string prompt:string* resume:string " +
			"run_in_background:boolean subagent_type:string* team_name:string use_splitpane:boolean",
	}
	got := make(map[string]string)
	for _, item := range newOffice(t).tools.All() {
		got[item.Spec().Name] = outline(t, item.Spec().Schema.JSON())
		if len(item.Spec().Description) < 200 {
			t.Errorf("%s is hardly described", item.Spec().Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// quoted is a string as JSON.
func quoted(t *testing.T, s string) string {
	t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// outline is a schema's properties with their types, required ones starred.
func outline(t *testing.T, schema json.RawMessage) string {
	t.Helper()
	var object struct {
		Properties map[string]struct {
			Type  string
			AnyOf []any
		}
		Required             []string
		AdditionalProperties *bool
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		t.Fatal(err)
	}
	if object.AdditionalProperties == nil || *object.AdditionalProperties {
		t.Errorf("unknown properties are let through: %s", schema)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		part := name + ":" + object.Properties[name].Type
		if object.Properties[name].AnyOf != nil {
			part += "anyOf"
		}
		if slices.Contains(object.Required, name) {
			part += "*"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestSpawnInPlanMode(t *testing.T) {
	o := officeWith(t)
	r := o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"general-purpose","name":"w1","mode":"plan"}`)
	if r.IsError || strings.Contains(resultText(r), "no effect") || !strings.Contains(string(r.Structured), `"plan_mode_required":true`) {
		t.Errorf("result = %+v", r)
	}
	config, err := o.rosters.Load(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	if m := config.Find("w1"); m == nil || !m.PlanModeRequired {
		t.Errorf("on the roster: %+v", m)
	}
}

func TestOtherModesOfAgentsHaveNoEffect(t *testing.T) {
	o := officeWith(t)
	r := o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"general-purpose","name":"w1","mode":"bypassPermissions"}`)
	if r.IsError || !strings.Contains(resultText(r), "\nThe mode bypassPermissions had no effect") {
		t.Errorf("teammate: %+v", r)
	}
	o.spawner.result = builtin.SubAgentResult{AgentID: "a1", Content: []transcript.Block{transcript.TextBlock("x")}}
	for _, mode := range []string{"plan", "acceptEdits"} {
		r = o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"Explore","mode":"`+mode+`"}`)
		if r.IsError || !strings.Contains(resultText(r), "\nThe mode "+mode+" had no effect") {
			t.Errorf("sub-agent: %+v", r)
		}
	}
}

func TestWhereTeammatesAreShown(t *testing.T) {
	for _, tt := range []struct {
		input, window string
		own           bool
	}{
		{``, "current", false},
		{`,"use_splitpane":true`, "current", false},
		{`,"use_splitpane":false`, "w1", true},
	} {
		o := newOffice(t)
		o.backend.kind = "tmux"
		o.call(t, chief, "TeamCreate", `{"team_name":"alpha"}`)
		r := o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"general-purpose","name":"w1"`+tt.input+`}`)
		var twin struct {
			Session string `json:"tmux_session_name"`
			Window  string `json:"tmux_window_name"`
			Split   bool   `json:"is_splitpane"`
		}
		if err := json.Unmarshal(r.Structured, &twin); err != nil {
			t.Fatalf("%v in %s", err, r.Structured)
		}
		if twin.Session != "current" || twin.Window != tt.window || twin.Split == tt.own || o.backend.started.Window != tt.own {
			t.Errorf("%s: %s, started with %+v", tt.input, r.Structured, o.backend.started)
		}
	}
}

func TestReceiptOfAMessage(t *testing.T) {
	o := officeWith(t, "w1")
	r := o.call(t, chief, "SendMessage", `{"type":"message","recipient":"w1","content":"hi","summary":"s","receipt":true}`)
	mail, err := o.mail.All(t.Context(), mailbox.Address{Team: "alpha", Agent: "w1"})
	if err != nil || len(mail) == 0 {
		t.Fatalf("%d messages, %v", len(mail), err)
	}
	id := string(mail[len(mail)-1].ID)
	if r.IsError || id == "" || !strings.HasSuffix(string(r.Structured), `,"message_id":"`+id+`"}`) {
		t.Errorf("message %s: %s", id, r.Structured)
	}
	for _, input := range []string{`{"type":"broadcast","content":"hi","summary":"s","receipt":true}`, `{"to":"*","message":"hi","receipt":true}`} {
		if r := o.call(t, chief, "SendMessage", input); !r.IsError || !strings.Contains(resultText(r), "receipt") {
			t.Errorf("%s: %+v", input, r)
		}
	}
}

func TestLeadModelDecidesOnPlansOnlyWhereItMay(t *testing.T) {
	o := newOfficeBy(t, team.Policy{PlanApproval: "person"})
	o.call(t, chief, "TeamCreate", `{"team_name":"alpha"}`)
	o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"general-purpose","name":"pl","mode":"plan"}`)
	r := o.call(t, chief, "SendMessage", `{"type":"plan_approval_response","recipient":"pl","request_id":"plan_approval-1@pl@alpha","approve":true}`)
	if !r.IsError || !strings.HasPrefix(resultText(r), "A person decides about plans here") {
		t.Errorf("%+v", r)
	}
}

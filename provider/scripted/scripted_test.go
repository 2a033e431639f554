package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/transcript"
)

// talk builds the messages of a request.
type talk []transcript.Message

func (t *talk) user(text string) {
	*t = transcript.Join(*t, transcript.UserText(text))
}

// did adds a reply with one call, and its result.
func (t *talk) did(tool, input, result string, failed bool) {
	id := "id" + string(rune('a'+len(*t)))
	*t = append(*t,
		transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{
			{Type: transcript.ToolUse, ID: id, Name: tool, Input: json.RawMessage(input)},
		}},
		transcript.Message{Role: transcript.User, Content: []transcript.Block{
			{Type: transcript.ToolResult, ToolUseID: id, Text: result, IsError: failed},
		}})
}

func (t *talk) said(text string) {
	*t = append(*t, transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{transcript.TextBlock(text)}})
}

func (t talk) as(name, team string) provider.Request {
	return provider.Request{Model: "m", Messages: t, Agent: provider.Agent{Name: name, Team: team, Session: "s"}}
}

// ask returns the whole answer.
func ask(t *testing.T, m *Model, req provider.Request) (provider.Reply, error) {
	t.Helper()
	for ev, err := range m.Stream(t.Context(), req) {
		if err != nil {
			return provider.Reply{}, err
		}
		if r, ok := ev.(provider.Reply); ok {
			return r, nil
		}
	}
	t.Fatal("the stream ended without a reply")
	return provider.Reply{}, nil
}

// answers asks a script whose rules are given as JSON.
func answers(t *testing.T, rules string, req provider.Request) string {
	t.Helper()
	s, err := Parse([]byte(`{"rules": [` + rules + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask(t, m, req)
	if err != nil {
		return "error: " + err.Error()
	}
	return transcript.JoinText(r.Message.Content)
}

// worker is a teammate that was told, ran a check twice and edited in between.
func worker() provider.Request {
	var c talk
	c.user(`<teammate-message teammate_id="team-lead">` + "\nbe good\n</teammate-message>")
	c.said("hello")
	c.user(`<teammate-message teammate_id="task-list">` + "\nComplete all open tasks. Start with task #7: \n\n Mend it\n\nCheck: sh a.sh\n</teammate-message>")
	c.did("Bash", `{"command":"sh a.sh"}`, "Exit code 1\nFAIL it leaks", true)
	c.did("Edit", `{"file_path":"/x/a.go","replace_all":true}`, "done", false)
	c.did("Bash", `{"command":"sh a.sh"}`, "ok dry", false)
	return c.as("ada", "crew")
}

func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		name, when string
		want       bool
	}{
		{"nothing asked", `{}`, true},
		{"agent", `{"agent": "ada"}`, true},
		{"agent glob", `{"agent": "a*"}`, true},
		{"another agent", `{"agent": "ben"}`, false},
		{"role", `{"role": "teammate"}`, true},
		{"another role", `{"role": "lead"}`, false},
		{"task", `{"task": "^#7: Mend"}`, true},
		{"task's description", `{"task": "Check: sh"}`, true},
		{"another task", `{"task": "#8"}`, false},
		{"newest input", `{"input": "Start with task #7"}`, true},
		{"an older input", `{"input": "be good"}`, false},
		{"heard", `{"heard": "be good"}`, true},
		{"heard both", `{"heard": ["be good", "Mend"]}`, true},
		{"heard one only", `{"heard": ["be good", "be bad"]}`, false},
		{"results are not heard", `{"heard": "leaks"}`, false},
		{"done", `{"done": {"tool": "Bash"}}`, true},
		{"done, whole name", `{"done": {"tool": "Bas"}}`, false},
		{"done, either tool", `{"done": {"tool": "Write|Edit"}}`, true},
		{"done, input", `{"done": {"tool": "Bash", "input": {"command": "sh a\\.sh"}}}`, true},
		{"done, whole value", `{"done": {"tool": "Bash", "input": {"command": "sh"}}}`, false},
		{"done, no such field", `{"done": {"tool": "Bash", "input": {"timeout": ".*"}}}`, false},
		{"done, a value that is no string", `{"done": {"tool": "Edit", "input": {"replace_all": "true"}}}`, true},
		{"done, result", `{"done": {"tool": "Bash", "result": "dry"}}`, true},
		{"a failed result is not done", `{"done": {"tool": "Bash", "result": "leaks"}}`, false},
		{"failed", `{"done": {"tool": "Bash", "result": "leaks", "outcome": "failed"}}`, true},
		{"either", `{"done": {"tool": "Bash", "result": "leaks", "outcome": "either"}}`, true},
		{"after a call", `{"done": {"tool": "Bash", "after": {"tool": "Edit"}}}`, true},
		{"failed after a call", `{"done": {"tool": "Bash", "outcome": "failed", "after": {"tool": "Edit"}}}`, false},
		{"after a call that never was", `{"done": {"tool": "Bash", "after": {"tool": "Write"}}}`, false},
		{"after the task", `{"done": {"tool": "Edit", "after": "task"}}`, true},
		{"after the input", `{"done": {"tool": "Edit", "after": "input"}}`, true},
		{"in the newest round", `{"done": {"tool": "Bash", "after": "round"}}`, true},
		{"in an older round", `{"done": {"tool": "Edit", "after": "round"}}`, false},
		{"rounds", `{"rounds": 3}`, true},
		{"too many rounds", `{"rounds": 2}`, false},
		{"any", `{"any": [{"agent": "ben"}, {"agent": "ada"}]}`, true},
		{"none of any", `{"any": [{"agent": "ben"}, {"agent": "cleo"}]}`, false},
		{"not", `{"not": {"agent": "ben"}}`, true},
		{"not, one of two", `{"not": [{"agent": "ben"}, {"agent": "ada"}]}`, false},
		{"all must hold", `{"agent": "ada", "done": {"tool": "Write"}}`, false},
		{"a capture is used literally", `{"task": "Check: (?P<check>sh a.sh)", "done": {"tool": "Bash", "input": {"command": "${check}"}}}`, true},
		{"a capture in not", `{"agent": "ada", "task": "#(?P<n>\\d)", "not": {"task": "#${n}"}}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := answers(t, `{"when": `+tc.when+`, "say": "yes"}, {"say": "no"}`, worker()) == "yes"
			if got != tc.want {
				t.Errorf("matches: %v, want %v", got, tc.want)
			}
		})
	}
}

// TestQuoted: a value taken from the conversation is no regexp.
func TestQuoted(t *testing.T) {
	var c talk
	c.user("run .*")
	c.did("Bash", `{"command":"anything"}`, "ok", false)
	got := answers(t, `{"when": {"input": "run (?P<c>.+)", "done": {"tool": "Bash", "input": {"command": "${c}"}}}, "say": "done"}, {"say": "not done"}`, c.as("", ""))
	if got != "not done" {
		t.Errorf("the placeholder was taken as a regexp: %q", got)
	}
}

func TestTask(t *testing.T) {
	handOut := "<teammate-message teammate_id=\"task-list\">\nComplete all open tasks. Start with task #%: \n\n Do %\n</teammate-message>"
	assign := `<teammate-message teammate_id="x">` + "\n" + `{"type":"task_assignment","taskId":"%","subject":"Do %","description":"d","assignedBy":"BY","timestamp":"x"}` + "\n</teammate-message>"
	fill := func(s, id string) string { return strings.ReplaceAll(s, "%", id) }
	update := func(c *talk, id, status, result string, failed bool) {
		c.did("TaskUpdate", `{"taskId":"`+id+`","status":"`+status+`"}`, result, failed)
	}
	for _, tc := range []struct {
		name string
		talk func(*talk)
		want string // "" for none
	}{
		{"none", func(c *talk) { c.user("hello") }, ""},
		{"handed out", func(c *talk) { c.user(fill(handOut, "3")) }, "#3: Do 3"},
		{"assigned", func(c *talk) { c.user(fill(assign, "4")) }, "#4: Do 4\n\nd"},
		{"assigned by itself is no news", func(c *talk) { c.user(strings.Replace(fill(assign, "4"), "BY", "ada", 1)) }, ""},
		{"taken", func(c *talk) {
			c.user("go")
			c.did("TaskList", `{}`, "#5 [pending] Do five\n#6 [pending] Do six", false)
			update(c, "5", "in_progress", "Updated task #5 owner, status", false)
		}, "#5: Do five"},
		{"taken in vain", func(c *talk) {
			c.user("go")
			update(c, "5", "in_progress", "somebody has it", true)
		}, ""},
		{"completed", func(c *talk) {
			c.user(fill(handOut, "3"))
			update(c, "3", "completed", "Updated task #3 status", false)
		}, ""},
		{"not completed when the list says no", func(c *talk) {
			c.user(fill(handOut, "3"))
			update(c, "3", "completed", "Task not found", false)
		}, "#3: Do 3"},
		{"the newest of two", func(c *talk) {
			c.user(fill(handOut, "3"))
			c.said("hm")
			c.user(fill(handOut, "4"))
		}, "#4: Do 4"},
		{"back to the older", func(c *talk) {
			c.user(fill(handOut, "3"))
			c.said("hm")
			c.user(fill(handOut, "4"))
			update(c, "4", "completed", "Updated task #4 status", false)
		}, "#3: Do 3"},
		{"mail in between changes nothing", func(c *talk) {
			c.user(fill(handOut, "3"))
			c.did("Read", `{}`, "text", false)
			c.user("hello from ben")
		}, "#3: Do 3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c talk
			tc.talk(&c)
			got, _ := Read(c.as("ada", "crew")).Task()
			if got.Text != tc.want {
				t.Errorf("works on %q, want %q", got.Text, tc.want)
			}
		})
	}
}

// TestMailBetweenRounds: text in the message of the results comes after them.
func TestMailBetweenRounds(t *testing.T) {
	var c talk
	c.user("go")
	c.did("TaskList", `{}`, "No tasks found", false)
	before := answers(t, `{"when": {"done": {"tool": "TaskList", "after": "input"}}, "say": "known"}, {"say": "look"}`, c.as("", ""))
	c.user("<system-reminder>not an input</system-reminder>")
	reminded := answers(t, `{"when": {"done": {"tool": "TaskList", "after": "input"}}, "say": "known"}, {"say": "look"}`, c.as("", ""))
	c.user("news")
	after := answers(t, `{"when": {"done": {"tool": "TaskList", "after": "input"}}, "say": "known"}, {"say": "look"}`, c.as("", ""))
	if before != "known" || reminded != "known" || after != "look" {
		t.Errorf("before, with a reminder, after mail: %q, %q, %q", before, reminded, after)
	}
}

func TestTemplates(t *testing.T) {
	s, err := Parse([]byte(`{
		// Comments and trailing commas are fine.
		"vars": {"code": ["echo \"a\"", "echo ${b}"], "dir": "/p"},
		"rules": [{
			"when": {"task": "Check: (?P<check>.*)", "heard": "be (?P<how>\\w+)"},
			"say": "${me} of ${team}: #${task} ${subject}, ${how}, $${how}",
			"calls": [{"tool": "Write", "input": {"file_path": "${dir}/x", "content": "${code}", "n": [1, {"c": "${check}"}]}}],
		}],
	}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask(t, m, worker())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Message.Content[0].Text, "ada of crew: #7 Mend it, good, ${how}"; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	want := `{"file_path":"/p/x","content":"echo \"a\"\necho ${b}","n":[1,{"c":"sh a.sh"}]}`
	if got := string(r.Message.Content[1].Input); got != want {
		t.Errorf("input %s, want %s", got, want)
	}
	if r.Message.StopReason != "tool_use" {
		t.Errorf("stop reason %q", r.Message.StopReason)
	}
}

// TestWrongScripts: what is wrong with a script shows when it is read, and
// where.
func TestWrongScripts(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"no JSON":                 {`{"rules": [}`, "line 1"},
		"unknown field":           {`{"rules": [{"name": "x", "when": {"herd": "a"}}]}`, `rule 1 (x)`},
		"unknown field in a list": {`{"rules": [{"when": {"done": [{"tol": "a"}]}}]}`, `"tol"`},
		"unknown top field":       {`{"rule": []}`, `"rule"`},
		"regexp":                  {`{"rules": [{}, {"name": "b", "when": {"heard": "("}}]}`, "rule 2 (b): heard"},
		"placeholder":             {`{"rules": [{"say": "${nobody}"}]}`, "${nobody}"},
		"placeholder too early":   {`{"rules": [{"when": {"input": "${late}", "heard": "(?P<late>.)"}}]}`, "${late}"},
		"capture in not":          {`{"rules": [{"when": {"not": {"heard": "(?P<gone>.)"}}, "say": "${gone}"}]}`, "${gone}"},
		"role":                    {`{"rules": [{"when": {"role": "boss"}}]}`, "boss"},
		"outcome":                 {`{"rules": [{"when": {"done": {"tool": "a", "outcome": "good"}}}]}`, "good"},
		"point":                   {`{"rules": [{"when": {"done": {"tool": "a", "after": "noon"}}}]}`, "noon"},
		"glob":                    {`{"rules": [{"when": {"agent": "[a"}}]}`, "[a"},
		"input":                   {`{"rules": [{"calls": [{"tool": "a", "input": [1]}]}]}`, "input of a"},
		"class":                   {`{"rules": [{"fault": {"class": "nosuch", "status": 500}}]}`, `no class "nosuch"; there are authentication_failed, `},
		"no class":                {`{"rules": [{"fault": {"status": 500}}]}`, "needs a class"},
		"no tool":                 {`{"rules": [{"calls": [{"input": {}}]}]}`, "no tool"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.script))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q in it", err, tc.want)
			}
		})
	}
}

// TestHole: a request that no rule answers says who asked and what was told.
func TestHole(t *testing.T) {
	m := New(Rule{When: When{Agent: "nobody"}})
	_, err := ask(t, m, worker())
	var failed *provider.Error
	if !errors.As(err, &failed) || failed.Class != provider.Invalid {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{"ada", "task #7", "Start with task #7", "ok dry"} {
		if !strings.Contains(failed.Message, part) {
			t.Errorf("%q does not tell of %q", failed.Message, part)
		}
	}
}

// TestStateless: the same request gets the same answer, ids included; others
// get other ids.
func TestStateless(t *testing.T) {
	m := New(Rule{Reply: Reply{Say: "hello", Calls: []Call{Use("A", map[string]int{"n": 1}), Use("A", map[string]int{"n": 2})}}})
	first, _ := ask(t, m, worker())
	again, _ := ask(t, m, worker())
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the answer changed:\n%s", diff)
	}
	uses := first.Message.ToolUses()
	if uses[0].ID == uses[1].ID {
		t.Error("two calls share an id")
	}
	other := worker()
	other.Agent.Name = "ben"
	if r, _ := ask(t, m, other); r.Message.ToolUses()[0].ID == uses[0].ID || r.Message.ID == first.Message.ID {
		t.Error("two agents share ids")
	}
	shorter := worker()
	shorter.Messages = shorter.Messages[:5]
	if r, _ := ask(t, m, shorter); r.Message.ToolUses()[0].ID == uses[0].ID {
		t.Error("two rounds share ids")
	}
}

func TestUsage(t *testing.T) {
	m := New(Rule{Reply: Reply{Say: strings.Repeat("x", 40)}})
	req := provider.Request{System: []string{strings.Repeat("s", 400)}, Messages: []transcript.Message{transcript.UserText(strings.Repeat("u", 80))}}
	r, _ := ask(t, m, req)
	if diff := cmp.Diff(transcript.Usage{InputTokens: 120, OutputTokens: 10}, r.Message.Usage); diff != "" {
		t.Errorf("first round (-want +got):\n%s", diff)
	}
	req.Messages = append(req.Messages, r.Message, transcript.UserText(strings.Repeat("v", 8)))
	r, _ = ask(t, m, req)
	if diff := cmp.Diff(transcript.Usage{InputTokens: 12, CacheReadInputTokens: 120, OutputTokens: 10}, r.Message.Usage); diff != "" {
		t.Errorf("second round (-want +got):\n%s", diff)
	}
}

func TestStreaming(t *testing.T) {
	m := New(Rule{Reply: Reply{Think: "so then", Say: "one two three four\nfive six", Calls: []Call{Use("Bash", map[string]string{"command": "ls"})}}})
	var text, thought, input string
	var chunks int
	for ev, err := range m.Stream(t.Context(), worker()) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case provider.TextDelta:
			text += ev.Text
			chunks++
			if ev.Index != 1 {
				t.Errorf("text in block %d", ev.Index)
			}
		case provider.ThinkingDelta:
			thought += ev.Text
		case provider.ToolDelta:
			input += ev.JSON
		case provider.Reply:
			if got := ev.Message.Content[1].Text; got != text || ev.Broken != nil {
				t.Errorf("reply %q, streamed %q, broken %v", got, text, ev.Broken)
			}
			if got := ev.Message.Content[0]; got.Type != transcript.Thinking || got.Text != thought || got.Signature == "" {
				t.Errorf("thinking block %+v", got)
			}
		}
	}
	if text != "one two three four\nfive six" || chunks < 3 || input != `{"command":"ls"}` {
		t.Errorf("streamed %q in %d pieces, input %q", text, chunks, input)
	}
}

func TestFaults(t *testing.T) {
	reply := func(t *testing.T, r Reply) (provider.Reply, error) {
		return ask(t, Func(func(provider.Request) Reply { return r }), worker())
	}
	t.Run("error", func(t *testing.T) {
		want := &provider.Error{Class: provider.RateLimit, Status: 429}
		_, err := reply(t, Reply{Say: "never", Fault: Fault{Err: want}})
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("broken in a call", func(t *testing.T) {
		r, err := reply(t, Reply{Say: "I do both", Calls: []Call{Use("A", map[string]int{}), Use("B", map[string]int{})}, Fault: Fault{Broken: errors.New("reset")}})
		if err != nil || r.Broken == nil || len(r.Message.ToolUses()) != 1 || r.Message.StopReason != "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("broken in a text", func(t *testing.T) {
		r, err := reply(t, Reply{Say: "a text that is cut off in the middle of it", Fault: Fault{Broken: errors.New("reset")}})
		if got := transcript.JoinText(r.Message.Content); err != nil || r.Broken == nil || got == "" || len(got) > 30 {
			t.Errorf("%q, %v, %v", got, r.Broken, err)
		}
	})
	t.Run("malformed input", func(t *testing.T) {
		r, _ := reply(t, Reply{Calls: []Call{{Tool: "A", Malformed: `{"a": "`}}})
		if got, want := string(r.Message.Content[0].Input), `{"invalid_json":"{\"a\": \""}`; got != want {
			t.Errorf("input %s, want %s", got, want)
		}
	})
	t.Run("ids twice", func(t *testing.T) {
		r, _ := reply(t, Reply{Calls: []Call{{Tool: "A", ID: "x"}, {Tool: "A", ID: "x"}}})
		if uses := r.Message.ToolUses(); uses[0].ID != "x" || uses[1].ID != "x" || string(uses[0].Input) != "{}" {
			t.Errorf("%+v", uses)
		}
	})
	t.Run("empty", func(t *testing.T) {
		r, err := reply(t, Reply{})
		if err != nil || len(r.Message.Content) != 0 || r.Message.StopReason != "end_turn" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("retries", func(t *testing.T) {
		told := 0
		m := Func(func(provider.Request) Reply {
			return Reply{Say: "x", Fault: Fault{Retries: []provider.Retrying{{Attempt: 2, Max: 6}, {Attempt: 3, Max: 6}}}}
		})
		for ev := range m.Stream(t.Context(), worker()) {
			if _, ok := ev.(provider.Retrying); ok {
				told++
			}
		}
		if told != 2 {
			t.Errorf("%d retries told", told)
		}
	})
	t.Run("from a file", func(t *testing.T) {
		s, err := Parse([]byte(`{"rules": [{"fault": {"class": "overloaded", "status": 529, "message": "busy", "retryAfter": 1.5}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		m, _ := s.Model()
		_, err = ask(t, m, worker())
		want := &provider.Error{Class: provider.Overloaded, Status: 529, Message: "busy", RetryAfter: 1500 * time.Millisecond}
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEndOfContext: before anything was told, the cause; after, what there is.
func TestEndOfContext(t *testing.T) {
	stop := errors.New("stopped")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		gate := make(chan struct{})
		time.AfterFunc(time.Second, func() { cancel(stop) })
		m := Func(func(provider.Request) Reply { return Reply{Say: "x", Fault: Fault{Gate: gate}} })
		for ev, err := range m.Stream(ctx, worker()) {
			if ev != nil || !errors.Is(err, stop) {
				t.Errorf("%v, %v", ev, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		m := Func(func(provider.Request) Reply { return Reply{Say: strings.Repeat("word after word ", 100)} }).Paced(Pace{Chunk: 100 * time.Millisecond})
		r, err := replyOf(m.Stream(ctx, worker()))
		text := transcript.JoinText(r.Message.Content)
		if err != nil || !errors.Is(r.Broken, stop) || len(text) == 0 || len(text) > 400 {
			t.Errorf("%q, broken %v, %v", text, r.Broken, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		m := Func(func(provider.Request) Reply { return Reply{Say: "whole", Fault: Fault{Midway: make(chan struct{})}} })
		r, err := replyOf(m.Stream(ctx, worker()))
		if err != nil || !errors.Is(r.Broken, stop) || transcript.JoinText(r.Message.Content) != "whole" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func replyOf(events func(func(provider.Event, error) bool)) (reply provider.Reply, err error) {
	for ev, e := range events {
		if r, ok := ev.(provider.Reply); ok {
			reply = r
		}
		err = e
	}
	return reply, err
}

// TestConsumerBreaksOff: nothing is yielded after that.
func TestConsumerBreaksOff(t *testing.T) {
	m := New(Rule{Reply: Reply{Say: "one two three four five", Calls: []Call{Use("A", struct{}{})}}})
	for range m.Stream(t.Context(), worker()) {
		break // yielding again would panic
	}
}

// TestPace: a pace delays by whole words; none waits for nothing.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Rule{Reply: Reply{Say: "some words to read here"}})
		start := time.Now()
		if _, err := replyOf(m.Paced(Speed(0)).Stream(t.Context(), worker())); err != nil || time.Since(start) != 0 {
			t.Errorf("speed 0 took %s, %v", time.Since(start), err)
		}
		_, _ = replyOf(m.Paced(Speed(1)).Stream(t.Context(), worker()))
		one := time.Since(start)
		_, _ = replyOf(m.Paced(Speed(2)).Stream(t.Context(), worker()))
		if two := time.Since(start) - one; one < 500*time.Millisecond || two != one/2 {
			t.Errorf("speed 1 took %s, speed 2 took %s", one, two)
		}
	})
}

// TestDocumentation: the examples of the documentation are scripts.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "scripted-models.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```jsonc?\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 {
		t.Fatalf("found %d examples", len(blocks))
	}
	if _, err := Parse([]byte(blocks[3][1])); err != nil {
		t.Errorf("the script for a team: %v", err)
	}
	if _, err := Parse([]byte(blocks[0][1])); err != nil {
		t.Errorf("the first example: %v", err)
	}
	for _, b := range blocks[1:3] {
		if _, err := Parse([]byte(`{"rules": [{"when": ` + b[1] + `}]}`)); err != nil {
			t.Errorf("the condition %s: %v", b[1], err)
		}
	}
	for line := range strings.Lines(blocks[4][1]) {
		if _, err := Parse([]byte(`{"rules": [` + strings.TrimSpace(line) + "\n]}")); err != nil {
			t.Errorf("the fault %s: %v", line, err)
		}
	}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// fakeModel answers with a function of the request; it counts rounds.
type fakeModel struct {
	rounds atomic.Int64
	reply  func(round int, req provider.Request) provider.Reply
	// before, when set, runs before the reply is yielded and may fail.
	before func(ctx context.Context, round int, yield func(provider.Event, error) bool) error
}

func (m *fakeModel) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		round := int(m.rounds.Add(1))
		if err := transcript.Check(req.Messages); err != nil {
			yield(nil, fmt.Errorf("the request is not valid: %w", err))
			return
		}
		if m.before != nil {
			if err := m.before(ctx, round, yield); err != nil {
				yield(nil, err)
				return
			}
		}
		yield(m.reply(round, req), nil)
	}
}

func say(text string) provider.Reply {
	return provider.Reply{Message: transcript.Message{
		ID: "msg", Role: transcript.Assistant, Content: []transcript.Block{transcript.TextBlock(text)}, StopReason: "end_turn",
	}}
}

func call(id, name, input string) transcript.Block {
	return transcript.Block{Type: transcript.ToolUse, ID: id, Name: name, Input: json.RawMessage(input)}
}

func calls(blocks ...transcript.Block) provider.Reply {
	return provider.Reply{Message: transcript.Message{
		ID: "msg", Role: transcript.Assistant, Content: blocks, StopReason: "tool_use",
	}}
}

// fakeTool runs a function.
type fakeTool struct {
	spec tool.Spec
	run  func(ctx context.Context, c tool.Call) tool.Result
}

func (t fakeTool) Spec() tool.Spec                                        { return t.spec }
func (t fakeTool) Access(context.Context, tool.Call) tool.Access          { return tool.Access{} }
func (t fakeTool) Run(ctx context.Context, c tool.Call) (res tool.Result) { return t.run(ctx, c) }

var textSchema = tool.NewSchema(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`)

func echo(parallel bool) fakeTool {
	return fakeTool{
		spec: tool.Spec{Name: "Echo", Aliases: []string{"Say"}, Schema: textSchema, Parallel: parallel},
		run: func(_ context.Context, c tool.Call) tool.Result {
			var in struct{ Text string }
			if err := json.Unmarshal(c.Input, &in); err != nil {
				return tool.Error(err.Error())
			}
			return tool.Text(in.Text)
		},
	}
}

func allowAll(context.Context, tool.Tool, tool.Call) Verdict { return Verdict{Allow: true} }

func noInput(context.Context) ([]transcript.Message, error) { return nil, nil }

func turnOf(m provider.Model, tools ...tool.Tool) Turn {
	return Turn{
		Model: m, Tools: tool.NewSet(tools...), Permit: allowAll, Input: noInput,
		Request: provider.Request{Messages: []transcript.Message{transcript.UserText("go")}},
	}
}

// collect ranges over a turn and folds its steps into the conversation that a
// store would keep.
func collect(t *testing.T, ctx context.Context, turn Turn) (steps []Step, err error) {
	t.Helper()
	conversation := turn.Request.Messages
	for step, e := range Run(ctx, turn) {
		if e != nil {
			err = e
			break
		}
		steps = append(steps, step)
		switch s := step.(type) {
		case Reply:
			conversation = transcript.Join(conversation, s.Message)
		case Result:
			conversation = transcript.Join(conversation, transcript.Message{Role: transcript.User, Content: []transcript.Block{s.Result.Block(s.Call)}})
		case Note:
			conversation = transcript.Join(conversation, s.Message)
		}
	}
	if e := transcript.Check(conversation); e != nil {
		t.Errorf("the kept conversation cannot be sent again: %v", e)
	}
	return steps, err
}

func results(steps []Step) (out []Result) {
	for _, s := range steps {
		if r, ok := s.(Result); ok {
			out = append(out, r)
		}
	}
	return out
}

func TestRunCallsToolsUntilTheModelIsDone(t *testing.T) {
	m := &fakeModel{reply: func(round int, req provider.Request) provider.Reply {
		if round == 1 {
			return calls(call("a", "Echo", `{"text":"one"}`), call("b", "Say", `{"text":"two"}`))
		}
		last := req.Messages[len(req.Messages)-1]
		return say(last.Content[0].ResultText() + "+" + last.Content[1].ResultText())
	}}
	steps, err := collect(t, t.Context(), turnOf(m, echo(false)))
	if err != nil {
		t.Fatal(err)
	}
	reply, ok := steps[len(steps)-1].(Reply)
	if !ok || transcript.JoinText(reply.Message.Content) != "one+two" {
		t.Errorf("last step = %+v", steps[len(steps)-1])
	}
}

func TestWrongCallsBecomeResults(t *testing.T) {
	panics := fakeTool{spec: tool.Spec{Name: "Panics", Schema: tool.NewSchema(`{"type":"object"}`)},
		run: func(context.Context, tool.Call) tool.Result { panic("boom") }}
	for name, tc := range map[string]struct {
		block transcript.Block
		want  string
	}{
		"unknown tool":  {call("a", "Nope", `{}`), "No such tool available: Nope"},
		"missing input": {call("a", "Echo", `{}`), "The required parameter `text` is missing"},
		"wrong type":    {call("a", "Echo", `{"text":{}}`), "`text` type is expected as `string`"},
		"invalid JSON":  {call("a", "Echo", `{"invalid_json":"{\"te"}`), "JSON"},
		"panic":         {call("a", "Panics", `{}`), "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &fakeModel{reply: func(round int, _ provider.Request) provider.Reply {
				if round == 1 {
					return calls(tc.block)
				}
				return say("ok")
			}}
			steps, err := collect(t, t.Context(), turnOf(m, echo(false), panics))
			if err != nil {
				t.Fatal(err)
			}
			res := results(steps)
			if len(res) != 1 || !res[0].Result.IsError || !strings.Contains(res[0].Result.Text, tc.want) {
				t.Errorf("results = %+v, want an error with %q", res, tc.want)
			}
		})
	}
}

func TestDuplicateAndEmptyIDsAreMadeUnique(t *testing.T) {
	m := &fakeModel{reply: func(round int, _ provider.Request) provider.Reply {
		if round <= 2 {
			return calls(call("x", "Echo", `{"text":"1"}`), call("x", "Echo", `{"text":"2"}`), call("", "Echo", `{"text":"3"}`))
		}
		return say("ok")
	}}
	steps, err := collect(t, t.Context(), turnOf(m, echo(true)))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range results(steps) {
		if r.Call.ID == "" || seen[r.Call.ID] {
			t.Errorf("id %q is empty or used twice", r.Call.ID)
		}
		seen[r.Call.ID] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d results, want 6", len(seen))
	}
}

func TestManyParallelCallsRunTogetherWithinTheLimit(t *testing.T) {
	var running, most atomic.Int64
	slow := echo(true)
	slow.run = func(context.Context, tool.Call) tool.Result {
		n := running.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(time.Second) // synthetic time
		running.Add(-1)
		return tool.Text("ok")
	}
	synctest.Test(t, func(t *testing.T) {
		m := &fakeModel{reply: func(round int, _ provider.Request) provider.Reply {
			if round > 1 {
				return say("ok")
			}
			var blocks []transcript.Block
			for i := range 200 {
				blocks = append(blocks, call(fmt.Sprint("c", i), "Echo", `{"text":"x"}`))
			}
			return calls(blocks...)
		}}
		steps, err := collect(t, t.Context(), turnOf(m, slow))
		if err != nil || len(results(steps)) != 200 {
			t.Errorf("%d results, err %v", len(results(steps)), err)
		}
	})
	if most.Load() < 2 || most.Load() > maxParallel {
		t.Errorf("at most %d calls ran at once, want 2..%d", most.Load(), maxParallel)
	}
}

func TestCallsThatAreNotParallelKeepTheirOrder(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := echo(false)
	note.run = func(_ context.Context, c tool.Call) tool.Result {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, c.ID)
		return tool.Text("ok")
	}
	m := &fakeModel{reply: func(round int, _ provider.Request) provider.Reply {
		if round > 1 {
			return say("ok")
		}
		return calls(call("1", "Echo", `{"text":""}`), call("2", "Echo", `{"text":""}`), call("3", "Echo", `{"text":""}`))
	}}
	if _, err := collect(t, t.Context(), turnOf(m, note)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ","); got != "1,2,3" {
		t.Errorf("order = %s", got)
	}
}

func TestInterruptGivesEveryCallAResult(t *testing.T) {
	stop := errors.New("stop it")
	ctx, cancel := context.WithCancelCause(t.Context())
	waits := fakeTool{
		spec: tool.Spec{Name: "Wait", Schema: tool.NewSchema(`{"type":"object"}`)},
		run: func(ctx context.Context, _ tool.Call) tool.Result {
			cancel(stop)
			<-ctx.Done()
			return tool.Error("interrupted")
		},
	}
	m := &fakeModel{reply: func(int, provider.Request) provider.Reply {
		return calls(call("a", "Wait", `{}`), call("b", "Wait", `{}`), call("c", "Nope", `{}`))
	}}
	steps, err := collect(t, ctx, turnOf(m, waits))
	if !errors.Is(err, stop) {
		t.Errorf("err = %v, want the cause", err)
	}
	if n := len(results(steps)); n != 3 {
		t.Errorf("%d results, want 3", n)
	}
	if m.rounds.Load() != 1 {
		t.Errorf("the model was asked %d times", m.rounds.Load())
	}
}

func TestInterruptWhileStreamingKeepsTheTextSoFar(t *testing.T) {
	stop := errors.New("stop it")
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &fakeModel{before: func(ctx context.Context, _ int, yield func(provider.Event, error) bool) error {
		yield(provider.TextDelta{Text: "half a sen"}, nil)
		cancel(stop)
		return context.Cause(ctx)
	}}
	steps, err := collect(t, ctx, turnOf(m))
	if !errors.Is(err, stop) {
		t.Errorf("err = %v", err)
	}
	reply, ok := steps[len(steps)-1].(Reply)
	if !ok || transcript.JoinText(reply.Message.Content) != "half a sen" {
		t.Errorf("steps = %+v", steps)
	}
}

func TestEndlessRepliesEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		reply func(int, provider.Request) provider.Reply
		max   int
		want  error
	}{
		"rounds": {func(r int, _ provider.Request) provider.Reply {
			return calls(call(fmt.Sprint(r), "Echo", `{"text":"x"}`))
		}, 5, ErrMaxRounds},
		"empty": {func(int, provider.Request) provider.Reply { return provider.Reply{} }, 0, ErrEmpty},
		"stuck": {func(r int, _ provider.Request) provider.Reply { return calls(call(fmt.Sprint(r), "Nope", `{}`)) }, 0, ErrStuck},
		"cut off": {func(int, provider.Request) provider.Reply {
			r := say("and")
			r.Message.StopReason = "max_tokens"
			return r
		}, 0, ErrCutOff},
		"broken": {func(int, provider.Request) provider.Reply {
			r := say("and")
			r.Broken = errBroken
			return r
		}, 0, errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			turn := turnOf(&fakeModel{reply: tc.reply}, echo(false))
			turn.MaxRounds = tc.max
			if _, err := collect(t, t.Context(), turn); !errors.Is(err, tc.want) {
				t.Errorf("err = %v, want %v", err, tc.want)
			}
		})
	}
}

var errBroken = errors.New("connection reset")

func TestABrokenReplyGoesOn(t *testing.T) {
	m := &fakeModel{reply: func(round int, req provider.Request) provider.Reply {
		if round == 1 {
			r := say("the first ha")
			r.Broken = errBroken
			return r
		}
		return say("lf")
	}}
	steps, err := collect(t, t.Context(), turnOf(m))
	if err != nil || m.rounds.Load() != 2 {
		t.Errorf("err = %v after %d rounds", err, m.rounds.Load())
	}
	if _, ok := steps[1].(Note); !ok {
		t.Errorf("steps = %+v, want a note after the broken reply", steps)
	}
}

// TestAnOutageIsTheProvidersMatter: however often replies break off in one, the
// loop asks again, and hands back what the provider said of it; a request after
// a reply with nothing in it is the same one.
func TestAnOutageIsTheProvidersMatter(t *testing.T) {
	var asked []provider.Request
	m := &fakeModel{reply: func(round int, req provider.Request) provider.Reply {
		asked = append(asked, req)
		var r provider.Reply
		switch {
		case round <= 5:
			r = provider.Reply{Message: transcript.Message{Role: transcript.Assistant}}
		case round <= 10:
			r = say("ha")
		default:
			return say("lf")
		}
		r.Broken, r.Outage = errBroken, provider.Outage{Failures: round}
		return r
	}}
	turn := turnOf(m)
	turn.MaxRounds = 1
	steps, err := collect(t, t.Context(), turn)
	if err != nil || len(asked) != 11 {
		t.Fatalf("err = %v after %d requests", err, len(asked))
	}
	for i, req := range asked {
		if req.Outage.Failures != i {
			t.Errorf("request %d comes after %d failures", i+1, req.Outage.Failures)
		}
		if i <= 5 && len(req.Messages) != len(asked[0].Messages) {
			t.Errorf("request %d differs from the first", i+1)
		}
	}
	notes := 0
	for _, s := range steps {
		if _, ok := s.(Note); ok {
			notes++
		}
	}
	if notes != 5 {
		t.Errorf("%d notes, want one for each reply with a text", notes)
	}
}

func TestInputIsTakenBetweenRounds(t *testing.T) {
	m := &fakeModel{reply: func(round int, req provider.Request) provider.Reply {
		if round == 1 {
			return calls(call("a", "Echo", `{"text":"x"}`))
		}
		last := req.Messages[len(req.Messages)-1]
		return say(transcript.JoinText(last.Content))
	}}
	turn := turnOf(m, echo(false))
	turn.Input = func(context.Context) ([]transcript.Message, error) {
		return []transcript.Message{transcript.UserText("also this")}, nil
	}
	steps := []Step{}
	for s, err := range Run(t.Context(), turn) {
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, s)
	}
	reply := steps[len(steps)-1].(Reply)
	if got := transcript.JoinText(reply.Message.Content); got != "also this" {
		t.Errorf("the model saw %q", got)
	}
}

func TestRefusalsReachTheModelAndMayEndTheTurn(t *testing.T) {
	m := &fakeModel{reply: func(round int, _ provider.Request) provider.Reply {
		if round == 1 {
			return calls(call("a", "Echo", `{"text":"x"}`))
		}
		return say("ok")
	}}
	turn := turnOf(m, echo(false))
	turn.Permit = func(context.Context, tool.Tool, tool.Call) Verdict { return Verdict{Reason: "no", EndTurn: true} }
	steps, err := collect(t, t.Context(), turn)
	res := results(steps)
	if err != nil || len(res) != 1 || !res[0].Denied || res[0].Result.Text != "no" || m.rounds.Load() != 1 {
		t.Errorf("results %+v, err %v, rounds %d", res, err, m.rounds.Load())
	}
}

// What a call took is its run, and not how long a person thought about it.
func TestTheTimeOfACallBeginsWhenItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeModel{reply: func(round int, _ provider.Request) provider.Reply {
			if round == 1 {
				return calls(call("a", "Slow", `{}`))
			}
			return say("ok")
		}}
		slow := fakeTool{
			spec: tool.Spec{Name: "Slow", Schema: tool.NewSchema(`{"type":"object"}`)},
			run: func(context.Context, tool.Call) tool.Result {
				<-time.After(2 * time.Second)
				return tool.Text("done")
			},
		}
		turn := turnOf(m, slow)
		turn.Permit = func(context.Context, tool.Tool, tool.Call) Verdict {
			<-time.After(time.Minute)
			return Verdict{Allow: true}
		}
		steps, err := collect(t, t.Context(), turn)
		if res := results(steps); err != nil || len(res) != 1 || res[0].Took != 2*time.Second {
			t.Errorf("results %+v, err %v", res, err)
		}
	})
}

func TestAnApprovalMayChangeTheInput(t *testing.T) {
	m := &fakeModel{reply: func(round int, _ provider.Request) provider.Reply {
		if round == 1 {
			return calls(call("a", "Echo", `{"text":"x"}`))
		}
		return say("ok")
	}}
	turn := turnOf(m, echo(false))
	turn.Permit = func(context.Context, tool.Tool, tool.Call) Verdict {
		return Verdict{Allow: true, Input: json.RawMessage(`{"text":"changed"}`)}
	}
	steps, _ := collect(t, t.Context(), turn)
	if got := results(steps)[0].Result.Text; got != "changed" {
		t.Errorf("the tool got %q", got)
	}
}

func TestABrokenOffTurnWaitsForItsCalls(t *testing.T) {
	var ended atomic.Bool
	slow := fakeTool{
		spec: tool.Spec{Name: "Slow", Schema: tool.NewSchema(`{"type":"object"}`), Parallel: true},
		run: func(ctx context.Context, _ tool.Call) tool.Result {
			<-ctx.Done()
			ended.Store(true)
			return tool.Error("stopped")
		},
	}
	m := &fakeModel{reply: func(int, provider.Request) provider.Reply { return calls(call("a", "Slow", `{}`)) }}
	for s := range Run(t.Context(), turnOf(m, slow)) {
		if _, ok := s.(Started); ok {
			break
		}
	}
	if !ended.Load() {
		t.Error("Run returned before its call did")
	}
}

func TestAReplyBrokenByTheInterruptIsNoFault(t *testing.T) {
	stop := errors.New("stop it")
	ctx, cancel := context.WithCancelCause(t.Context())
	m := &fakeModel{
		before: func(_ context.Context, _ int, yield func(provider.Event, error) bool) error {
			yield(provider.TextDelta{Text: "half"}, nil)
			cancel(stop)
			return nil
		},
		reply: func(int, provider.Request) provider.Reply {
			r := say("half")
			r.Broken = stop
			return r
		},
	}
	steps, err := collect(t, ctx, turnOf(m))
	if !errors.Is(err, stop) || m.rounds.Load() != 1 {
		t.Errorf("err = %v after %d rounds", err, m.rounds.Load())
	}
	for _, s := range steps {
		if _, ok := s.(Note); ok {
			t.Error("the model is told that the connection broke")
		}
	}
}

// source is a [tool.Source] that changes with the rounds.
type source func() *tool.Set

func (s source) Tools() *tool.Set { return s() }

// Tools come late and go. A request tells of those that are there; a call runs with
// the tool that its request told of.
func TestToolsAreThoseOfTheRequest(t *testing.T) {
	var requests [][]provider.Tool
	m := &fakeModel{reply: func(round int, req provider.Request) provider.Reply {
		requests = append(requests, req.Tools)
		switch round {
		case 1:
			return calls(call("a", "Echo", `{"text":"early"}`))
		case 2:
			return calls(call("b", "Echo", `{"text":"x"}`), call("c", "Late", `{"text":"late"}`))
		}
		return say("ok")
	}}
	late := echo(false)
	late.spec.Name, late.spec.Aliases = "Late", nil
	early, then := tool.NewSet(echo(false)), tool.NewSet(late)
	turn := turnOf(m)
	turn.Tools = source(func() *tool.Set {
		if m.rounds.Load() == 0 {
			return early
		}
		return then
	})
	var judged []string
	turn.Permit = func(_ context.Context, t tool.Tool, _ tool.Call) Verdict {
		judged = append(judged, t.Spec().Name)
		return Verdict{Allow: true}
	}
	steps, err := collect(t, t.Context(), turn)
	var got []string
	for _, r := range results(steps) {
		got = append(got, r.Spec.Name+": "+r.Result.Text)
	}
	want := []string{"Echo: early", ": <tool_use_error>No such tool available: Echo</tool_use_error>", "Late: late"}
	if err != nil || !slices.Equal(got, want) || !slices.Equal(judged, []string{"Echo", "Late"}) {
		t.Errorf("%q, judged %q, err %v", got, judged, err)
	}
	offered := func(name string) []provider.Tool {
		return []provider.Tool{{Name: name, Schema: textSchema.JSON()}}
	}
	if diff := cmp.Diff([][]provider.Tool{offered("Echo"), offered("Late"), offered("Late")}, requests); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
}

// A model that makes the same call with the same result is told so now and then, and
// in the end its turn ends; one whose results change, or to which something new comes,
// is left alone.
func TestEqualRoundsAreNotedAndEndTheTurn(t *testing.T) {
	again := func(r int, _ provider.Request) provider.Reply {
		return calls(call(fmt.Sprint(r), "Echo", `{"text":"x"}`))
	}
	turn := turnOf(&fakeModel{reply: again}, echo(false))
	turn.RepeatsNoted = 3
	steps, err := collect(t, t.Context(), turn)
	if !errors.Is(err, ErrRepeating) || !strings.Contains(err.Error(), "60 times in a row") {
		t.Errorf("err = %v", err)
	}
	var rounds int
	var noted []int
	for _, s := range steps {
		switch s := s.(type) {
		case Result:
			rounds++
		case Note:
			if !strings.Contains(transcript.JoinText(s.Message.Content), fmt.Sprintf("your last %d rounds", rounds)) {
				t.Errorf("after %d rounds the model is told %q", rounds, transcript.JoinText(s.Message.Content))
			}
			noted = append(noted, rounds)
		}
	}
	if diff := cmp.Diff([]int{3, 6, 12, 24, 48}, noted); diff != "" || rounds != 60 {
		t.Errorf("%d rounds, noted after (-want +got):\n%s", rounds, diff)
	}

	counting := fakeTool{spec: tool.Spec{Name: "Echo", Schema: textSchema}}
	polls := 0
	counting.run = func(context.Context, tool.Call) tool.Result { polls++; return tool.Text(fmt.Sprint(polls)) }
	for name, turn := range map[string]Turn{
		"changing results": turnOf(&fakeModel{reply: again}, counting),
		"new input":        turnOf(&fakeModel{reply: again}, echo(false)),
	} {
		turn.RepeatsNoted, turn.MaxRounds = 3, 200
		if name == "new input" {
			turn.Input = func(context.Context) ([]transcript.Message, error) {
				return []transcript.Message{transcript.UserText("news")}, nil
			}
		}
		steps, err := collect(t, t.Context(), turn)
		if noted := slices.ContainsFunc(steps, func(s Step) bool { _, ok := s.(Note); return ok }); noted || !errors.Is(err, ErrMaxRounds) {
			t.Errorf("%s: noted %v, err %v", name, noted, err)
		}
	}
}

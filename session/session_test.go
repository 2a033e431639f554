package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

func TestPromptIsStoredAnsweredAndPublished(t *testing.T) {
	log := &memLog{}
	s := open(t, log, echoModel(), nil)
	if err := s.Prompt(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	end := until[event.TurnEnded](t, s, nil)
	if end.Outcome.Text != "you said: hello" || end.Outcome.Reason != event.Done || end.Outcome.Rounds != 1 {
		t.Errorf("outcome = %+v", end.Outcome)
	}
	entries, _ := log.Entries(t.Context())
	if len(entries) != 2 || entries[1].ParentUUID != entries[0].UUID || entries[0].ParentUUID != "" {
		t.Errorf("entries = %+v", entries)
	}
}

func TestEventsAreNumberedInOrder(t *testing.T) {
	s := open(t, &memLog{}, echoModel(), nil)
	_ = s.Prompt(t.Context(), "hello")
	until[event.TurnEnded](t, s, nil)
	var last uint64
	for ev := range s.Events(t.Context(), 0) {
		if ev.Seq <= last {
			t.Fatalf("event %d follows %d", ev.Seq, last)
		}
		last = ev.Seq
		if _, ok := ev.Body.(event.Idle); ok {
			break
		}
	}
}

func TestInputOfABusySessionIsTakenInBetweenRounds(t *testing.T) {
	inTool, goOn := make(chan struct{}), make(chan struct{})
	waits := funcTool{name: "Wait", run: func(context.Context, tool.Call) tool.Result {
		close(inTool)
		<-goOn
		return tool.Text("waited")
	}}
	var model scriptModel = func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		if len(req.Messages) == 1 {
			yield(reply(use("Wait", `{}`)), nil)
			return
		}
		yield(reply(transcript.TextBlock(transcript.JoinText(req.Messages[2].Content))), nil)
	}
	s := open(t, &memLog{}, model, nil, waits)
	_ = s.Prompt(t.Context(), "go")
	<-inTool
	ctx := t.Context()
	for _, in := range []Input{Text(PeerMail, "from a peer"), Text(LeadMail, "from the lead"), Text(Prompt, "from the person")} {
		if err := s.Send(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	end := until[event.TurnEnded](t, s, nil)
	if want := "from the person\nfrom the lead\nfrom a peer"; end.Outcome.Text != want {
		t.Errorf("the model saw %q, want %q in the order of ranks", end.Outcome.Text, want)
	}
}

func TestAStoredCallWithoutAResultGetsOneWhenOpened(t *testing.T) {
	log := &memLog{entries: []transcript.Entry{
		{UUID: "1", Kind: transcript.KindUser, Message: transcript.UserText("go")},
		{UUID: "2", ParentUUID: "1", Kind: transcript.KindAssistant, Message: transcript.Message{
			ID: "m", Role: transcript.Assistant, Content: []transcript.Block{use("Bash", `{}`)},
		}},
	}}
	s := open(t, log, echoModel(), nil)
	entries, _ := log.Entries(t.Context())
	if len(entries) != 3 || entries[2].Message.Content[0].Text != transcript.LostResult {
		t.Fatalf("entries = %+v", entries)
	}
	if err := s.Prompt(t.Context(), "and now?"); err != nil {
		t.Fatal(err)
	}
	until[event.TurnEnded](t, s, func(e event.TurnEnded) bool { return e.Outcome.Reason == event.Done })
}

func TestInterruptKeepsWhatWasDoneAndSaysSo(t *testing.T) {
	inTool := make(chan struct{})
	waits := funcTool{name: "Wait", run: func(ctx context.Context, _ tool.Call) tool.Result {
		close(inTool)
		<-ctx.Done()
		return tool.Error("half done")
	}}
	var model scriptModel = func(_ context.Context, _ provider.Request, yield func(provider.Event, error) bool) {
		yield(reply(use("Wait", `{}`), use("Wait2", `{}`)), nil)
	}
	log := &memLog{}
	s := open(t, log, model, nil, waits)
	_ = s.Prompt(t.Context(), "go")
	<-inTool
	_ = s.Interrupt(t.Context(), ErrInterrupt)
	end := until[event.TurnEnded](t, s, nil)
	if end.Outcome.Reason != event.Interrupted {
		t.Errorf("reason = %s", end.Outcome.Reason)
	}
	messages := kept(t, log)
	last := messages[len(messages)-1]
	if n := len(last.Content); n != 3 || last.Content[n-1].Text != transcript.InterruptedForTool {
		t.Errorf("last message = %+v", last)
	}
}

func TestWithoutAnybodyToAskTheAnswerIsNo(t *testing.T) {
	ran := false
	writes := funcTool{name: "Write", access: tool.Access{Write: []string{"/elsewhere/x"}},
		run: func(context.Context, tool.Call) tool.Result { ran = true; return tool.Text("ok") }}
	s := open(t, &memLog{}, callOnce("Write"), func(c *Config) { c.Policy = permission.Policy{Folders: []string{"/w"}} }, writes)
	_ = s.Prompt(t.Context(), "go")
	denied := until[event.ToolDenied](t, s, nil)
	end := until[event.TurnEnded](t, s, nil)
	if ran || len(end.Outcome.Denied) != 1 || denied.Tool != "Write" {
		t.Errorf("ran %v, denied %+v", ran, end.Outcome.Denied)
	}
	if !strings.Contains(end.Outcome.Text, "Nobody can be asked") {
		t.Errorf("the model was told %q", end.Outcome.Text)
	}
}

// callOnce calls a tool once and then repeats its result.
func callOnce(name string) scriptModel {
	return func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		if last.Content[0].Type != transcript.ToolResult {
			yield(reply(use(name, `{}`)), nil)
			return
		}
		yield(reply(transcript.TextBlock(last.Content[0].ResultText())), nil)
	}
}

func asking(run func(context.Context, tool.Call) tool.Result) funcTool {
	return funcTool{name: "Write", access: tool.Access{Write: []string{"/elsewhere/x"}}, run: run}
}

func folders(c *Config) { c.Policy = permission.Policy{Folders: []string{"/w"}} }

func TestTheFirstAnswerCounts(t *testing.T) {
	write := asking(func(_ context.Context, c tool.Call) tool.Result { return tool.Text("wrote " + string(c.Input)) })
	s := open(t, &memLog{}, callOnce("Write"), folders, write)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	asked := until[event.Asked](t, s, nil)
	if asked.Ask.Digest != ask.DigestOf("Write", json.RawMessage(`{}`)) {
		t.Errorf("ask = %+v", asked.Ask)
	}
	if err := s.Answer(t.Context(), asked.Ask.ID, ask.Answer{Allow: true, UpdatedInput: json.RawMessage(`{"n":1}`), By: "person"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(t.Context(), asked.Ask.ID, ask.Answer{By: "late"}); !errors.Is(err, ask.ErrUnknown) {
		t.Errorf("second answer: %v", err)
	}
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text != `wrote {"n":1}` {
		t.Errorf("outcome = %+v", end.Outcome)
	}
}

func TestAnApprovalNeverOverridesADeny(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	s := open(t, &memLog{}, callOnce("Write"), folders, write)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	asked := until[event.Asked](t, s, nil)
	_ = s.SetMode(t.Context(), permission.Plan) // from now on writing is denied
	_ = s.Answer(t.Context(), asked.Ask.ID, ask.Answer{Allow: true, UpdatedInput: json.RawMessage(`{"n":1}`)})
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text == "wrote" {
		t.Error("a changed input ran although it is denied")
	}
}

func TestADeadlineEndsAnAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
		s := open(t, &memLog{}, callOnce("Write"), func(c *Config) { folders(c); c.Tree = NewTree(TreeConfig{AskTime: time.Hour}) }, write)
		defer s.Attend()()
		_ = s.Prompt(t.Context(), "go")
		answered := until[event.Answered](t, s, nil)
		if answered.Answer.Allow || answered.Answer.By != "deadline" {
			t.Errorf("answer = %+v", answered.Answer)
		}
		_ = s.Close(nil)
	})
}

func TestAnInterruptEndsAPendingAsk(t *testing.T) {
	write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
	log := &memLog{}
	s := open(t, log, callOnce("Write"), folders, write)
	defer s.Attend()()
	_ = s.Prompt(t.Context(), "go")
	asked := until[event.Asked](t, s, nil)
	_ = s.Interrupt(t.Context(), ErrInterrupt)
	until[event.TurnEnded](t, s, nil)
	if got := until[event.Answered](t, s, nil); got.ID != asked.Ask.ID || got.Answer.Allow {
		t.Errorf("answered %+v", got)
	}
	kept(t, log)
}

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	full := false
	log := &memLog{fail: func() error {
		if full {
			return errDisk
		}
		return nil
	}}
	fills := funcTool{name: "Fill", run: func(context.Context, tool.Call) tool.Result { full = true; return tool.Text("filled") }}
	s := open(t, log, callOnce("Fill"), nil, fills)
	_ = s.Prompt(t.Context(), "go")
	end := until[event.TurnEnded](t, s, nil)
	if end.Outcome.Reason != event.Failed || !strings.Contains(end.Outcome.Err, errDisk.Error()) {
		t.Errorf("outcome = %+v", end.Outcome)
	}
	if err := s.Prompt(t.Context(), "again"); !errors.Is(err, errDisk) {
		t.Errorf("a prompt that cannot be kept: %v", err)
	}
	full = false
	if err := s.Prompt(t.Context(), "now"); err != nil {
		t.Fatal(err)
	}
	until[event.TurnEnded](t, s, func(e event.TurnEnded) bool { return e.Outcome.Reason == event.Done })
	kept(t, log)
}

// recaller is a source without input that keeps the receipts of the transcript.
type recaller struct{ receipts *[]string }

func (r recaller) Opened(receipts []string) { *r.receipts = receipts }

func (r recaller) Next(ctx context.Context) ([]Input, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// channelSource hands out what is sent to it.
type channelSource chan []Input

func (c channelSource) Opened([]string) {}

func (c channelSource) Next(ctx context.Context) ([]Input, error) {
	select {
	case in := <-c:
		return in, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestASourceWakesAnIdleSessionAndLearnsWhenItsInputIsKept(t *testing.T) {
	src := make(channelSource)
	told := make(chan error, 1)
	log := &memLog{}
	s := open(t, log, echoModel(), func(c *Config) { c.Sources = []Source{src} })
	in := Text(LeadMail, "wake up")
	in.Receipts = []string{"mail-1"}
	in.Kept = func(_ context.Context, err error) { told <- err }
	src <- []Input{in}
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text != "you said: wake up" {
		t.Errorf("outcome = %+v", end.Outcome)
	}
	entries, _ := log.Entries(t.Context())
	if got := entries[0].Receipts; len(got) != 1 || got[0] != "mail-1" {
		t.Errorf("receipts = %v", got)
	}
}

func TestIdleMayFindInputAndMayLeave(t *testing.T) {
	var turns []string
	idle := func(_ context.Context, last *event.Outcome) (*Input, error) {
		turns = append(turns, last.Text)
		if len(turns) == 2 {
			return nil, ErrLeave
		}
		in := Text(TaskToTake, "a task")
		return &in, nil
	}
	s := open(t, &memLog{}, echoModel(), func(c *Config) { c.Life = life{idle: idle} })
	_ = s.Prompt(t.Context(), "hello")
	<-s.Done()
	if len(turns) != 2 || turns[0] != "you said: hello" || turns[1] != "you said: a task" {
		t.Errorf("turns = %q", turns)
	}
	if err := s.Prompt(t.Context(), "too late"); !errors.Is(err, ErrClosed) {
		t.Errorf("prompt of a session that left: %v", err)
	}
}

// The note that an agent is idle is not lost when the first attempt to send it fails.
func TestIdleIsCalledAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		l := life{wake: make(chan struct{}, 1), idle: func(_ context.Context, last *event.Outcome) (*Input, error) {
			what := "woken"
			if last != nil {
				what = last.Text
			}
			calls = append(calls, what)
			if len(calls)%3 != 0 {
				return nil, errDisk
			}
			return nil, nil
		}}
		s := open(t, &memLog{}, echoModel(), func(c *Config) { c.Life = l })
		if err := s.Prompt(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		l.wake <- struct{}{}
		<-time.After(time.Minute)
		if want := []string{"you said: hello", "you said: hello", "you said: hello", "woken", "woken", "woken"}; !slices.Equal(calls, want) {
			t.Errorf("called with %q", calls)
		}
		_ = s.Close(nil)
		warnings := 0
		for _, ev := range events(s.tree) {
			if n, ok := ev.Body.(event.Noticed); ok && n.Level == "warning" {
				warnings++
			}
		}
		if warnings != 2 {
			t.Errorf("a person was told %d times", warnings)
		}
	})
}

func TestWakeAsksIdleAgainWithoutATurn(t *testing.T) {
	wake := make(chan struct{}, 1)
	woken := make(chan bool, 2)
	idle := func(_ context.Context, last *event.Outcome) (*Input, error) { woken <- last == nil; return nil, nil }
	s := open(t, &memLog{}, echoModel(), func(c *Config) { c.Life = life{idle: idle, wake: wake} })
	_ = s.Prompt(t.Context(), "hello")
	if <-woken {
		t.Error("the first call has no turn")
	}
	wake <- struct{}{}
	if !<-woken {
		t.Error("the second call has a turn")
	}
}

// What the hook tells others holds until it has returned: the next turn has not
// begun.
func TestATurnDoesNotOvertakeIdle(t *testing.T) {
	var s *Session
	begun := 0 // by the owner; read between two of its steps
	opened, during := make(chan struct{}), make(chan int, 2)
	idle := func(ctx context.Context, last *event.Outcome) (*Input, error) {
		<-opened
		if last.Text != "you said: one" {
			return nil, ErrLeave
		}
		_ = s.Send(ctx, Text(LeadMail, "two"))
		for range 2 { // the owner has dealt with the first when it takes the second
			_ = s.SetMode(ctx, permission.Default)
		}
		during <- begun
		return nil, nil
	}
	s = open(t, &memLog{}, echoModel(), func(c *Config) { c.Life = life{idle: idle, begins: func() { begun++ }} })
	close(opened)
	_ = s.Prompt(t.Context(), "one")
	if n := <-during; n != 1 {
		t.Errorf("%d turns had begun", n)
	}
	<-s.Done()
	if begun != 2 {
		t.Errorf("in the end %d turns had begun", begun)
	}
}

func TestCloseRefusesWhatWaitsAndGivesTheLogBack(t *testing.T) {
	inTool := make(chan struct{})
	waits := funcTool{name: "Wait", run: func(ctx context.Context, _ tool.Call) tool.Result {
		close(inTool)
		<-ctx.Done()
		return tool.Error("stopped")
	}}
	log := &memLog{}
	s := open(t, log, callOnce("Wait"), nil, waits)
	_ = s.Prompt(t.Context(), "go")
	<-inTool
	told := make(chan error, 1)
	in := Text(PeerMail, "late")
	in.Kept = func(_ context.Context, err error) { told <- err }
	_ = s.Send(t.Context(), in)
	if err := s.Close(nil); err != nil {
		t.Fatal(err)
	}
	if err := <-told; !errors.Is(err, ErrClosed) {
		t.Errorf("waiting input was told %v", err)
	}
	if !log.closed {
		t.Error("the transcript was not given back")
	}
	kept(t, log)
}

func TestALostResultSaysWhatIsKnownAndCountsAsShown(t *testing.T) {
	log := &memLog{entries: []transcript.Entry{
		{UUID: "1", Kind: transcript.KindUser, Message: transcript.UserText("go"), Receipts: []string{"mail"}},
		{UUID: "2", ParentUUID: "1", Kind: transcript.KindAssistant, Message: transcript.Message{
			ID: "m", Role: transcript.Assistant, Content: []transcript.Block{use("Bash", `{}`), use("Read", `{}`)},
		}},
	}}
	var recalled []string
	open(t, log, echoModel(), func(c *Config) {
		c.Voice = voice{lost: func(call string) (string, []string) {
			if call == log.entries[1].Message.Content[0].ID {
				return "It was ended.", []string{"job-b1"}
			}
			return "", nil
		}}
		c.Sources = []Source{recaller{&recalled}}
	})
	entries, _ := log.Entries(t.Context())
	if len(entries) != 4 {
		t.Fatalf("entries = %+v", entries)
	}
	if got, want := entries[2].Message.Content[0].Text, transcript.LostResult+" It was ended."; got != want {
		t.Errorf("the result of the known call is %q", got)
	}
	if got := entries[3].Message.Content[0].Text; got != transcript.LostResult {
		t.Errorf("the result of the other call is %q", got)
	}
	if diff := cmp.Diff([]string{"mail", "job-b1"}, recalled); diff != "" {
		t.Errorf("recalled (-want +got):\n%s", diff)
	}
}

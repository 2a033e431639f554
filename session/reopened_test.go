package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// killed is what a process that was killed while a call waited for an answer
// left behind.
type killed struct {
	log  *memLog
	asks *memAsks
	desk *memDesk
	ran  []string // inputs that Write ran with
}

const waitedFor = `{"file":"a"}`

func killedWhileAsking(change func(*ask.Ask)) *killed {
	call := transcript.Block{Type: transcript.ToolUse, ID: "waits", Name: "Write", Input: json.RawMessage(waitedFor)}
	k := &killed{desk: &memDesk{}, asks: &memAsks{}, log: &memLog{entries: []transcript.Entry{
		{UUID: "1", Kind: transcript.KindUser, Message: transcript.UserText("go")},
		{UUID: "2", ParentUUID: "1", Kind: transcript.KindAssistant, Message: transcript.Message{
			ID: "m", Role: transcript.Assistant, Content: []transcript.Block{call},
		}},
	}}}
	a := ask.Ask{ID: "ask-1", Kind: ask.Permission, Tool: "Write", ToolUseID: "waits", Input: call.Input,
		Digest: ask.DigestOf("Write", call.Input), Asked: time.Now()}
	if change != nil {
		change(&a)
	}
	_ = k.asks.Put(context.Background(), a)
	_ = k.desk.Lay(context.Background(), a)
	return k
}

// reopen opens the session that was killed. The model makes the call that it is
// told was approved, and says what else it is told.
func (k *killed) reopen(t *testing.T, change func(*Config)) *Session {
	t.Helper()
	write := asking(func(_ context.Context, c tool.Call) tool.Result {
		k.ran = append(k.ran, string(c.Input))
		return tool.Text("wrote " + string(c.Input))
	})
	var model scriptModel = func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		last := req.Messages[len(req.Messages)-1].Content
		text := last[len(last)-1].Text
		if strings.HasPrefix(text, "{") {
			yield(reply(use("Write", " "+text)), nil)
			return
		}
		yield(reply(transcript.TextBlock("told: "+text)), nil)
	}
	return open(t, k.log, model, func(c *Config) {
		folders(c)
		c.Asks, c.Tree = k.asks, NewTree(TreeConfig{Desk: k.desk})
		if change != nil {
			change(c)
		}
	}, write)
}

func (k *killed) pending(t *testing.T) []ask.Ask {
	t.Helper()
	asks, err := k.asks.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return asks
}

func TestAQuestionSurvivesTheKillOfItsAsker(t *testing.T) {
	k := killedWhileAsking(nil)
	for range 2 { // the second time its call has a result already
		s := k.reopen(t, nil)
		if asked := until[event.Asked](t, s, nil); asked.Ask.ID != "ask-1" {
			t.Errorf("asked %+v", asked.Ask)
		}
		if told := kept(t, k.log)[2].Content[0]; told.Text != stillOpen || !told.IsError {
			t.Errorf("the result of the call is %+v", told)
		}
		deskIsDone(t, s.tree)
		if s.State().Busy || len(k.pending(t)) != 1 || len(k.desk.lies) != 1 || len(s.tree.Questions.Pending()) != 1 {
			t.Error("the question is not open")
		}
		if err := s.Close(nil); err != nil {
			t.Fatal(err)
		}
		deskIsDone(t, s.tree)
		if len(k.pending(t)) != 1 || len(k.desk.lies) != 1 {
			t.Error("an orderly end settled the question")
		}
	}
}

func TestALateApprovalLetsExactlyThatCallPassOnce(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, nil)
	if err := s.Answer(t.Context(), "ask-1", ask.Answer{Allow: true, Message: "mind the tests", By: "person"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(t.Context(), "ask-1", ask.Answer{}); !errors.Is(err, ask.ErrUnknown) {
		t.Errorf("a second answer: %v", err)
	}
	until[event.TurnEnded](t, s, nil)
	if len(k.ran) != 1 || strings.TrimSpace(k.ran[0]) != waitedFor {
		t.Fatalf("ran %q", k.ran)
	}
	if told := transcript.JoinText(kept(t, k.log)[2].Content); !strings.Contains(told, "mind the tests") {
		t.Errorf("the model was told %q", told)
	}
	deskIsDone(t, s.tree)
	if len(k.pending(t)) != 0 || len(k.desk.lies) != 0 {
		t.Errorf("left over: %+v, %+v", k.pending(t), k.desk.lies)
	}
	// Nobody attends, so a second time it is refused.
	_ = s.Prompt(t.Context(), waitedFor)
	until[event.ToolDenied](t, s, nil)
	if len(k.ran) != 1 {
		t.Errorf("ran %q", k.ran)
	}
}

func TestALateApprovalIsForNoOtherCall(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, func(c *Config) { c.Model = callOnce("Write") }) // with other input
	_ = s.Answer(t.Context(), "ask-1", ask.Answer{Allow: true})
	_ = s.Prompt(t.Context(), "go on")
	until[event.ToolDenied](t, s, nil)
	if len(k.ran) != 0 {
		t.Errorf("ran %q", k.ran)
	}
}

func TestALateApprovalNeverOverridesADeny(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, func(c *Config) { c.Policy.Mode = permission.Plan })
	_ = s.Answer(t.Context(), "ask-1", ask.Answer{Allow: true})
	until[event.ToolDenied](t, s, nil)
	if len(k.ran) != 0 {
		t.Errorf("ran %q", k.ran)
	}
}

func TestALateApprovalMayChangeTheInputAndTheRules(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, nil)
	_ = s.Answer(t.Context(), "ask-1", ask.Answer{Allow: true, UpdatedInput: json.RawMessage(`{"file": "b"}`), Updates: []ask.Suggestion{{
		Type: "addRules", Behavior: "allow", Rules: []ask.Rule{{ToolName: "Other"}},
	}}})
	until[event.TurnEnded](t, s, nil)
	if len(k.ran) != 1 || strings.TrimSpace(k.ran[0]) != `{"file":"b"}` {
		t.Errorf("ran %q", k.ran)
	}
	if granted := s.tree.Granted(); len(granted) != 1 {
		t.Errorf("granted %+v", granted)
	}
}

func TestALateDenialIsTold(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, nil)
	_ = s.Answer(t.Context(), "ask-1", ask.Answer{Message: "use the other file"})
	if end := until[event.TurnEnded](t, s, nil); !strings.Contains(end.Outcome.Text, "use the other file") {
		t.Errorf("the model was told %q", end.Outcome.Text)
	}
	if len(k.pending(t)) != 0 {
		t.Errorf("left over: %+v", k.pending(t))
	}
}

func TestALateAnswerThatIsAcceptedSurvivesAKill(t *testing.T) {
	for _, answer := range []ask.Answer{{Allow: true}, {Message: "no, not now"}} {
		k := killedWhileAsking(nil)
		s := k.reopen(t, nil)
		until[event.Asked](t, s, nil)
		k.log.breakWith(errDisk) // the model cannot be told any more
		if err := s.Answer(t.Context(), "ask-1", answer); err != nil {
			t.Fatal(err)
		}
		_ = s.Close(nil)
		k.log.breakWith(nil)
		s = k.reopen(t, nil)
		until[event.TurnEnded](t, s, nil)
		if told := lastTold(kept(t, k.log)); answer.Allow != (len(k.ran) == 1) || !answer.Allow && !strings.Contains(told, "no, not now") {
			t.Errorf("%+v: ran %q, the model was told %q", answer, k.ran, told)
		}
		_ = s.Close(nil)
		if len(k.pending(t)) != 0 {
			t.Errorf("left over: %+v", k.pending(t))
		}
	}
}

func TestALateAnswerThatCouldNotBeToldGoesWithTheNextInput(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, nil)
	until[event.Asked](t, s, nil)
	k.log.breakWith(errDisk)
	if err := s.Answer(t.Context(), "ask-1", ask.Answer{Message: "no, not now"}); err != nil {
		t.Fatal(err)
	}
	until[event.Noticed](t, s, nil)
	for s.State().Busy {
		<-s.tree.IdleSignal()
	}
	k.log.breakWith(nil)
	_ = s.Prompt(t.Context(), "and now?")
	until[event.TurnEnded](t, s, nil)
	if told := lastTold(kept(t, k.log)); !strings.Contains(told, "no, not now") || !strings.Contains(told, "and now?") {
		t.Errorf("the model was told %q", told)
	}
}

func TestALateAnswerIsToldOnce(t *testing.T) {
	for _, answer := range []ask.Answer{{Allow: true}, {Message: "no, not now"}} {
		k := killedWhileAsking(nil)
		// The model does not make the call, and the end of the ask is never kept.
		model := func(c *Config) { c.Model = echoModel() }
		s := k.reopen(t, model)
		until[event.Asked](t, s, nil)
		puts := 0
		k.asks.fail = func() error {
			if puts++; puts > 1 {
				return errDisk
			}
			return nil
		}
		if err := s.Answer(t.Context(), "ask-1", answer); err != nil {
			t.Fatal(err)
		}
		until[event.TurnEnded](t, s, nil)
		_ = s.Close(nil)
		k.asks.fail = nil
		before := len(k.log.entries)
		s = k.reopen(t, nil)
		if s.State().Busy || len(k.log.entries) != before {
			t.Errorf("%+v was told again", answer)
		}
		_ = s.Prompt(t.Context(), waitedFor)
		until[event.TurnEnded](t, s, nil)
		if answer.Allow != (len(k.ran) == 1) {
			t.Errorf("%+v: ran %q", answer, k.ran)
		}
		_ = s.Close(nil)
		if len(k.pending(t)) != 0 {
			t.Errorf("left over: %+v", k.pending(t))
		}
	}
}

func TestAnAnswerLeftWhileNobodyWasThereCounts(t *testing.T) {
	for _, answer := range []ask.Answer{{Allow: true}, {Message: "better not"}} {
		k := killedWhileAsking(func(a *ask.Ask) { a.Deadline = a.Asked.Add(-time.Second) }) // it came in time
		_ = k.desk.Leave(t.Context(), "ask-1", answer)
		s := k.reopen(t, nil)
		if answer.Allow {
			until[event.TurnEnded](t, s, nil)
		} else if told := lastTold(kept(t, k.log)); told != "" || kept(t, k.log)[2].Content[0].Text != "better not" {
			t.Errorf("the result of the call is %+v", kept(t, k.log)[2].Content)
		} else if note := until[event.Noticed](t, s, nil); note.Text != "the question about Write, asked before the restart, was answered: no (better not)" {
			t.Errorf("people are shown %+v", note)
		}
		deskIsDone(t, s.tree)
		if answer.Allow != (len(k.ran) == 1) || len(k.pending(t)) != 0 || len(k.desk.lies) != 0 {
			t.Errorf("%+v: ran %q, left over %+v", answer, k.ran, k.pending(t))
		}
	}
}

func TestADeadlineHoldsOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := killedWhileAsking(func(a *ask.Ask) { a.Deadline = a.Asked.Add(time.Hour) })
		s := k.reopen(t, nil)
		if end := until[event.TurnEnded](t, s, nil); !strings.Contains(end.Outcome.Text, nobodyAnswered) {
			t.Errorf("the model was told %q", end.Outcome.Text)
		}
		_ = s.Close(nil)
		if a := k.asks.open; len(a) != 0 {
			t.Errorf("left over: %+v", a)
		}
	})
}

func TestAQuestionThatExpiredWhileNobodyWasThereIsSettled(t *testing.T) {
	k := killedWhileAsking(func(a *ask.Ask) { a.Deadline = a.Asked.Add(-time.Second) })
	s := k.reopen(t, nil)
	if told := kept(t, k.log)[2].Content[0].Text; told != nobodyAnswered {
		t.Errorf("the result of the call is %q", told)
	}
	deskIsDone(t, s.tree)
	if s.State().Busy || len(k.pending(t)) != 0 || len(k.desk.lies) != 0 || k.asks.answers["ask-1"].By != "deadline" {
		t.Errorf("left over: %+v, %+v", k.pending(t), k.desk.lies)
	}
}

func TestAQuestionWhoseCallIsDoneIsDropped(t *testing.T) {
	k := killedWhileAsking(nil)
	k.log.entries = append(k.log.entries, transcript.Entry{UUID: "3", ParentUUID: "2", Kind: transcript.KindUser, Message: transcript.Message{
		Role: transcript.User, Content: []transcript.Block{tool.Text("done").Block(tool.Call{ID: "waits"})},
	}})
	s := k.reopen(t, nil)
	deskIsDone(t, s.tree)
	if len(k.pending(t)) != 0 || len(k.desk.lies) != 0 || len(s.tree.Questions.Pending()) != 0 {
		t.Errorf("left over: %+v", k.pending(t))
	}
}

func TestAnAgentThatLeavesForGoodTakesItsQuestionsAlong(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, func(c *Config) {
		c.Life = life{idle: func(context.Context, *event.Outcome) (*Input, error) { return nil, ErrLeave }}
	})
	_ = s.Prompt(t.Context(), "and now leave")
	<-s.Done()
	deskIsDone(t, s.tree)
	if len(k.pending(t)) != 0 || len(k.desk.lies) != 0 || len(s.tree.Questions.Pending()) != 0 {
		t.Errorf("left over: %+v", k.pending(t))
	}
}

func TestAReopenedQuestionIsSentElsewhere(t *testing.T) {
	k := killedWhileAsking(nil)
	s := k.reopen(t, func(c *Config) {
		tree := c.Tree
		tree.Questions.Elsewhere(func(ctx context.Context, a ask.Ask) error {
			return tree.Questions.Answer(ctx, a.ID, ask.Answer{Message: "the lead says no"})
		})
	})
	if end := until[event.TurnEnded](t, s, nil); !strings.Contains(end.Outcome.Text, "the lead says no") {
		t.Errorf("the model was told %q", end.Outcome.Text)
	}
}

package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// restingLog counts what a lean session asks of its log.
type restingLog struct {
	memLog
	reads int
	rests chan struct{}
	torn  error // of the next reading
}

func (l *restingLog) Entries(ctx context.Context) ([]transcript.Entry, error) {
	l.reads++
	if l.torn != nil {
		return nil, l.torn
	}
	return l.memLog.Entries(ctx)
}

func (l *restingLog) Rest() error { l.rests <- struct{}{}; return nil }

func TestALeanSessionHoldsNothingAtRestAndForgetsNothing(t *testing.T) {
	log := &restingLog{rests: make(chan struct{}, 10)}
	s := open(t, &log.memLog, callOnce("Look"), func(c *Config) { c.Log, c.Lean = log, true },
		funcTool{name: "Look", run: func(context.Context, tool.Call) tool.Result { return tool.Text("looked") }})
	<-log.rests
	for i := range 3 {
		if err := s.Prompt(t.Context(), fmt.Sprint("prompt ", i)); err != nil {
			t.Fatal(err)
		}
		<-log.rests
		if log.reads != i+2 { // one at the opening
			t.Errorf("after turn %d the log was read %d times", i, log.reads)
		}
	}
	if messages := kept(t, &log.memLog); len(messages) != 12 {
		t.Errorf("%d messages", len(messages))
	}
	// The requests hold the whole conversation: the model checks each.
	ends := 0
	for _, ev := range events(s.tree) {
		if end, ok := ev.Body.(event.TurnEnded); ok && end.Outcome.Reason == event.Done {
			ends++
		}
	}
	if ends != 3 {
		t.Errorf("%d turns ended well", ends)
	}
}

func TestALeanSessionSendsTheWholeConversation(t *testing.T) {
	seen := make(chan int, 3)
	log := &restingLog{rests: make(chan struct{}, 10)}
	s := open(t, &log.memLog, countMessages(seen), func(c *Config) { c.Log, c.Lean = log, true })
	for want := 1; want <= 5; want += 2 {
		<-log.rests
		_ = s.Prompt(t.Context(), "hello")
		if got := <-seen; got != want {
			t.Errorf("the model saw %d messages, want %d", got, want)
		}
	}
}

func TestInputIsRefusedWhenTheConversationCannotBeReadBack(t *testing.T) {
	log := &restingLog{rests: make(chan struct{}, 10)}
	s := open(t, &log.memLog, echoModel(), func(c *Config) { c.Log, c.Lean = log, true })
	<-log.rests
	_ = s.Prompt(t.Context(), "one")
	<-log.rests
	log.torn = errDisk
	if err := s.Prompt(t.Context(), "two"); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "read the conversation back") {
		t.Errorf("the prompt ended with %v", err)
	}
	log.torn = nil
	if err := s.Prompt(t.Context(), "three"); err != nil {
		t.Fatal(err)
	}
	<-log.rests
	if messages := kept(t, &log.memLog); len(messages) != 4 || messages[2].Content[0].Text != "three" {
		t.Errorf("kept %+v", messages)
	}
}

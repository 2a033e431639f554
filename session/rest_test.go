package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	s := open(t, &log.memLog, callOnce("Look"), func(c *Config) { c.Log, c.Lean, c.Tree.memory.most = log, true, 0 },
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
	s := open(t, &log.memLog, countMessages(seen), func(c *Config) { c.Log, c.Lean, c.Tree.memory.most = log, true, 0 })
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
	s := open(t, &log.memLog, echoModel(), func(c *Config) { c.Log, c.Lean, c.Tree.memory.most = log, true, 0 })
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

// Sessions that take turns with each other do not read their conversations again;
// of many, the one that rested longest does.
func TestTheSessionsThatRestedLastRemember(t *testing.T) {
	tree := NewTree(TreeConfig{})
	tree.memory.most = 2
	var logs []*restingLog
	var sessions []*Session
	for range 3 {
		log := &restingLog{rests: make(chan struct{}, 10)}
		s := open(t, &log.memLog, echoModel(), func(c *Config) { c.Log, c.Lean, c.Tree = log, true, tree })
		<-log.rests
		logs, sessions = append(logs, log), append(sessions, s)
	}
	turn := func(i int) {
		if err := sessions[i].Prompt(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		<-logs[i].rests
	}
	for _, i := range []int{1, 2, 1, 2, 0, 2} {
		turn(i)
	}
	if got := []int{logs[0].reads, logs[1].reads, logs[2].reads}; got[0] != 2 || got[1] != 1 || got[2] != 1 {
		t.Errorf("the logs were read %v times, the openings included", got)
	}
	for _, s := range sessions {
		if err := s.Close(nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(tree.memory.kept) != 0 || len(tree.memory.order) != 0 {
		t.Error("sessions that have ended are remembered")
	}
}

// A tree that has been at rest for a moment gives memory back, once; not while a
// session works, not between two turns, and not after its end.
func TestMemoryIsGivenBackAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := NewTree(TreeConfig{})
		var given atomic.Int64
		tree.scavenger.do = func() { given.Add(1) }
		after := func(d time.Duration, want int64, when string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := given.Load(); got != want {
				t.Errorf("%s: given back %d times, want %d", when, got, want)
			}
		}
		work := make(chan struct{})
		busy := open(t, &memLog{}, callOnce("Work"), func(c *Config) { c.Tree = tree },
			funcTool{name: "Work", run: func(context.Context, tool.Call) tool.Result { <-work; return tool.Text("done") }})
		tree.Sessions.SetMain(busy)
		for range 5 {
			_ = busy.SetMode(t.Context(), "default")
			after(idleTime/2, 0, "something happens all the time")
		}
		after(10*idleTime, 1, "at rest")
		if err := busy.Prompt(t.Context(), "work"); err != nil {
			t.Fatal(err)
		}
		tree.scavenger.later() // another session came to rest
		after(10*idleTime, 1, "while one works")
		close(work)
		after(10*idleTime, 2, "at rest again")
		tree.scavenger.later()
		tree.Sessions.Close(nil)
		after(10*idleTime, 2, "at the end")
		_ = busy.Close(nil)
	})
}

package team_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
)

// pingPong has two agents answer each other until one is refused, with a pause
// after each message. It returns how many messages were sent, and the error.
func (w *world) pingPong(t *testing.T, a, b string, most int, pause func()) (int, error) {
	t.Helper()
	inboxes := map[string]*team.Inbox{a: w.inbox(t, w.caller(a)), b: w.inbox(t, w.caller(b))}
	from, to := a, b
	for n := range most {
		if _, err := w.seat(t, from).Send(t.Context(), to, fmt.Sprint("thanks ", n), "s"); err != nil {
			return n, err
		}
		next(t, inboxes[to])
		from, to = to, from
		pause()
	}
	return most, nil
}

// Two agents that only answer each other are stopped, and the lead is told once
// (facts: reliability-security M09).
func TestM09Loop(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2", "w3")
			n, err := w.pingPong(t, "w1", "w2", 100, func() { time.Sleep(time.Minute) })
			loop, ok := errors.AsType[*team.LoopError](err)
			if !ok || loop.Peer != "w1" || loop.Fast || n != 25 {
				t.Fatalf("after %d messages: %v", n, err)
			}
			if !strings.Contains(err.Error(), "when you have done something else") {
				t.Errorf("the error does not say what to do: %v", err)
			}
			w2 := w.seat(t, "w2")
			if _, err := w2.Send(t.Context(), "w1", "again", "s"); !errors.As(err, &loop) {
				t.Errorf("the second try: %v", err)
			}
			if _, err := w2.Send(t.Context(), "w3", "somebody else", "s"); err != nil {
				t.Errorf("to somebody else: %v", err)
			}
			reach, err := w2.Broadcast(t.Context(), "all", "s")
			if err != nil || len(reach.Missed) != 1 || reach.Missed[0].Name != "w1" || !errors.As(reach.Missed[0].Err, &loop) {
				t.Errorf("a broadcast reaches %+v, %v", reach, err)
			}
			told := 0
			for _, m := range next(t, w.inbox(t, leader)) {
				if m.Kind == team.KindSystem && m.Preview == "w2 and w1 only kept answering each other, and were stopped" {
					told++
				}
			}
			if told != 1 {
				t.Errorf("the lead was told %d times", told)
			}
			w2.Progress()
			if _, err := w2.Send(t.Context(), "w1", "with news", "s"); err != nil {
				t.Errorf("after something else was done: %v", err)
			}
		})
	})
}

// What gets work done is no loop.
func TestConversationWithProgressIsNoLoop(t *testing.T) {
	overWorlds(t, func(t *testing.T, alpha start) {
		synctest.Test(t, func(t *testing.T) {
			w := alpha(t, "w1", "w2", "w3")
			add(t, w, "a")
			steps := []func(){
				func() {
					change := task.Change{Subject: new(fmt.Sprint(time.Now().Unix()))}
					for _, name := range []string{"w1", "w2"} {
						if _, err := w.UpdateTask(t.Context(), mate(name), "1", change); err != nil {
							t.Fatal(err)
						}
						change.Subject = new(*change.Subject + "x")
					}
				},
				func() {
					for _, name := range []string{"w1", "w2"} {
						w.send(t, "w3", name, "something new")
						next(t, w.inbox(t, mate(name)))
						w.gone(t, "w3", "test")
						w.spawn(t, "w3")
					}
				},
			}
			for i := range 10 {
				if n, err := w.pingPong(t, "w1", "w2", 16, func() { time.Sleep(time.Minute) }); err != nil {
					t.Fatalf("round %d, message %d: %v", i, n, err)
				}
				steps[i%2]()
			}
		})
	})
}

// More than two that only answer each other are a loop as well.
func TestM09LoopOfThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"w1", "w2", "w3"}
		w := alphaTeam(t, names...)
		inboxes := make(map[string]*team.Inbox)
		for _, name := range names {
			inboxes[name] = w.inbox(t, mate(name))
		}
		for round := range 100 {
			for _, name := range names {
				time.Sleep(time.Minute)
				reach, err := w.seat(t, name).Broadcast(t.Context(), "thanks to all", "s")
				if err != nil {
					t.Fatal(err)
				}
				for _, missed := range reach.Missed {
					if _, ok := errors.AsType[*team.LoopError](missed.Err); ok {
						return
					}
				}
				for _, other := range reach.Reached {
					if other != mailbox.LeadName {
						next(t, inboxes[other])
					}
				}
			}
			if round > 20 {
				t.Fatal("they go on for ever")
			}
		}
	})
}

// However much is done beside it: nobody answers this fast.
func TestM09FastLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := alphaTeam(t, "w1")
		second := func() { time.Sleep(time.Second) }
		sent := 0
		for {
			n, err := w.pingPong(t, "team-lead", "w1", 4, second)
			sent += n
			w.seat(t, "w1").Progress()
			w.seat(t, mailbox.LeadName).Progress()
			if err == nil {
				continue
			}
			if loop, ok := errors.AsType[*team.LoopError](err); !ok || !loop.Fast || sent < 30 || sent > 34 {
				t.Errorf("after %d messages: %v", sent, err)
			}
			break
		}
		time.Sleep(time.Minute) // synthetic time
		if n, err := w.pingPong(t, "team-lead", "w1", 4, second); err != nil {
			t.Errorf("a minute later, message %d: %v", n, err)
		}
	})
}

// Much mail that nobody answers is no loop.
func TestReportsAreNoLoop(t *testing.T) {
	w := alphaTeam(t, "w1")
	for range 100 {
		w.send(t, "w1", "team-lead", "one more result")
	}
}

package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cadre-dev/cadre/ask"
)

// deskSuite checks an implementation of [ask.Desk].
func deskSuite(t *testing.T, open Open[Stores]) {
	tests := map[string]func(*testing.T, Stores, Stores){
		"questions lie there":     layQuestions,
		"an answer is left":       leaveAnswer,
		"for this very question":  otherQuestion,
		"the first answer counts": leaveAtOnce,
		"cleared away":            clearQuestion,
		"watch":                   watchDesk,
		"cancelled":               deskCancelled,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			test(t, a, b)
		})
	}
}

var deskOptions = cmpopts.EquateEmpty()

// asked is a question that was asked so many seconds late.
func asked(id string, late int) ask.Ask {
	a := question(id)
	a.Asked = a.Asked.Add(time.Duration(late) * time.Second)
	return a
}

func openAsks(t *testing.T, s Stores) []ask.Ask {
	t.Helper()
	asks, err := s.Desk().Open(t.Context())
	check(t, err)
	return asks
}

// left checks what answer was left; nil for none.
func left(t *testing.T, s Stores, a ask.Ask, want *ask.Answer) {
	t.Helper()
	got, ok, err := s.Desk().Left(t.Context(), a)
	check(t, err)
	if ok != (want != nil) {
		t.Fatalf("an answer to %s was left: %v, want %v", a.ID, ok, want != nil)
	}
	if want != nil {
		equal(t, "answer to "+a.ID, got, *want, deskOptions)
	}
}

func layQuestions(t *testing.T, a, b Stores) {
	equal(t, "empty desk", len(openAsks(t, a)), 0)
	check(t, a.Desk().Lay(t.Context(), asked("ask-3", 3)))
	check(t, b.Desk().Lay(t.Context(), asked("ask-1", 5)))
	check(t, a.Desk().Lay(t.Context(), asked("Ask_2", 4)))
	check(t, a.Desk().Lay(t.Context(), asked("same-time", 4)))
	want := []ask.Ask{asked("ask-3", 3), asked("Ask_2", 4), asked("same-time", 4), asked("ask-1", 5)}
	equal(t, "oldest first", openAsks(t, b), want, deskOptions)
	again := asked("ask-3", 3)
	again.Question = "worded differently?"
	check(t, b.Desk().Lay(t.Context(), again))
	equal(t, "laid again", openAsks(t, a), want, deskOptions)
	moved := asked("ask-3", 3)
	moved.SessionID = "its-own"
	check(t, b.Desk().Leave(t.Context(), "ask-3", ask.Answer{Allow: true}))
	check(t, b.Desk().Lay(t.Context(), moved))
	left(t, a, moved, &ask.Answer{Allow: true})
	for i := range want {
		if want[i].ID == moved.ID {
			want[i] = moved
		}
	}
	equal(t, "laid by another session", openAsks(t, a), want, deskOptions)
	if err := a.Desk().Lay(t.Context(), ask.Ask{Question: "?"}); err == nil {
		t.Error("a question without an id was laid")
	}
}

func leaveAnswer(t *testing.T, a, b Stores) {
	q := question("ask-1")
	fails(t, "answer to nothing", a.Desk().Leave(t.Context(), "ask-1", ask.Answer{Allow: true}), ask.ErrUnknown)
	check(t, a.Desk().Lay(t.Context(), q))
	left(t, a, q, nil)
	fails(t, "answer to another", a.Desk().Leave(t.Context(), "ask-2", ask.Answer{Allow: true}), ask.ErrUnknown)
	answer := ask.Answer{Allow: true, Message: "<ok> & go", UpdatedInput: json.RawMessage(`{"command":"ls <y>"}`),
		Updates: q.Suggestions, By: "person"}
	check(t, b.Desk().Leave(t.Context(), "ask-1", answer))
	for _, s := range []Stores{a, b} {
		left(t, s, q, &answer)
		fails(t, "second answer", s.Desk().Leave(t.Context(), "ask-1", ask.Answer{}), ask.ErrAnswered)
	}
	check(t, a.Desk().Lay(t.Context(), q)) // as after a restart
	left(t, a, q, &answer)
	equal(t, "still there", openAsks(t, b), []ask.Ask{q}, deskOptions)
}

func otherQuestion(t *testing.T, a, b Stores) {
	q := question("ask-1")
	check(t, a.Desk().Lay(t.Context(), q))
	check(t, b.Desk().Leave(t.Context(), "ask-1", ask.Answer{Allow: true}))
	other := q
	other.Input = json.RawMessage(`{"command":"rm"}`)
	other.Digest = ask.DigestOf(other.Tool, other.Input)
	left(t, a, other, nil)
	// Asked anew with other input, the old answer is none.
	check(t, a.Desk().Lay(t.Context(), other))
	equal(t, "asked anew", openAsks(t, b), []ask.Ask{other}, deskOptions)
	check(t, b.Desk().Leave(t.Context(), "ask-1", ask.Answer{Message: "no"}))
	left(t, a, other, &ask.Answer{Message: "no"})
}

func leaveAtOnce(t *testing.T, a, b Stores) {
	for round := range 5 {
		q := question(fmt.Sprint("ask-", round))
		check(t, a.Desk().Lay(t.Context(), q))
		var wins atomic.Int32
		var winner ask.Answer
		var wg sync.WaitGroup
		for n := range 6 {
			s := []Stores{a, b}[n%2]
			wg.Go(func() {
				answer := ask.Answer{Allow: n%2 == 0, Message: fmt.Sprint(n)}
				switch err := s.Desk().Leave(t.Context(), q.ID, answer); {
				case err == nil && wins.Add(1) == 1:
					winner = answer
				case !errors.Is(err, ask.ErrAnswered):
					t.Errorf("answer %d: %v", n, err)
				}
			})
		}
		wg.Wait()
		equal(t, "answers that counted", wins.Load(), int32(1))
		left(t, a, q, &winner)
		left(t, b, q, &winner)
	}
}

func clearQuestion(t *testing.T, a, b Stores) {
	check(t, a.Desk().Clear(t.Context(), "ask-1"))
	q := question("ask-1")
	for range 2 {
		for _, id := range []string{"ask-1", "ask-2"} {
			check(t, a.Desk().Lay(t.Context(), question(id)))
		}
		check(t, b.Desk().Leave(t.Context(), "ask-1", ask.Answer{Allow: true}))
		check(t, a.Desk().Clear(t.Context(), "ask-1"))
		check(t, b.Desk().Clear(t.Context(), "ask-1"))
		left(t, b, q, nil)
		fails(t, "answer after it", b.Desk().Leave(t.Context(), "ask-1", ask.Answer{}), ask.ErrUnknown)
		equal(t, "the other", openAsks(t, b), []ask.Ask{question("ask-2")}, deskOptions)
	}
}

func watchDesk(t *testing.T, a, b Stores) {
	signal, stop := b.Desk().Watch()
	local, stopLocal := a.Desk().Watch()
	defer stopLocal()
	for i := range 3 {
		q := question(fmt.Sprint("ask-", i))
		check(t, b.Desk().Lay(t.Context(), q))
		drain(signal)
		drain(local)
		check(t, a.Desk().Leave(t.Context(), q.ID, ask.Answer{Allow: true}))
		signalled(t, local, "an answer by this process")
		for {
			_, ok, err := b.Desk().Left(t.Context(), q)
			check(t, err)
			if ok {
				break
			}
			signalled(t, signal, "an answer by another process")
		}
	}
	stop()
	stop()
}

func deskCancelled(t *testing.T, a, b Stores) {
	q := question("ask-1")
	if err := a.Desk().Lay(ended(), q); err == nil {
		t.Error("laid under a cancelled context")
	}
	check(t, a.Desk().Lay(t.Context(), q))
	if err := a.Desk().Leave(ended(), q.ID, ask.Answer{}); err == nil {
		t.Error("answered under a cancelled context")
	}
	if err := a.Desk().Clear(ended(), q.ID); err == nil {
		t.Error("cleared under a cancelled context")
	}
	if _, err := a.Desk().Open(ended()); err == nil {
		t.Error("listed under a cancelled context")
	}
	if _, _, err := a.Desk().Left(ended(), q); err == nil {
		t.Error("searched under a cancelled context")
	}
	left(t, b, q, nil)
	equal(t, "questions", openAsks(t, b), []ask.Ask{q}, deskOptions)
}

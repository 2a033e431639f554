package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/tool"
)

func (d *memDesk) ids() (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.lies {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func TestAnAnswerLeftOnTheDeskReachesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		write := asking(func(context.Context, tool.Call) tool.Result { return tool.Text("wrote") })
		desk := &memDesk{}
		s := open(t, &memLog{}, callOnce("Write"), func(c *Config) { folders(c); c.Tree = NewTree(TreeConfig{Desk: desk}) }, write)
		defer s.Attend()()
		_ = s.Prompt(t.Context(), "go")
		a := until[event.Asked](t, s, nil).Ask
		synctest.Wait() // the desk is watched
		_ = desk.Leave(t.Context(), a.ID, ask.Answer{Allow: true, By: "person"})
		if end := until[event.TurnEnded](t, s, nil); end.Outcome.Text != "wrote" {
			t.Errorf("outcome = %+v", end.Outcome)
		}
		if ids := desk.ids(); len(ids) > 0 {
			t.Errorf("on the desk afterwards: %q", ids)
		}
	})
}

// A relayed question whose asker knows no desk is shown on ours and ends at its
// deadline; one whose asker does both itself is left to it.
func TestARelayedQuestionThatIsShownHereEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &memDesk{}
		tree := NewTree(TreeConfig{Desk: desk, AskTime: time.Minute})
		serve(t, tree)
		var mu sync.Mutex
		given := make(map[string]ask.Answer)
		answers := func() map[string]ask.Answer {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(given)
		}
		for id, onDesk := range map[string]bool{"shown": true, "other": false} {
			a := ask.Ask{ID: id, Asked: time.Now(), Deadline: time.Now().Add(time.Second)}
			tree.Questions.Relay(Relayed{Agent: mate, Ask: a, OnDesk: onDesk}, func(_ context.Context, answer ask.Answer) error {
				mu.Lock()
				defer mu.Unlock()
				given[id] = answer
				return nil
			})
		}
		synctest.Wait()
		if ids := desk.ids(); !slices.Equal(ids, []string{"shown"}) {
			t.Errorf("on the desk: %q", ids)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if given := answers(); len(given) != 0 {
			t.Errorf("given %+v before the deadline", given)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if given := answers(); len(given) != 1 || given["shown"].By != ask.ByDeadline || given["shown"].Allow {
			t.Errorf("given %+v", given)
		}
		if ids := desk.ids(); len(ids) > 0 || tree.Questions.IsPending("shown") || !tree.Questions.IsPending("other") {
			t.Errorf("on the desk %q, pending %+v", ids, tree.Questions.Pending())
		}
	})
}

// What cannot be answered at its deadline stays open, and is not tried over and over.
func TestADenialThatDoesNotGetThereIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := NewTree(TreeConfig{})
		serve(t, tree)
		tries := 0
		a := ask.Ask{ID: "q1", Deadline: time.Now().Add(time.Minute)}
		tree.Questions.Relay(Relayed{Agent: mate, Ask: a, OnDesk: true}, func(context.Context, ask.Answer) error {
			tries++
			return errors.New("the inbox is gone")
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if tries != 1 || !tree.Questions.IsPending("q1") {
			t.Errorf("%d tries, pending %+v", tries, tree.Questions.Pending())
		}
	})
}

func TestOldQuestionsAreTakenOffTheDesk(t *testing.T) {
	desk := &memDesk{}
	tree := NewTree(TreeConfig{Desk: desk})
	serve(t, tree)
	for _, a := range []ask.Ask{
		{ID: AskPrefix + "gone", SessionID: "s"}, {ID: AskPrefix + "open", SessionID: "s"}, {ID: AskPrefix + "theirs", SessionID: "other"},
		{ID: "plan-old", SessionID: "s"}, {ID: "plan-answered", SessionID: "s"}, {ID: "plan-theirs", SessionID: "other"},
	} {
		_ = desk.Lay(t.Context(), a)
	}
	_ = desk.Leave(t.Context(), "plan-answered", ask.Answer{Allow: true})
	if err := tree.Questions.ClearRelayed(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if tree.Questions.Resolve("plan-theirs", ask.Answer{}) {
		t.Error("it was open")
	}
	tree.Questions.Relay(Relayed{Agent: mate, Ask: ask.Ask{ID: AskPrefix + "open", SessionID: "s"}}, nil)
	if err := tree.Questions.ClearOwn(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	deskIsDone(t, tree)
	if ids := desk.ids(); !slices.Equal(ids, []string{AskPrefix + "open", AskPrefix + "theirs", "plan-answered"}) {
		t.Errorf("on the desk: %q", ids)
	}
}

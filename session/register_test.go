package session

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// child opens a session of an agent in a tree, and registers it.
func child(t *testing.T, tree *Tree, id string, c Child) (s *Session, gone <-chan struct{}) {
	t.Helper()
	s = open(t, &memLog{}, echoModel(), func(cfg *Config) {
		cfg.Tree, cfg.Ref = tree, transcript.Ref{Session: "s", Agent: id}
		cfg.Agent, cfg.Caller = event.Agent{Session: "s", ID: id}, tool.Caller{SessionID: "s", AgentID: id}
	})
	c.Session = s
	gone, err := tree.Sessions.Add(c, event.AgentStarted{})
	if err != nil {
		t.Fatal(err)
	}
	return s, gone
}

func TestAChildIsRegisteredUntilItsEnd(t *testing.T) {
	tree := NewTree(TreeConfig{})
	found := false
	stop := make(chan struct{})
	var s *Session
	s, gone := child(t, tree, "a1", Child{Stop: stop,
		Ended: func() { _, found = tree.Sessions.Find("a1") },
		Gone: func() {
			if _, ok := tree.Sessions.Find("a1"); ok {
				t.Error("it is registered after its end")
			}
		},
	})
	if other, ok := tree.Sessions.Find("a1"); !ok || other != s || len(tree.Sessions.Children()) != 1 {
		t.Errorf("registered: %v", tree.Sessions.Children())
	}
	if _, ok := tree.Sessions.Find(""); ok {
		t.Error("there is a main session")
	}
	close(stop)
	<-gone
	if !found {
		t.Error("it was not registered any more when its end was dealt with")
	}
	evs := events(tree)
	if _, ok := evs[len(evs)-1].Body.(event.AgentEnded); !ok {
		t.Errorf("the last event is %+v", evs[len(evs)-1])
	}
}

func TestAClosedRegisterHasEndedItsChildren(t *testing.T) {
	tree := NewTree(TreeConfig{})
	s, _ := child(t, tree, "a1", Child{Ended: func() {}, Gone: func() {}})
	tree.Sessions.Close(ErrClosed)
	select {
	case <-s.Done():
	default:
		t.Error("a child lives on")
	}
	if _, err := tree.Sessions.Add(Child{Session: s}, event.AgentStarted{}); !errors.Is(err, ErrClosed) || !tree.Sessions.Closed() {
		t.Errorf("adding to a closed register: %v", err)
	}
}

// The tree is quiet only when nothing happened while the rest was asked.
func TestATreeIsQuietAtOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := NewTree(TreeConfig{})
		main := open(t, &memLog{}, echoModel(), func(c *Config) { c.Tree = tree })
		tree.Sessions.SetMain(main)
		synctest.Wait()
		quiet := func(rest func() (bool, error)) bool {
			t.Helper()
			ok, err := tree.Sessions.Quiet(rest)
			if err != nil && !errors.Is(err, errDisk) {
				t.Error(err)
			}
			return ok
		}
		if !quiet(func() (bool, error) { return true, nil }) {
			t.Error("nothing is at work, and it is not quiet")
		}
		if quiet(func() (bool, error) { return false, nil }) || quiet(func() (bool, error) { return true, errDisk }) {
			t.Error("it is quiet although the rest is not")
		}
		turn := func() (bool, error) { // begins and ends between the two questions
			_ = main.Prompt(context.Background(), "hello")
			synctest.Wait()
			return true, nil
		}
		if quiet(turn) {
			t.Error("it is quiet although a turn came in between")
		}
	})
}

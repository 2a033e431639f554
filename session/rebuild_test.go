package session

import (
	"context"
	"slices"
	"testing"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// Who comes when the events of a turn are no longer in memory gets what it stored, of
// every session, also of one that has ended, in order.
func TestALateSubscriberGetsWhatWasStored(t *testing.T) {
	logs := map[transcript.Ref]*memLog{{Session: "s"}: {}, {Session: "s", Agent: "a1"}: {}}
	tree := NewTree(TreeConfig{Read: func(ctx context.Context, ref transcript.Ref) ([]transcript.Entry, error) {
		return logs[ref].Entries(ctx)
	}})
	var sessions []*Session
	for _, ref := range []transcript.Ref{{Session: "s"}, {Session: "s", Agent: "a1"}} {
		sessions = append(sessions, open(t, logs[ref], echoModel(), func(c *Config) {
			c.Tree, c.Ref = tree, ref
			c.Agent, c.Caller = event.Agent{ID: ref.Agent}, tool.Caller{SessionID: "s", AgentID: ref.Agent}
		}))
	}
	main, agent := sessions[0], sessions[1]
	tree.Sessions.SetMain(main)
	gone, err := tree.Sessions.Add(Child{Session: agent, Ended: func() {}, Gone: func() {}}, event.AgentStarted{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if err := s.Prompt(t.Context(), "hello"+s.Agent().ID); err != nil {
			t.Fatal(err)
		}
		until(t, s, func(e event.TurnEnded) bool { return e.Outcome.Text == "you said: hello"+s.Agent().ID })
	}
	if err := agent.Close(nil); err != nil {
		t.Fatal(err)
	}
	<-gone
	for range 2000 {
		tree.Stream.Publish(event.Agent{}, event.TextDelta{Text: "more"})
	}
	var texts []string
	gaps := 0
	for _, ev := range events(tree) {
		switch body := ev.Body.(type) {
		case event.Gap:
			gaps++
		case event.Stored:
			texts = append(texts, ev.Agent.ID+":"+transcript.JoinText(body.Entry.Message.Content))
		}
	}
	if want := []string{":hello", ":you said: hello", "a1:helloa1", "a1:you said: helloa1"}; gaps != 1 || !slices.Equal(texts, want) {
		t.Errorf("%d gaps, stored %q", gaps, texts)
	}
}

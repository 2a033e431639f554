package storetest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/transcript"
)

// askSuite checks an implementation of [ask.Store]. The second handle is opened
// when the first is not used any more, as after a restart.
func askSuite(t *testing.T, open Open[Stores]) {
	ref := transcript.Ref{Project: "/p", Session: session1}
	t.Run("answers", func(t *testing.T) {
		a, b := open(t)
		answerAsks(t, a.Asks(ref), func() ask.Store { return b.Asks(ref) })
	})
	t.Run("cancelled", func(t *testing.T) {
		a, b := open(t)
		if err := a.Asks(ref).Put(ended(), question("q1")); err == nil {
			t.Error("a question was kept under a cancelled context")
		}
		equal(t, "pending", pending(t, b.Asks(ref)), []string{})
	})
}

func question(id string) ask.Ask {
	input := json.RawMessage(`{"command":"ls <x> && y"}`)
	return ask.Ask{ID: id, Kind: ask.Permission, SessionID: session1, AgentName: "w1", Tool: "Bash", ToolUseID: "toolu_" + id,
		Input: input, Digest: ask.DigestOf("Bash", input), Question: "Run ls?", Asked: time.UnixMilli(1795231010482).UTC(),
		Suggestions: []ask.Suggestion{{Type: "setMode", Mode: "acceptEdits", Destination: "session"}}}
}

func pending(t *testing.T, s ask.Store) []string {
	t.Helper()
	asks, err := s.Pending(t.Context())
	check(t, err)
	ids := []string{}
	for _, a := range asks {
		ids = append(ids, a.ID)
	}
	return ids
}

func answerAsks(t *testing.T, s ask.Store, reopen func() ask.Store) {
	equal(t, "none", pending(t, s), []string{})
	for _, id := range []string{"q2", "q1", "q3"} {
		check(t, s.Put(t.Context(), question(id)))
	}
	equal(t, "pending", pending(t, s), []string{"q2", "q1", "q3"})
	check(t, s.Resolve(t.Context(), "q1", ask.Answer{Allow: true, By: "person"}))
	equal(t, "pending", pending(t, s), []string{"q2", "q3"})
	s = reopen()
	if err := s.Resolve(t.Context(), "q1", ask.Answer{By: "deadline"}); !errors.Is(err, ask.ErrAnswered) {
		t.Errorf("second answer: %v", err)
	}
	if err := s.Resolve(t.Context(), "q9", ask.Answer{}); !errors.Is(err, ask.ErrUnknown) {
		t.Errorf("answer to nothing: %v", err)
	}
	if err := s.Put(t.Context(), question("q1")); !errors.Is(err, ask.ErrAnswered) {
		t.Errorf("asked again after the answer: %v", err)
	}
	asks, err := s.Pending(t.Context())
	check(t, err)
	equal(t, "asks after a restart", asks, []ask.Ask{question("q2"), question("q3")})
	check(t, s.Resolve(t.Context(), "q2", ask.Answer{By: "deadline", Message: "no answer"}))
	equal(t, "pending", pending(t, reopen()), []string{"q3"})
}

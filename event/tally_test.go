package event

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/transcript"
)

// perToken prices each input token at a dollar; "mystery" has no price.
func perToken(model string, usage transcript.Usage) (usd float64, known bool) {
	if model == "mystery" {
		return 0, false
	}
	return float64(usage.InputTokens), true
}

// tallied is what events of one agent each come to, a second apart.
func tallied(events ...Event) *Tally {
	for i := range events {
		events[i].Seq, events[i].At = uint64(i+1), time.Unix(int64(100+i), 0)
	}
	t := NewTally(perToken)
	t.Fold(slices.Values(events))
	return t
}

// reply is a reply as it is stored: an entry for each block, all with the usage
// of the whole.
func reply(agent Agent, model, id string, blocks ...transcript.Block) []Event {
	var events []Event
	for _, b := range blocks {
		events = append(events, Event{Agent: agent, Body: Stored{transcript.Entry{Kind: transcript.KindAssistant, Message: transcript.Message{
			ID: id, Model: model, Content: []transcript.Block{b}, Usage: transcript.Usage{InputTokens: 10, OutputTokens: 1},
		}}}})
	}
	return events
}

func userSays(agent Agent, text string) Event {
	return Event{Agent: agent, Body: Stored{transcript.Entry{
		Kind: transcript.KindUser, Message: transcript.Message{Content: []transcript.Block{transcript.TextBlock(text)}},
	}}}
}

var (
	text = transcript.TextBlock("hm")
	call = transcript.Block{Type: transcript.ToolUse, ID: "c", Name: "Bash"}
)

// TestTurnInProgressCounts: what a turn has used so far is in the sums before it
// has ended, and is not counted again when it has.
func TestTurnInProgressCounts(t *testing.T) {
	events := slices.Concat(
		[]Event{{Body: TurnStarted{}}},
		reply(Agent{}, "a", "1", text, call, call),
		[]Event{userSays(Agent{}, "results")},
	)
	check := func(events []Event, rounds, calls int, usd float64, took time.Duration) {
		t.Helper()
		got := tallied(events...).Of("")
		if got.Rounds != rounds || got.ToolCalls != calls || got.Spent().CostUSD != usd || got.Took != took {
			t.Errorf("%d rounds, %d calls, $%v, %v; want %d, %d, $%v, %v",
				got.Rounds, got.ToolCalls, got.Spent().CostUSD, got.Took, rounds, calls, usd, took)
		}
	}
	check(events, 1, 2, 10, 4*time.Second)
	events = append(events, reply(Agent{}, "a", "2", text)...)
	check(events, 2, 2, 20, 5*time.Second)
	events = append(events, Event{Body: TurnEnded{Outcome{Rounds: 2, Took: 7 * time.Second}}})
	check(events, 2, 2, 20, 7*time.Second)
}

// TestUsageIsCountedOncePerReply: a reply is an entry per block, all with the
// usage of the whole; and there are servers that give every reply the same id.
func TestUsageIsCountedOncePerReply(t *testing.T) {
	mate := Agent{ID: "t1", Name: "ann"}
	tally := tallied(slices.Concat(
		reply(Agent{}, "a", "same", text, text, text),
		reply(mate, "a", "same", text),
		[]Event{userSays(Agent{}, "go on")},
		reply(Agent{}, "a", "same", text),
		[]Event{{Body: TurnEnded{}}},
		reply(Agent{}, "a", "same", text),
		reply(mate, "mystery", "other", text, text),
	)...)
	for id, want := range map[string]Spending{
		"":   {transcript.Usage{InputTokens: 30, OutputTokens: 3}, 30, false},
		"t1": {transcript.Usage{InputTokens: 20, OutputTokens: 2}, 10, true},
	} {
		if got := tally.Of(id).Spent(); got != want {
			t.Errorf("agent %q spent %+v, want %+v", id, got, want)
		}
	}
}

// TestTallyOfTurns: what only the end of a turn says.
func TestTallyOfTurns(t *testing.T) {
	mate := Agent{ID: "t1", Name: "ann"}
	tally := tallied(
		Event{Agent: mate, Body: AgentStarted{Type: "general-purpose", Teammate: true}},
		userSays(Agent{}, transcript.InterruptedForTool),
		Event{Body: TurnEnded{Outcome{Text: "first", APITime: time.Second, Denied: []Denied{{Tool: "Bash"}}}}},
		Event{Body: TurnEnded{Outcome{Reason: Failed, APITime: time.Second, Denied: []Denied{{Tool: "Edit"}}}}},
	)
	if got := tally.Of(""); got.LastText != "first" || got.Last == nil || got.Last.Reason != Failed ||
		got.APITime != 2*time.Second || len(got.Denied) != 2 || got.Interruption != transcript.InterruptedForTool {
		t.Errorf("the main session: %+v", got)
	}
	var names []string
	for _, a := range tally.Agents() {
		names = append(names, a.Agent.Name+" "+a.Type)
	}
	if got := strings.Join(names, ","); got != "ann general-purpose, " || tally.Of("t1").Last != nil || tally.Of("nobody").Rounds != 0 {
		t.Errorf("agents %q", got)
	}
}

// TestNobodyWaitsForEventsThatWereNotPublished: the numbers of a stream begin far
// above 0, and a tally of a run in which nothing has happened is whole.
func TestNobodyWaitsForEventsThatWereNotPublished(t *testing.T) {
	stream, tally := NewStream(nil), NewTally(perToken)
	stop := make(chan struct{})
	close(stop)
	if last := stream.Published(); last != 0 {
		t.Errorf("the newest event of an empty stream is %d, want 0", last)
	}
	tally.Until(stream.Published(), stop)
	stream.Publish(Agent{}, Idle{})
	if stream.Published() == 0 {
		t.Error("the newest event is not counted")
	}
}

package teammate_test

import (
	"testing"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/teammate"
)

// used are the records that processes of teammates have stored.
const (
	annBefore = `{"name":"ann","agents":[{"name":"ann","rounds":2,"toolCalls":1,"models":{"m":{"usage":{"output_tokens":20},"costUsd":2}},"tookNs":1000000000,"apiTimeNs":0}]}`
	annNow    = `{"name":"ann","agents":[{"name":"ann","rounds":5,"toolCalls":3,"models":{"m":{"usage":{"output_tokens":50},"costUsd":5}},"tookNs":4000000000,"apiTimeNs":0},
		{"id":"a1","name":"explore","rounds":1,"toolCalls":0,"models":{"m":{"usage":{"output_tokens":1},"costUsd":0.5}},"tookNs":0,"apiTimeNs":0}]}`
	bobIdle = `{"name":"bob","agents":[{"name":"bob","rounds":2,"toolCalls":0,"models":{"m":{"usage":{"output_tokens":20},"costUsd":2}},"tookNs":0,"apiTimeNs":0}]}`
)

// A lead counts what its teammates have used in their own processes since it began,
// once, wherever they have worked, and also when their team is gone.
func TestUsageElsewhere(t *testing.T) {
	kept := memstore.New()
	records := kept.Records()
	found := func() {
		t.Helper()
		if err := kept.Teams().Create(t.Context(), roster.Roster{Name: "alpha"}); err != nil {
			t.Fatal(err)
		}
	}
	store := func(name, doc string) {
		t.Helper()
		if err := records.Put(t.Context(), "alpha", roster.RecordUsage, name, []byte(doc)); err != nil {
			t.Fatal(err)
		}
	}
	found()
	store("ann", annBefore)
	store("bob", bobIdle)
	u := teammate.NewUsageElsewhere(records, "session-1")
	if err := u.Begin(t.Context(), "alpha"); err != nil { // the lead is resumed
		t.Fatal(err)
	}
	store("ann", annNow)
	store("mallory", `{"name":7}`)
	if err := u.End(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	if err := kept.Teams().Remove(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	here := []event.AgentTally{{Rounds: 1}, {
		Agent: event.Agent{ID: "t1", Name: "ann"}, Teammate: true, Rounds: 10, ToolCalls: 10, Took: time.Second,
		Models: map[string]event.Spending{"m": {CostUSD: 10}, "n": {CostUSD: 1}},
	}}
	all := u.AddTo(here)
	if len(all) != 3 {
		t.Fatalf("%d agents: %+v", len(all), all)
	}
	if ann := all[1]; ann.Agent.ID != "t1" || ann.Rounds != 13 || ann.ToolCalls != 12 || ann.Took != 4*time.Second || ann.Spent().CostUSD != 14 {
		t.Errorf("ann: %+v", ann)
	}
	if sub := all[2]; sub.Agent.ID != "a1" || sub.Teammate || sub.Rounds != 1 || sub.Spent().CostUSD != 0.5 {
		t.Errorf("her sub-agent: %+v", sub)
	}
	found() // another team gets the name
	store("ann", annBefore)
	if err := u.Read(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	if ann := u.AddTo(here)[1]; ann.Rounds != 15 || here[1].Rounds != 10 {
		t.Errorf("ann of both teams: %+v", ann)
	}
	if alone := u.AddTo(nil); alone[0].Agent.ID != "ann@alpha" || !alone[0].Teammate {
		t.Errorf("ann, who was never here: %+v", alone[0].Agent)
	}
}

package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

// office is the team tools over stores in memory.
type office struct {
	teams   *team.Teams
	rosters team.Store
	tools   *tool.Set
	mail    mailbox.Store
	posting *posting
	spawner *spawner
}

func newOffice() *office {
	kept := memstore.New()
	o := &office{rosters: kept.Teams(), posting: &posting{Store: kept.Mail()}, spawner: &spawner{}}
	o.mail = o.posting
	o.teams = team.New(team.Options{Store: o.rosters, Mail: o.mail, Tasks: kept.Tasks(), Backend: noBackend{}})
	tools := append(builtin.TaskTools(o.teams), builtin.TeamTools(o.teams)...)
	tools = append(tools, builtin.AgentTool(o.teams, o.spawner, []builtin.AgentType{
		{Name: "general-purpose", Description: "for everything"}, {Name: "Explore", Description: "for looking around"},
	}))
	o.tools = tool.NewSet(tools...)
	return o
}

// officeWith has the team alpha with these teammates.
func officeWith(t *testing.T, mates ...string) *office {
	t.Helper()
	o := newOffice()
	o.call(t, chief, "TeamCreate", `{"team_name":"alpha"}`)
	for _, name := range mates {
		o.call(t, chief, "Agent", `{"description":"d","prompt":"p","subagent_type":"general-purpose","name":"`+name+`"}`)
	}
	return o
}

var chief = tool.Caller{SessionID: "session-1", Model: "model-1", Cwd: "/project"}

func worker(name string) tool.Caller {
	return tool.Caller{SessionID: "session-1", AgentID: "a-" + name, AgentName: name, Team: "alpha"}
}

// call runs a tool as the loop would, schema included.
func (o *office) call(t *testing.T, by tool.Caller, name, input string) tool.Result {
	t.Helper()
	found, ok := o.tools.Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	checked, err := found.Spec().Schema.Normalize(name, json.RawMessage(input))
	if err != nil {
		t.Fatalf("%s(%s): %v", name, input, err)
	}
	call := tool.Call{ID: "toolu_1", Name: name, Input: checked}
	return found.Run(tool.WithCaller(t.Context(), by), call)
}

// inbox is the texts in the inbox of a member of alpha.
func (o *office) inbox(t *testing.T, name string) []string {
	t.Helper()
	all, err := o.mail.All(t.Context(), mailbox.Address{Team: "alpha", Agent: name})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range all {
		texts = append(texts, m.Text)
	}
	return texts
}

// resultText is the result's text, whichever form it has.
func resultText(r tool.Result) string {
	if r.Blocks == nil {
		return r.Text
	}
	return transcript.JoinText(r.Blocks)
}

// posting is a mail store that does not reach everybody.
type posting struct {
	mailbox.Store
	broken string // the agent whose inbox is broken
}

func (p *posting) Post(ctx context.Context, to mailbox.Address, m mailbox.Message) error {
	if to.Agent == p.broken {
		return errors.New("disk full")
	}
	return p.Store.Post(ctx, to, m)
}

// noBackend starts teammates that do nothing.
type noBackend struct{}

func (noBackend) Kind() string                                       { return "in-process" }
func (noBackend) Start(context.Context, team.Spawn) error            { return nil }
func (noBackend) Stop(context.Context, mailbox.Address, error) error { return nil }

// spawner remembers what sub-agent was asked for.
type spawner struct {
	asked  builtin.SubAgentRequest
	result builtin.SubAgentResult
	err    error
}

func (s *spawner) SpawnSubAgent(_ context.Context, r builtin.SubAgentRequest) (builtin.SubAgentResult, error) {
	s.asked = r
	return s.result, s.err
}

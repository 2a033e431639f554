package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/tool/builtin"
	"github.com/cadre-dev/cadre/transcript"
)

// rosterPlace is where the roster of a team is said to lie.
func rosterPlace(team string) string { return "/state/teams/" + team + "/config.json" }

// office is the team tools over stores in memory.
type office struct {
	teams   *team.Teams
	rosters roster.Store
	tools   *tool.Set
	mail    mailbox.Store
	list    task.Store // as other programs write it
	posting *posting
	spawner *spawner
	backend *silentBackend
	jobs    *job.Pool
	access  tool.Access // of the last call
	decided func()      // what happens between a permission and its call
}

func newOffice(t *testing.T) *office { return newOfficeBy(t, team.Policy{PlanApproval: "lead"}) }

func newOfficeBy(t *testing.T, policy team.Policy) *office {
	kept := memstore.New()
	o := &office{rosters: kept.Teams(), list: kept.Tasks(), posting: &posting{Store: kept.Mail()}, spawner: &spawner{}, backend: &silentBackend{kind: "in-process"}}
	o.mail = o.posting
	o.teams = team.New(team.Options{
		Store: o.rosters, Mail: o.mail, Tasks: o.list, Backend: o.backend,
		Seals: kept.Seals(), Records: kept.Records(), Presence: kept.Presence(),
		Policy: policy,
	})
	o.jobs = job.NewPool(nil)
	outputs := t.TempDir()
	space := builtin.NewWorkspace(builtin.WorkspaceConfig{
		Dir: chief.Cwd, Output: func(job string) string { return filepath.Join(outputs, job+".output") },
	})
	types := []builtin.AgentType{
		{Name: "general-purpose", Description: "for everything"}, {Name: "Explore", Description: "for looking around"},
	}
	o.tools = tool.NewSet(slices.Concat(
		builtin.TaskTools(o.teams, space, o.jobs), builtin.TeamTools(o.teams, rosterPlace),
		[]tool.Tool{builtin.AgentTool(o.teams, o.spawner, types), builtin.WaitTool(o.teams, o.jobs)},
	)...)
	return o
}

// officeWith has the team alpha with these teammates.
func officeWith(t *testing.T, mates ...string) *office {
	t.Helper()
	o := newOffice(t)
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

// call makes a call as the loop would, with schema and permission.
func (o *office) call(t *testing.T, by tool.Caller, name, input string) tool.Result {
	t.Helper()
	return o.callIn(t.Context(), t, by, name, input)
}

func (o *office) callIn(ctx context.Context, t *testing.T, by tool.Caller, name, input string) tool.Result {
	t.Helper()
	found, ok := o.tools.Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	checked, err := found.Spec().Schema.Normalize(name, json.RawMessage(input))
	if err != nil {
		t.Fatalf("%s(%s): %v", name, input, err)
	}
	ctx, call := tool.WithCaller(ctx, by), tool.Call{ID: "toolu_1", Name: name, Input: checked}
	o.access = found.Access(ctx, call)
	if o.decided != nil {
		o.decided()
	}
	return found.Run(ctx, call)
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

// silentBackend starts teammates that do nothing.
type silentBackend struct {
	kind    string
	started team.Spawn // the last
}

func (b *silentBackend) Kind(context.Context) (string, error) { return b.kind, nil }

func (b *silentBackend) Start(_ context.Context, s team.Spawn) (team.Started, error) {
	b.started = s
	return team.Started{}, nil
}

func (*silentBackend) Stop(context.Context, mailbox.Address, error) error { return nil }

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

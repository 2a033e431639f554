package team_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
)

// parley is a world in which agents ask for plans and permissions.
type parley struct {
	*world
	kept   *memstore.Store
	places *places
	policy team.Policy
	mode   string
	posted int

	mu         sync.Mutex
	relayed    []question
	withdrawn  []string
	delivered  []delivery
	failRelay  error
	failAnswer error
	onRelay    func(question) // called in the relay, before it returns
}

// places say that whoever enters is there, also while another process has not
// noticed yet that it is dead.
type places struct {
	mu   sync.Mutex
	here map[mailbox.Address]bool
}

func (p *places) Enter(_ context.Context, who mailbox.Address) (leave func() error, err error) {
	p.set(who, true)
	return func() error { p.set(who, false); return nil }, nil
}

func (p *places) Find(_ context.Context, who mailbox.Address) (roster.Process, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return roster.Process{PID: 1}, p.here[who], nil
}

func (p *places) set(who mailbox.Address, here bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.here[who] = here
}

// question is what was put before somebody.
type question struct {
	From   string
	Ask    ask.Ask
	Answer func(context.Context, ask.Answer) error
}

// delivery is an answer that came to the session that asked.
type delivery struct {
	Who, Ask string
	Answer   ask.Answer
}

func newParley(t *testing.T, policy team.Policy, mates ...string) *parley {
	t.Helper()
	kept := memstore.New()
	p := &parley{
		world: &world{
			rosters: &rosters{Store: kept.Teams()}, lists: &lists{Store: kept.Tasks()}, backend: &backend{}, events: &events{},
			mails: &mails{Store: kept.Mail(), failPost: make(map[string]error)},
		},
		kept: kept, places: &places{here: make(map[mailbox.Address]bool)}, policy: policy, mode: "acceptEdits",
	}
	p.Teams = p.process()
	if _, err := p.Create(t.Context(), leader, "alpha", "", ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range mates {
		p.spawn(t, name)
	}
	return p
}

// process makes teams over the same stores, as another process has them.
func (p *parley) process() *team.Teams {
	return team.New(team.Options{
		Store: p.rosters, Mail: p.mails, Tasks: p.lists, Backend: p.backend, Publish: p.events.publish,
		Seals: p.kept.Seals(), Records: p.kept.Records(), Presence: p.places, Policy: p.policy,
		Mode: func() string { return p.mode }, Relay: p.relay,
		Withdrawn: func(_ context.Context, id string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.withdrawn = append(p.withdrawn, id)
		},
		Answered: func(_ context.Context, who mailbox.Address, askID string, answer ask.Answer) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.failAnswer != nil {
				return p.failAnswer
			}
			p.delivered = append(p.delivered, delivery{who.Agent, askID, answer})
			return nil
		},
	})
}

func (p *parley) relay(_ context.Context, from roster.Member, a ask.Ask, answer func(context.Context, ask.Answer) error) error {
	p.mu.Lock()
	if p.failRelay != nil {
		defer p.mu.Unlock()
		return p.failRelay
	}
	q := question{from.Name, a, answer}
	p.relayed = append(p.relayed, q)
	p.mu.Unlock()
	if p.onRelay != nil {
		p.onRelay(q)
	}
	return nil
}

// restartLead makes the lead's process anew; the teammates go on in the old one.
func (p *parley) restartLead(t *testing.T) *team.Teams {
	t.Helper()
	mates := p.Teams
	p.Teams = p.process()
	if _, ok, err := p.Reopen(t.Context(), leader); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return mates
}

// rejoin is a teammate's seat and inbox in a process of its own.
func (p *parley) rejoin(t *testing.T, name string) (*team.Seat, *team.Inbox) {
	t.Helper()
	own := p.process()
	seat, err := own.Join(t.Context(), mate(name))
	if err != nil {
		t.Fatal(err)
	}
	return seat, inboxOf(t, own, mate(name))
}

func inboxOf(t *testing.T, teams *team.Teams, by tool.Caller) *team.Inbox {
	t.Helper()
	in, ok := teams.Inbox(by, nil)
	if !ok {
		t.Fatalf("no inbox for %+v", by)
	}
	t.Cleanup(in.Close)
	return in
}

// take takes in what waits without showing it: no mail comes twice. The test
// must know that something waits.
func take(t *testing.T, in *team.Inbox) []team.Mail {
	t.Helper()
	mails := next(t, in)
	if err := in.Shown(t.Context(), mailIDs(mails)); err != nil {
		t.Fatal(err)
	}
	return mails
}

// unread is what is not marked read in an inbox of alpha.
func (p *parley) unread(t *testing.T, name string) []mailbox.Message {
	t.Helper()
	unread, err := p.mails.Unread(t.Context(), mailbox.Address{Team: "alpha", Agent: name})
	if err != nil {
		t.Fatal(err)
	}
	return unread
}

// questions are those that were relayed so far.
func (p *parley) questions() []question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.relayed
}

func (p *parley) answers() []delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delivered
}

// warnings are the texts of what went wrong.
func (p *parley) warnings() []string {
	var all []string
	for _, n := range of[event.Noticed](p.events) {
		all = append(all, n.Text)
	}
	return all
}

// lastText is the text of the newest message of an inbox, for its protocol.
func (p *parley) lastText(t *testing.T, name string) string {
	t.Helper()
	all := p.mailOf(t, name)
	if len(all) == 0 {
		t.Fatalf("%s has no mail", name)
	}
	return all[len(all)-1].Text
}

// postSealed posts protocol as a runtime of ours would.
func (p *parley) postSealed(t *testing.T, to, from, text, about string) {
	t.Helper()
	at := mailbox.Address{Team: "alpha", Agent: to}
	p.posted++
	sent := time.Date(2026, 1, 1, 0, 0, p.posted, 0, time.UTC)
	m := mailbox.Message{From: from, Text: text, Timestamp: sent.Format("2006-01-02T15:04:05.000Z")}
	for _, about := range []string{"", about} {
		if err := p.kept.Seals().Seal(t.Context(), at, m, about); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.mails.Post(t.Context(), at, m); err != nil {
		t.Fatal(err)
	}
}

// bash is a question about a command.
func bash(id string) ask.Ask {
	input := json.RawMessage(`{ "command": "touch <zz> && ls" }`)
	return ask.Ask{
		ID: id, Kind: ask.Permission, SessionID: leader.SessionID, Tool: "Bash", ToolUseID: "toolu_" + id, Input: input,
		Digest: ask.DigestOf("Bash", input), Question: "May Bash run?",
		Suggestions: []ask.Suggestion{
			{Type: "addDirectories", Directories: []string{"/work-dir"}, Destination: "session"},
			{Type: "setMode", Mode: "acceptEdits", Destination: "session"},
			{Type: "addRules", Rules: []ask.Rule{{ToolName: "Read", RuleContent: "//etc/**"}}, Behavior: "allow", Destination: "session"},
		},
	}
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
}

package teammate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/ids"
	"github.com/cadre-dev/cadre/internal/race"
	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/memstore"
	"github.com/cadre-dev/cadre/pane"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/teammate"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// mortal is a process that is killed at a chosen change of what is stored: from then on
// nothing it does has any effect.
type mortal struct {
	mu      sync.Mutex
	changes int
	dies    int  // at which change; 0: never
	after   bool // the change still happens, and is not acknowledged
	dead    bool
}

var errKilled = errors.New("the process was killed")

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// change makes a change, or half of it when the process is killed before it is whole.
func (m *mortal) change(do func() error, half ...func() error) error {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return errKilled
	}
	m.changes++
	dies := m.changes == m.dies
	m.dead = dies
	m.mu.Unlock()
	if dies && !m.after {
		for _, do := range half {
			_ = do()
		}
		return errKilled
	}
	err := do()
	if dies {
		return errKilled
	}
	return err
}

// The stores as a mortal process sees them.
type (
	mortalMail struct {
		mailbox.Store
		*mortal
	}
	mortalRecords struct {
		roster.Records
		*mortal
	}
	mortalRosters struct {
		roster.Store
		*mortal
	}
	mortalTasks struct {
		task.Store
		*mortal
	}
	mortalTranscripts struct {
		transcript.Store
		*mortal
		past *teamPast
	}
	mortalLog struct {
		transcript.Log
		*mortal
	}
)

func (s mortalMail) Post(ctx context.Context, to mailbox.Address, m mailbox.Message) error {
	return s.change(func() error { return s.Store.Post(ctx, to, m) })
}

func (s mortalMail) MarkRead(ctx context.Context, at mailbox.Address, ids []mailbox.ID) error {
	return s.change(func() error { return s.Store.MarkRead(ctx, at, ids) })
}

func (s mortalMail) Unread(ctx context.Context, at mailbox.Address) ([]mailbox.Message, error) {
	if s.isDead() {
		return nil, errKilled
	}
	return s.Store.Unread(ctx, at)
}

func (s mortalRecords) Put(ctx context.Context, team, kind, name string, doc []byte) error {
	return s.change(func() error { return s.Records.Put(ctx, team, kind, name, doc) })
}

func (s mortalRecords) Drop(ctx context.Context, team, kind, name string) error {
	return s.change(func() error { return s.Records.Drop(ctx, team, kind, name) })
}

func (s mortalRosters) Create(ctx context.Context, c roster.Roster) error {
	return s.change(func() error { return s.Store.Create(ctx, c) })
}

func (s mortalRosters) Update(ctx context.Context, name string, change func(*roster.Roster) error) (c roster.Roster, err error) {
	err = s.change(func() (err error) { c, err = s.Store.Update(ctx, name, change); return err })
	return c, err
}

func (s mortalTasks) Release(ctx context.Context, list, owner string) (freed []task.Task, err error) {
	err = s.change(func() (err error) { freed, err = s.Store.Release(ctx, list, owner); return err })
	return freed, err
}

func (s mortalTranscripts) Fork(ctx context.Context, from, to transcript.Ref, receipts bool) error {
	return s.change(func() error { return s.Store.Fork(ctx, from, to, receipts) })
}

func (l mortalLog) Append(ctx context.Context, entries ...transcript.Entry) error {
	return l.change(func() error { return l.Log.Append(ctx, entries...) },
		func() error { return l.Log.Append(ctx, entries[:len(entries)/2]...) })
}

// teamPast is what the processes of a team leave behind, and what its models have seen.
type teamPast struct {
	store *memstore.Store
	refs  []transcript.Ref // of all conversations

	mu        sync.Mutex
	sent      []string            // texts of messages that were acknowledged to their senders
	requests  map[string][]string // by agent: what its last request showed, block by block
	rewritten []string            // how requests did not extend the ones before
}

var (
	leadCaller = tool.Caller{SessionID: ids.UUID(), Cwd: "/w", Model: "m"}
	alphaLead  = mailbox.Address{Team: "alpha", Agent: mailbox.LeadName}
)

// process is a lead with the teammates that run in its process.
type process struct {
	*mortal
	past     *teamPast
	tree     *session.Tree
	teams    *team.Teams
	host     *teammate.Host
	backends *teammate.Backends
	main     *session.Session
	opened   chan struct{}
}

// begin makes a process; where is where its teammates run, nil: in it.
func (p *teamPast) begin(t *testing.T, m *mortal, where team.Backend) *process {
	t.Helper()
	l := &process{mortal: m, past: p, tree: session.NewTree(session.TreeConfig{}), opened: make(chan struct{})}
	l.host = &teammate.Host{
		Sessions: l, Tree: l.tree, Jobs: job.NewPool(func(string, event.Body) {}), Records: p.store.Records(), Project: "/w",
		PlanFile: func(tool.Caller) string { return "" },
	}
	conversations := p.conversations(m)
	records := mortalRecords{p.store.Records(), m}
	l.backends = teammate.NewBackends(l.host, teammate.BackendOptions{Mode: pane.InProcess, Records: records})
	if where == nil {
		where = l.backends
	}
	l.teams = team.New(team.Options{
		Store: mortalRosters{p.store.Teams(), m}, Mail: mortalMail{p.store.Mail(), m}, Tasks: mortalTasks{p.store.Tasks(), m},
		Seals: p.store.Seals(), Records: records, Presence: p.store.Presence(), Backend: where,
		Conversed: conversations.Exists, Shown: conversations.Shown,
	})
	l.host.Teams = l.teams
	return l
}

func (p *teamPast) conversations(m *mortal) teammate.Conversations {
	return teammate.Conversations{
		Transcripts: mortalTranscripts{p.store.Transcripts(), m, p}, Asks: p.store.Asks, Jobs: p.store.Jobs, Desk: p.store.Desk(),
	}
}

// openMain opens the lead's session; a resumed one brings its team back, or, when the
// teammates are lost, takes them off.
func (l *process) openMain(t *testing.T, resumed, lost bool) {
	t.Helper()
	ctx := t.Context()
	spec := session.Spec{Ref: transcript.Ref{Project: "/w", Session: leadCaller.SessionID}, Caller: leadCaller}
	var absent []roster.Member
	var err error
	if resumed {
		absent, err = l.host.ReopenTeam(ctx, &spec)
	}
	if err == nil {
		l.main, err = l.Open(ctx, spec)
	}
	if err != nil {
		if !l.isDead() {
			t.Fatal(err)
		}
		return
	}
	l.tree.Sessions.SetMain(l.main)
	close(l.opened)
	if !lost {
		l.backends.Resume(ctx, leadCaller, absent)
		return
	}
	for _, m := range absent {
		_ = l.teams.Gone(ctx, mailbox.Address{Team: "alpha", Agent: m.Name}, "it is lost")
	}
}

// Open implements [Opener].
func (l *process) Open(ctx context.Context, s session.Spec) (*session.Session, error) {
	log, err := l.past.store.Transcripts().Open(ctx, s.Ref)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(l.past.refs, s.Ref) {
		l.past.refs = append(l.past.refs, s.Ref)
	}
	mail := &teammate.Mail{Teams: l.teams, Caller: s.Caller, Ready: l.opened, BeforeRead: s.BeforeMailIsRead}
	return session.Open(ctx, session.Config{
		Ref: s.Ref, Log: mortalLog{log, l.mortal}, Tree: l.tree, Agent: s.Agent, Caller: s.Caller, Line: func() transcript.Entry { return transcript.Entry{} },
		Model: model{l, s.Caller.AgentName}, ModelName: "m", Tools: tool.NewSet(sendTool{l}), Policy: permission.Policy{Mode: permission.Bypass},
		Asks: l.past.store.Asks(s.Ref), Voice: specVoice{s}, Life: s.Life, Sources: []session.Source{mail}, Lean: s.Caller.AgentID != "",
	})
}

// end closes what a process has, as its kernel would: a dead one stores nothing.
func (l *process) end() {
	l.kill()
	l.tree.Sessions.Close(session.ErrClosed)
	if l.main != nil {
		_ = l.main.Close(session.ErrClosed)
	}
	_ = l.backends.Close(context.Background())
	_ = l.teams.Close()
	l.tree.Stream.End()
}

// specVoice says what a session's spec has it say.
type specVoice struct{ spec session.Spec }

func (v specVoice) Preface(ctx context.Context) string {
	if v.spec.Preface == nil {
		return ""
	}
	return v.spec.Preface(ctx)
}

func (specVoice) ModeNote(_, _ permission.Mode) string { return "" }

func (specVoice) Lost(string) (string, []string) { return "", nil }

// model writes to those whom it is asked to greet, and waits when it is asked to.
type model struct {
	in    *process
	agent string
}

func (m model) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		if m.in.isDead() {
			yield(nil, errKilled)
			return
		}
		if err := transcript.Check(req.Messages); err != nil {
			panic(err)
		}
		m.in.past.note(m.agent, req)
		reply := transcript.Message{ID: ids.UUID(), Role: transcript.Assistant, Model: "m", Content: []transcript.Block{transcript.TextBlock("ok")}}
		for _, b := range req.Messages[len(req.Messages)-1].Content {
			if b.Text == "wait for ever" {
				<-ctx.Done()
				yield(nil, context.Cause(ctx))
				return
			}
			if _, name, ok := strings.Cut(b.Text, "greet "); ok && b.Type == transcript.Text {
				name, _, _ = strings.Cut(name, "!")
				input, _ := json.Marshal(map[string]string{"to": name, "text": "greetings to " + name})
				reply.Content = append(reply.Content, transcript.Block{Type: transcript.ToolUse, ID: "toolu_" + ids.Hex(8), Name: "Send", Input: input})
			}
		}
		yield(provider.Reply{Message: reply}, nil)
	}
}

func (p *teamPast) note(agent string, req provider.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var now []string
	for _, m := range req.Messages {
		for _, b := range m.Content {
			now = append(now, fmt.Sprintf("%s %s %q %s%s %s", m.Role, b.Type, b.Text, b.ID, b.ToolUseID, b.Input))
		}
	}
	for i, was := range p.requests[agent] {
		if i >= len(now) || now[i] != was {
			p.rewritten = append(p.rewritten, fmt.Sprintf("%s: block %d was %s; now %s", agent, i, was, now[min(i, len(now)-1)]))
			break
		}
	}
	p.requests[agent] = now
}

// sendTool sends a message to a member of the team.
type sendTool struct{ in *process }

func (s sendTool) Spec() tool.Spec {
	return tool.Spec{Name: "Send", Schema: tool.NewSchema(`{"type":"object"}`)}
}

func (s sendTool) Access(context.Context, tool.Call) tool.Access { return tool.Access{} }

func (s sendTool) Run(ctx context.Context, c tool.Call) tool.Result {
	var in struct{ To, Text string }
	_ = json.Unmarshal(c.Input, &in)
	seat, ok := s.in.teams.Seat(tool.CallerFrom(ctx))
	if !ok {
		return tool.Error("no team")
	}
	if err := s.in.send(ctx, seat, in.To, in.Text); err != nil {
		return tool.Error(err.Error())
	}
	return tool.Text("sent")
}

func (l *process) send(ctx context.Context, from *team.Seat, to, text string) error {
	_, err := from.Send(ctx, to, text, "")
	if err == nil && !l.isDead() {
		l.past.mu.Lock()
		l.past.sent = append(l.past.sent, text)
		l.past.mu.Unlock()
	}
	return err
}

// firstLife forms a team and sends mail around, until it is killed or has no more to do.
func (p *teamPast) firstLife(t *testing.T, m *mortal) {
	l := p.begin(t, m, nil)
	defer l.end()
	l.openMain(t, false, false)
	l.sendAround(t)
	l.rest()
}

// sendAround forms a team and sends mail around.
func (l *process) sendAround(t *testing.T) {
	ctx := t.Context()
	if _, err := l.teams.Create(ctx, leadCaller, "alpha", "", ""); err != nil {
		return
	}
	seat, _ := l.teams.Seat(leadCaller)
	for _, name := range []string{"ann", "bob"} {
		if _, err := l.teams.Spawn(ctx, leadCaller, team.SpawnRequest{Name: name, AgentType: "worker", Prompt: "You are " + name + "."}); err != nil {
			return
		}
	}
	synctest.Wait()
	for _, text := range []string{"first of the lead", "greet bob!", "greet team-lead!"} {
		_ = l.send(ctx, seat, "ann", text)
	}
	synctest.Wait()
	_ = l.send(ctx, seat, "ann", "last of the lead")
}

// rest lets everything go on as far as it can, also what is tried again after a pause.
func (l *process) rest() {
	for range 3 {
		synctest.Wait()
		<-time.After(3 * time.Second)
	}
	synctest.Wait()
}

func (p *teamPast) nextLife(t *testing.T, m *mortal, lost bool) {
	l := p.begin(t, m, nil)
	defer l.end()
	l.openMain(t, true, lost)
	l.rest()
}

// shown is how often a text stands in conversations; a line of one that was copied counts
// once.
func (p *teamPast) shown(t *testing.T, text string) (n int) {
	lines := make(map[string]bool)
	for _, ref := range p.refs {
		entries, err := p.store.Transcripts().Read(t.Context(), ref)
		if err != nil && !errors.Is(err, transcript.ErrNotFound) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if lines[e.UUID] {
				continue
			}
			lines[e.UUID] = true
			for _, b := range e.Message.Content {
				if b.Type == transcript.Text && e.Kind == transcript.KindUser && !strings.Contains(b.Text, "mail_returned") {
					n += strings.Count(b.Text, text)
				}
			}
		}
	}
	return n
}

// returned is in how many messages to the lead a text came back.
func (p *teamPast) returned(t *testing.T, text string) (n int) {
	all, err := p.store.Mail().All(t.Context(), alphaLead)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if strings.Contains(m.Text, "mail_returned") && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

var allSent = []string{"first of the lead", "greet bob!", "greetings to bob", "greet team-lead!", "greetings to team-lead", "last of the lead"}

func (p *teamPast) check(t *testing.T, where string, lost bool) {
	t.Helper()
	for _, text := range allSent {
		shown, back := p.shown(t, text), p.returned(t, text)
		switch acknowledged := slices.Contains(p.sent, text); {
		case acknowledged && shown+back != 1, shown+back > 1:
			t.Errorf("%s: %q (acknowledged: %v) was shown %d times and returned %d times", where, text, acknowledged, shown, back)
		case back > 0 && !lost:
			t.Errorf("%s: %q was returned", where, text)
		}
	}
	for _, r := range p.rewritten {
		t.Errorf("%s: history rewritten: %.600s", where, r)
	}
}

// A message that was acknowledged to its sender is shown to its recipient once, or, when
// the recipient is lost, returned instead, whenever the process of a team is killed, and
// its successor is killed too; and no model's history is ever rewritten.
func TestAKillAtAnyPointOfADelivery(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(map[bool]string{false: "resumed", true: "lost"}[lost], func(t *testing.T) {
			first, _ := killedAt(t, lost, &mortal{}, &mortal{})
			for n := 1; n <= first; n++ {
				_, second := killedAt(t, lost, &mortal{dies: n}, &mortal{})
				for _, after := range []bool{false, true} {
					killedAt(t, lost, &mortal{dies: n, after: after}, &mortal{})
					for m := 1; m <= second; m++ {
						if whole || rand.IntN(20) == 0 {
							killedAt(t, lost, &mortal{dies: n, after: after}, &mortal{dies: m, after: rand.IntN(2) == 0})
						}
					}
				}
			}
		})
	}
}

// whole says that nothing is sampled: CADRE_TEST_ALL is set, and no race detector makes
// it many times as slow.
var whole = os.Getenv("CADRE_TEST_ALL") != "" && !race.Enabled

// killedAt lets a team live three times, of which the first two may be killed, and
// returns how many changes those stored.
func killedAt(t *testing.T, lost bool, first, second *mortal) (inFirst, inSecond int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &teamPast{store: memstore.New(), requests: make(map[string][]string)}
		p.firstLife(t, first)
		p.nextLife(t, second, lost)
		p.nextLife(t, &mortal{}, lost)
		if first.dies == 0 && len(p.sent) != len(allSent) {
			t.Errorf("acknowledged were only %q", p.sent)
		}
		p.check(t, fmt.Sprintf("killed at change %d (after it: %v), then at %d (after it: %v)", first.dies, first.after, second.dies, second.after), lost)
		inFirst, inSecond = first.changes, second.changes
	})
	return inFirst, inSecond
}

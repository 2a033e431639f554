package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// memLog is a transcript in memory whose appends can be made to fail.
type memLog struct {
	mu      sync.Mutex
	entries []transcript.Entry
	fail    func() error // consulted before each append; may be nil
	closed  bool
}

func (l *memLog) Entries(context.Context) ([]transcript.Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries), nil
}

func (l *memLog) Append(_ context.Context, entries ...transcript.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(); err != nil {
			return err
		}
	}
	l.entries = append(l.entries, entries...)
	return nil
}

// breakWith makes appends fail from now on; with nil they work again.
func (l *memLog) breakWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = func() error { return err }
}

func (l *memLog) Close() error { l.closed = true; return nil }

// memAsks keeps asks in memory. Changes can be made to fail.
type memAsks struct {
	mu      sync.Mutex
	open    []ask.Ask
	answers map[string]ask.Answer
	fail    func() error // consulted before each change; may be nil
}

func (m *memAsks) change() error {
	if m.answers == nil {
		m.answers = map[string]ask.Answer{}
	}
	if m.fail == nil {
		return nil
	}
	return m.fail()
}

func (m *memAsks) Put(_ context.Context, a ask.Ask) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.change(); err != nil {
		return err
	}
	if _, ok := m.answers[a.ID]; ok {
		return ask.ErrAnswered
	}
	if i := slices.IndexFunc(m.open, func(old ask.Ask) bool { return old.ID == a.ID }); i >= 0 {
		m.open[i] = a
		return nil
	}
	m.open = append(m.open, a)
	return nil
}

func (m *memAsks) Resolve(_ context.Context, id string, a ask.Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.change(); err != nil {
		return err
	}
	if _, ok := m.answers[id]; ok {
		return ask.ErrAnswered
	}
	m.answers[id] = a
	m.open = slices.DeleteFunc(slices.Clone(m.open), func(old ask.Ask) bool { return old.ID == id })
	return nil
}

func (m *memAsks) Pending(context.Context) ([]ask.Ask, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.open), nil
}

// memDesk is a desk in memory.
type memDesk struct {
	mu     sync.Mutex
	lies   map[string]ask.Ask
	left   map[string]ask.Answer
	signal chan struct{} // of the watch; nil: there is none
}

func (d *memDesk) Lay(_ context.Context, a ask.Ask) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lies == nil {
		d.lies, d.left = map[string]ask.Ask{}, map[string]ask.Answer{}
	}
	d.lies[a.ID] = a
	return nil
}

func (d *memDesk) Open(context.Context) ([]ask.Ask, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.lies)), nil
}

func (d *memDesk) Leave(_ context.Context, id string, a ask.Answer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left[id] = a
	if d.signal != nil {
		d.signal <- struct{}{}
	}
	return nil
}

func (d *memDesk) Left(_ context.Context, a ask.Ask) (ask.Answer, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, ok := d.left[a.ID]
	return answer, ok && d.lies[a.ID].Digest == a.Digest, nil
}

func (d *memDesk) Clear(_ context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.lies, id)
	delete(d.left, id)
	return nil
}

func (d *memDesk) Watch() (<-chan struct{}, func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.signal = make(chan struct{}, 1)
	return d.signal, func() {}
}

// deskIsDone waits until the desk is as it should be.
func deskIsDone(t *testing.T, tree *Tree) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		tree.Questions.mu.Lock()
		left := len(tree.Questions.deskChanges)
		tree.Questions.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%d changes of the desk wait", left)
		}
	}
}

// scriptModel answers by a function of the request.
type scriptModel func(ctx context.Context, req provider.Request, yield func(provider.Event, error) bool)

func (m scriptModel) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		if err := transcript.Check(req.Messages); err != nil {
			yield(nil, fmt.Errorf("the request is not valid: %w", err))
			return
		}
		m(ctx, req, yield)
	}
}

func reply(blocks ...transcript.Block) provider.Reply {
	return provider.Reply{Message: transcript.Message{ID: "msg", Role: transcript.Assistant, Model: "m", Content: blocks}}
}

// answering makes a model that echoes the newest user text.
func echoModel() scriptModel {
	return func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		yield(reply(transcript.TextBlock("you said: "+transcript.JoinText(last.Content))), nil)
	}
}

// countMessages tells how many messages each request has.
func countMessages(seen chan<- int) scriptModel {
	return func(_ context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		seen <- len(req.Messages)
		yield(reply(transcript.TextBlock("counted")), nil)
	}
}

var callIDs atomic.Int64

func use(name, input string) transcript.Block {
	return transcript.Block{
		Type: transcript.ToolUse, ID: fmt.Sprint("call", callIDs.Add(1)), Name: name, Input: json.RawMessage(input),
	}
}

// funcTool is a tool made of a function.
type funcTool struct {
	name      string
	access    tool.Access
	run       func(ctx context.Context, c tool.Call) tool.Result
	delegates bool
}

func (t funcTool) Spec() tool.Spec {
	return tool.Spec{Name: t.name, Schema: tool.NewSchema(`{"type":"object"}`), Parallel: true, Delegates: t.delegates}
}
func (t funcTool) Access(context.Context, tool.Call) tool.Access        { return t.access }
func (t funcTool) Run(ctx context.Context, c tool.Call) (r tool.Result) { return t.run(ctx, c) }

// voice, life and gate are made of functions; those that are nil do nothing.
type (
	voice struct {
		preface  func(context.Context) string
		modeNote func(was, now permission.Mode) string
		lost     func(call string) (string, []string)
	}
	life struct {
		begins func()
		idle   func(context.Context, *event.Outcome) (*Input, error)
		wake   chan struct{}
	}
	gate func(context.Context, ask.Answer) ([]ask.Suggestion, error)
)

func (v voice) Preface(ctx context.Context) string {
	if v.preface == nil {
		return ""
	}
	return v.preface(ctx)
}

func (v voice) ModeNote(was, now permission.Mode) string {
	if v.modeNote == nil {
		return ""
	}
	return v.modeNote(was, now)
}

func (v voice) Lost(call string) (string, []string) {
	if v.lost == nil {
		return "", nil
	}
	return v.lost(call)
}

func (l life) Begins() {
	if l.begins != nil {
		l.begins()
	}
}

func (l life) Idle(ctx context.Context, last *event.Outcome) (*Input, error) {
	if l.idle == nil {
		return nil, nil
	}
	return l.idle(ctx, last)
}

func (l life) Wake() <-chan struct{} { return l.wake }

func (g gate) Accept(ctx context.Context, a ask.Answer) ([]ask.Suggestion, error) { return g(ctx, a) }

// open opens a session on the log, closed with the test.
func open(t *testing.T, log *memLog, m provider.Model, change func(*Config), tools ...tool.Tool) *Session {
	t.Helper()
	cfg := Config{
		Ref: transcript.Ref{Project: "/w", Session: "s"}, Log: log, Tree: NewTree(TreeConfig{}),
		Agent: event.Agent{Session: "s"}, Line: func() transcript.Entry { return transcript.Entry{Cwd: "/w"} },
		Model: m, ModelName: "m", Tools: tool.NewSet(tools...), Asks: &memAsks{},
		Policy: permission.Policy{Mode: permission.Bypass},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(nil) })
	serve(t, cfg.Tree)
	return s
}

// serve lets the questions of a tree be answered from the desk, and end at their
// deadline, until the test ends.
func serve(t *testing.T, tree *Tree) { t.Cleanup(served(tree)) }

// until ranges over the session's events until one satisfies ok.
func until[B event.Body](t *testing.T, s *Session, ok func(B) bool) B {
	t.Helper()
	for ev := range s.Events(t.Context(), 0) {
		if body, is := ev.Body.(B); is && (ok == nil || ok(body)) {
			return body
		}
	}
	t.Fatal("the stream ended first")
	panic("unreachable")
}

// kept checks that what the log holds can be sent to a model, and returns it.
func kept(t interface{ Errorf(string, ...any) }, log *memLog) []transcript.Message {
	entries, _ := log.Entries(context.Background())
	messages := transcript.Conversation(entries)
	if err := transcript.Check(messages); err != nil {
		t.Errorf("the kept conversation cannot be sent: %v", err)
	}
	return messages
}

var errDisk = errors.New("no space left on device")

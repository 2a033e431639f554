package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

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

func (l *memLog) Close() error { l.closed = true; return nil }

// memAsks keeps asks in memory.
type memAsks struct {
	mu      sync.Mutex
	asks    map[string]ask.Ask
	answers map[string]ask.Answer
}

func (m *memAsks) Put(_ context.Context, a ask.Ask) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asks == nil {
		m.asks, m.answers = map[string]ask.Ask{}, map[string]ask.Answer{}
	}
	m.asks[a.ID] = a
	return nil
}

func (m *memAsks) Resolve(_ context.Context, id string, a ask.Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.answers[id]; ok {
		return ask.ErrAnswered
	}
	m.answers[id] = a
	return nil
}

func (m *memAsks) Pending(context.Context) ([]ask.Ask, error) { return nil, nil }

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

var callIDs atomic.Int64

func use(name, input string) transcript.Block {
	return transcript.Block{
		Type: transcript.ToolUse, ID: fmt.Sprint("call", callIDs.Add(1)), Name: name, Input: json.RawMessage(input),
	}
}

// funcTool is a tool made of a function.
type funcTool struct {
	name   string
	access tool.Access
	run    func(ctx context.Context, c tool.Call) tool.Result
}

func (t funcTool) Spec() tool.Spec {
	return tool.Spec{Name: t.name, Schema: tool.NewSchema(`{"type":"object"}`), Parallel: true}
}
func (t funcTool) Access(context.Context, tool.Call) tool.Access        { return t.access }
func (t funcTool) Run(ctx context.Context, c tool.Call) (r tool.Result) { return t.run(ctx, c) }

// open opens a session on the log, closed with the test.
func open(t *testing.T, log *memLog, m provider.Model, change func(*Config), tools ...tool.Tool) *Session {
	t.Helper()
	cfg := Config{
		Ref: transcript.Ref{Project: "/w", Session: "s"}, Log: log, Tree: NewTree(),
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
	return s
}

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

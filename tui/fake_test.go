package tui

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// memLog is a transcript in memory. Only the owner touches it.
type memLog struct{ entries []transcript.Entry }

func (l *memLog) Entries(context.Context) ([]transcript.Entry, error) {
	return slices.Clone(l.entries), nil
}

func (l *memLog) Append(_ context.Context, entries ...transcript.Entry) error {
	l.entries = append(l.entries, entries...)
	return nil
}

func (l *memLog) Close() error { return nil }

// memAsks forgets what it is told: a tree knows its pending questions.
type memAsks struct{}

func (memAsks) Put(context.Context, ask.Ask) error                { return nil }
func (memAsks) Resolve(context.Context, string, ask.Answer) error { return nil }
func (memAsks) Pending(context.Context) ([]ask.Ask, error)        { return nil, nil }

// stage is a tool for tests: it tells its input back.
type stage struct {
	name   string
	access tool.Access
	ran    chan string // the inputs it ran with
}

func (s stage) Spec() tool.Spec {
	return tool.Spec{Name: s.name, Schema: tool.NewSchema(`{"type":"object"}`)}
}

func (s stage) Access(context.Context, tool.Call) tool.Access { return s.access }

func (s stage) Run(_ context.Context, c tool.Call) tool.Result {
	s.ran <- string(c.Input)
	return tool.Text("first line of " + c.Name + "\nsecond line")
}

// tape keeps what was written and lets tests wait for it.
type tape struct {
	mu    sync.Mutex
	text  strings.Builder
	moved *sync.Cond
	late  bool
}

func newTape(t *testing.T) *tape {
	p := &tape{}
	p.moved = sync.NewCond(&p.mu)
	timer := time.AfterFunc(20*time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.late = true
		p.moved.Broadcast()
	})
	t.Cleanup(func() { timer.Stop() })
	return p
}

func (p *tape) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved.Broadcast()
	return p.text.Write(b)
}

func (p *tape) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// talk is a conversation under test.
type talk struct {
	t         *testing.T
	tree      *session.Tree
	session   *session.Session
	out       *tape
	in        *io.PipeWriter
	interrupt chan struct{}
	killed    chan struct{}
	settled   chan struct{} // closed when Settled may return
	ended     chan error
	ran       chan string
	seen      int // of out: what wait has passed
}

// open starts a conversation on a terminal with this model.
func open(t *testing.T, m provider.Model, change func(*Config)) *talk {
	t.Helper()
	k := &talk{
		t: t, tree: session.NewTree(session.TreeConfig{}), out: newTape(t), interrupt: make(chan struct{}),
		killed: make(chan struct{}), settled: make(chan struct{}), ended: make(chan error, 1), ran: make(chan string, 100),
	}
	s, err := session.Open(t.Context(), session.Config{
		Ref: transcript.Ref{Project: "/w", Session: "s"}, Log: &memLog{}, Tree: k.tree,
		Agent: event.Agent{Session: "s"}, Line: func() transcript.Entry { return transcript.Entry{Cwd: "/w"} },
		Model: m, ModelName: "m", Asks: memAsks{},
		Tools: tool.NewSet(
			stage{"Shell", tool.Access{Command: "make all"}, k.ran},
			stage{"AskUserQuestion", tool.Access{Ask: true}, k.ran},
			stage{"ExitPlanMode", tool.Access{Ask: true, Plan: true}, k.ran},
			stage{"Look", tool.Access{}, k.ran},
		),
		Policy: permission.Policy{Mode: permission.Default, Folders: []string{"/w"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	k.session = s
	r, w := io.Pipe()
	k.in = w
	cfg := Config{
		Session: s, In: r, Out: k.out, Terminal: true, Interrupt: k.interrupt,
		Cost: func() string { return "cost so far" },
		Settled: func(ctx context.Context) error {
			select {
			case <-k.settled:
			case <-ctx.Done():
			}
			return nil
		},
		Close: func(context.Context) error {
			err := s.Close(nil)
			k.tree.Stream.End()
			return err
		},
		Kill: func() { close(k.killed) },
	}
	if change != nil {
		change(&cfg)
	}
	go func() { k.ended <- Run(t.Context(), cfg) }()
	t.Cleanup(func() { w.Close(); s.Close(nil); k.tree.Stream.End() })
	return k
}

// enter types an entry.
func (k *talk) enter(text string) {
	k.t.Helper()
	if _, err := io.WriteString(k.in, text+"\n"); err != nil {
		k.t.Fatal(err)
	}
}

// wait waits until text appears behind what was waited for before.
func (k *talk) wait(text string) {
	k.t.Helper()
	k.out.mu.Lock()
	defer k.out.mu.Unlock()
	for {
		all := k.out.text.String()
		if at := strings.Index(all[k.seen:], text); at >= 0 {
			k.seen += at + len(text)
			return
		}
		if k.out.late {
			k.t.Fatalf("%q did not appear; the screen shows\n%s", text, all)
		}
		k.out.moved.Wait()
	}
}

// end waits for the end of Run.
func (k *talk) end() error {
	k.t.Helper()
	select {
	case err := <-k.ended:
		return err
	case <-time.After(20 * time.Second):
		k.t.Fatalf("the conversation does not end; the screen shows\n%s", k.out)
		return nil
	}
}

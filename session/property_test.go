package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// TestAfterAnythingTheTranscriptCanBeSentAgain drives a session with random
// replies, tool errors, inputs, portions of mail, modes, answers, interrupts, store failures and
// kills, and then checks that what is kept is a conversation a model accepts,
// that no accepted prompt is missing from it, that the session opens again,
// that no question and no accepted answer got lost, and that every request extends
// the one before.
func TestAfterAnythingTheTranscriptCanBeSentAgain(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		var failed any // rapid tells failures by panics, which must not end the bubble
		synctest.Test(t, func(*testing.T) {
			defer func() { failed = recover() }()
			anyLives(draw)
		})
		if failed != nil {
			panic(failed)
		}
	})
}

func anyLives(t *rapid.T) {
	p := past{log: &memLog{}, asks: &memAsks{}, desk: &memDesk{}, late: make(map[string]bool)}
	for range rapid.IntRange(1, 3).Draw(t, "lives") {
		p.live(t)
		messages := kept(t, p.log)
		for _, text := range p.accepted {
			if !shows(messages, text) {
				t.Fatalf("the prompt %q was accepted and is not kept", text)
			}
		}
		if got := mailIn(p.log.entries); !slices.Equal(got, p.arrived) || !slices.IsSortedFunc(got, inNumbers) {
			t.Fatalf("the transcript has the mail %v, accepted was %v", got, p.arrived)
		}
		if rapid.Bool().Draw(t, "torn") && len(p.log.entries) > 0 {
			// A kill between two entries: the last one was never written.
			last := p.log.entries[len(p.log.entries)-1]
			if last.Kind == transcript.KindAssistant || last.Message.Content[0].Type == transcript.ToolResult {
				p.log.entries = p.log.entries[:len(p.log.entries)-1]
				kept(t, p.log)
				p.requests.last = nil // it may have been in a request
			}
		}
	}
	p.settle(t)
	if p.requests.rewritten != "" {
		t.Fatal(p.requests.rewritten)
	}
}

// mailIn is the mail that entries show, by its receipts: numbers.
func mailIn(entries []transcript.Entry) (ids []string) {
	for _, e := range entries {
		if len(e.Receipts) > 0 && strings.HasPrefix(e.Message.Content[0].Text, "message ") {
			ids = append(ids, e.Receipts...)
		}
	}
	return ids
}

func inNumbers(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x - y
}

// past is what the lives of a session leave to the next one.
type past struct {
	log      *memLog
	asks     *memAsks
	desk     *memDesk
	accepted []string        // prompts
	mails    int             // were sent
	arrived  []string        // mail that was accepted, as it was
	late     map[string]bool // ids of asks that outlived their process and then got an answer
	requests requests
}

// requests checks that each request of a session extends the one before, also over
// restarts: a history that is rewritten is one that the model has not lived, and that
// no prompt cache knows.
type requests struct {
	mu        sync.Mutex
	last      []string // what the last one showed
	rewritten string   // how one did not extend the one before; "" if all did
}

func (r *requests) add(req provider.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var now []string
	for _, m := range req.Messages {
		for _, b := range m.Content {
			now = append(now, fmt.Sprintf("%s %s %q %q %s%s", m.Role, b.Type, b.Text, b.ID, b.ToolUseID, b.Input))
		}
	}
	for i, was := range r.last {
		if i >= len(now) || now[i] != was {
			r.rewritten = fmt.Sprintf("a request does not extend the one before: there block %d was\n%.200s\nthe new one goes on\n%.800s",
				i, was, strings.Join(now[min(i, len(now)):], "\n"))
			break
		}
	}
	r.last = now
}

// settle opens the session a last time, says no to all that is still asked, and
// checks that nothing is left over.
func (p *past) settle(t *rapid.T) {
	ctx := context.Background()
	cfg := p.config(NewTree(TreeConfig{Desk: p.desk}))
	cfg.Model, cfg.Tools = p.recorded(echoModel()), tool.NewSet()
	s, err := Open(ctx, cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	unserved := served(cfg.Tree)
	for _, a := range cfg.Tree.Questions.Pending() {
		if err := s.Answer(ctx, a.ID, ask.Answer{}); err != nil {
			t.Fatalf("answer: %v", err)
		}
		p.late[a.ID] = true
	}
	for s.State().Busy {
		<-cfg.Tree.IdleSignal()
	}
	_ = s.Close(nil)
	unserved()
	kept(t, p.log)
	told := make(map[string]int)
	for _, e := range p.log.entries {
		for _, id := range e.Receipts {
			told[id]++
		}
	}
	for id := range p.late {
		if told[id] != 1 {
			t.Errorf("the answer to %s was told %d times", id, told[id])
		}
	}
	for _, a := range p.asks.open {
		if a.Answer == nil || !a.Answer.Allow {
			t.Errorf("left over: %+v", a)
		}
	}
	if len(p.desk.lies) > 0 {
		t.Errorf("left on the desk: %+v", p.desk.lies)
	}
}

// served serves the questions of a tree until the end.
func served(tree *Tree) (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); tree.Questions.Serve(ctx) }()
	return func() { stop(); <-done }
}

func (p *past) recorded(m scriptModel) scriptModel {
	return func(ctx context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		p.requests.add(req)
		m(ctx, req, yield)
	}
}

func (p *past) config(tree *Tree) Config {
	return Config{
		Ref: transcript.Ref{Project: "/w", Session: "s"}, Log: p.log, Tree: tree, Agent: event.Agent{Session: "s"},
		Line:      func() transcript.Entry { return transcript.Entry{} },
		ModelName: "m", Asks: p.asks, Limits: Limits{Rounds: 6},
		Policy: permission.Policy{Folders: []string{"/w"}},
	}
}

func shows(messages []transcript.Message, text string) bool {
	for _, m := range messages {
		for _, b := range m.Content {
			if b.Text == text {
				return true
			}
		}
	}
	return false
}

// live opens a session, does random things to it, and closes or kills it.
func (p *past) live(t *rapid.T) {
	draws := newDraws(t)
	cfg := p.config(NewTree(TreeConfig{Desk: p.desk}))
	cfg.Model, cfg.Lean = p.recorded(draws.model()), draws.bool()
	cfg.Tools = tool.NewSet(draws.tool("Good", false), draws.tool("Bad", true), draws.asking("Asks"), waits())
	disk := &disk{}
	p.log.fail, p.asks.fail = disk.full, disk.gone
	before, _ := p.asks.Pending(context.Background())
	ctx := context.Background()
	s, err := Open(ctx, cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	leave := s.Attend()
	defer leave()
	unserved := served(cfg.Tree)
	answering := make(chan struct{})
	go func() {
		defer close(answering)
		for ev := range s.Events(ctx, 0) {
			a, ok := ev.Body.(event.Asked)
			if !ok || draws.bool() && draws.bool() {
				continue // nobody answers this one
			}
			err := s.Answer(ctx, a.Ask.ID, ask.Answer{Allow: draws.bool()})
			if err == nil && slices.ContainsFunc(before, func(old ask.Ask) bool { return old.ID == a.Ask.ID }) {
				p.late[a.Ask.ID] = true
			}
		}
	}()
	for i := range rapid.IntRange(0, 8).Draw(t, "actions") {
		switch rapid.IntRange(0, 6).Draw(t, "action") {
		case 0, 1:
			p.prompt(t, s, fmt.Sprintf("prompt %p %d", s, i))
		case 2:
			_ = s.Interrupt(ctx, ErrInterrupt)
		case 3:
			p.mail(s, rapid.SampledFrom([]int{100, MaxBulk/2 + 1, MaxBulk}).Draw(t, "size"))
		case 4:
			disk.isFull.Store(rapid.Bool().Draw(t, "full"))
		case 5:
			in := Text(LeadMail, "a mode")
			in.Mode = rapid.SampledFrom([]permission.Mode{permission.Default, permission.Plan, permission.Bypass}).Draw(t, "mode")
			_ = s.Send(ctx, in)
		case 6:
			synctest.Wait() // the turn goes on as far as it can
		}
	}
	disk.isGone.Store(rapid.Bool().Draw(t, "killed"))
	_ = s.Close(nil)
	unserved()
	cfg.Tree.Stream.End()
	<-answering
	if draws.tooMuch.Load() {
		t.Fatal("a request brought more mail than may be")
	}
	p.log.fail, p.asks.fail = nil, nil
}

// prompt sends text without waiting for it, as the session may wait for an answer
// that nobody gives. Whether it was accepted is known when the session is closed.
func (p *past) prompt(t *rapid.T, s *Session, text string) {
	in := Text(Prompt, text)
	in.Kept = func(_ context.Context, err error) { // one after the other
		switch {
		case err == nil:
			p.accepted = append(p.accepted, text)
		case !errors.Is(err, errDisk) && !errors.Is(err, ErrClosed):
			t.Errorf("prompt: %v", err)
		}
	}
	if err := s.Send(context.Background(), in); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// mail sends bulk, which may come in portions.
func (p *past) mail(s *Session, size int) {
	p.mails++
	in := bulk(p.mails, size)
	in.Kept = func(_ context.Context, err error) { // one after the other
		if err == nil {
			p.arrived = append(p.arrived, in.Receipts...)
		}
	}
	_ = s.Send(context.Background(), in)
}

// disk can be full, and can be gone as for a process that was killed.
type disk struct{ isFull, isGone atomic.Bool }

func (d *disk) full() error {
	if d.isFull.Load() {
		return errDisk
	}
	return d.gone()
}

func (d *disk) gone() error {
	if d.isGone.Load() {
		return errDisk
	}
	return nil
}

// waits is a tool that ends with the next input.
func waits() funcTool {
	return funcTool{name: "Wait", run: func(ctx context.Context, _ tool.Call) tool.Result {
		select {
		case <-tool.Arrived(ctx):
			return tool.Text("something arrived")
		case <-ctx.Done():
			return tool.Error("interrupted")
		}
	}}
}

// draws are decisions made ahead, so that the goroutines of a session need no
// generator of their own.
type draws struct {
	mu    sync.Mutex
	bytes []byte
	at    int

	tooMuch atomic.Bool // mail was in a request
}

func newDraws(t *rapid.T) *draws {
	return &draws{bytes: rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "decisions")}
}

func (d *draws) next() byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.bytes[d.at%len(d.bytes)]
	d.at++
	return b
}

func (d *draws) bool() bool { return d.next()%2 == 0 }

// model answers with text, calls, nothing, broken replies and errors.
func (d *draws) model() scriptModel {
	return func(ctx context.Context, req provider.Request, yield func(provider.Event, error) bool) {
		if bulkIn(req.Messages[len(req.Messages)-1]) > MaxBulk {
			d.tooMuch.Store(true)
		}
		if !yield(provider.TextDelta{Text: "hm"}, nil) {
			return
		}
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		switch d.next() % 8 {
		case 0:
			yield(nil, &provider.Error{Class: provider.Server, Message: "down"})
		case 1:
			yield(provider.Reply{}, nil)
		case 2:
			r := reply(transcript.TextBlock("half"))
			r.Broken = errDisk
			yield(r, nil)
		case 3:
			yield(reply(transcript.TextBlock("done")), nil)
		case 4:
			yield(reply(use("Wait", `{}`), use("Good", `{}`)), nil)
		default:
			same := use("Bad", `{}`)
			yield(reply(transcript.TextBlock("working"), use("Good", `{}`), same, same, use("Asks", `{}`), use("Unknown", `{}`)), nil)
		}
	}
}

func (d *draws) tool(name string, fails bool) funcTool {
	return funcTool{name: name, run: func(ctx context.Context, _ tool.Call) tool.Result {
		if fails && d.bool() {
			return tool.Error("it broke")
		}
		return tool.Text("it worked")
	}}
}

func (d *draws) asking(name string) funcTool {
	t := d.tool(name, true)
	t.access = tool.Access{Write: []string{"/elsewhere"}}
	return t
}

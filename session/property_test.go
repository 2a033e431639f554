package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// TestAfterAnythingTheTranscriptCanBeSentAgain drives a session with random
// replies, tool errors, inputs, answers, interrupts, store failures and kills,
// and then checks that what is kept is a conversation a model accepts, that no
// accepted prompt is missing from it, and that the session opens again.
func TestAfterAnythingTheTranscriptCanBeSentAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := &memLog{}
		var accepted []string
		for range rapid.IntRange(1, 3).Draw(t, "lives") {
			accepted = append(accepted, live(t, log)...)
			log.fail = nil
			messages := kept(t, log)
			for _, text := range accepted {
				if !shows(messages, text) {
					t.Fatalf("the prompt %q was accepted and is not kept", text)
				}
			}
			if rapid.Bool().Draw(t, "torn") && len(log.entries) > 0 {
				// A kill between two entries: the last one was never written.
				last := log.entries[len(log.entries)-1]
				if last.Kind == transcript.KindAssistant || last.Message.Content[0].Type == transcript.ToolResult {
					log.entries = log.entries[:len(log.entries)-1]
					kept(t, log)
				}
			}
		}
	})
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

// live opens a session on the log, does random things to it, and closes it. It
// returns the prompts that were accepted.
func live(t *rapid.T, log *memLog) (accepted []string) {
	draws := newDraws(t)
	cfg := Config{
		Ref: transcript.Ref{Project: "/w", Session: "s"}, Log: log, Tree: NewTree(), Agent: event.Agent{Session: "s"},
		Line:  func() transcript.Entry { return transcript.Entry{} },
		Model: draws.model(), ModelName: "m", Asks: &memAsks{}, MaxRounds: 6,
		Tools:  tool.NewSet(draws.tool("Good", false), draws.tool("Bad", true), draws.asking("Asks")),
		Policy: permission.Policy{Folders: []string{"/w"}},
	}
	ctx := context.Background()
	s, err := Open(ctx, cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	leave := s.Attend()
	defer leave()
	answering := make(chan struct{})
	go func() {
		defer close(answering)
		for ev := range s.Events(ctx, 0) {
			if a, ok := ev.Body.(event.Asked); ok {
				_ = s.Answer(ctx, a.Ask.ID, ask.Answer{Allow: draws.bool()})
			}
		}
	}()
	var failures sync.Mutex
	failing := false
	log.mu.Lock()
	log.fail = func() error {
		failures.Lock()
		defer failures.Unlock()
		if failing {
			return errDisk
		}
		return nil
	}
	log.mu.Unlock()
	for i := range rapid.IntRange(0, 8).Draw(t, "actions") {
		switch rapid.IntRange(0, 4).Draw(t, "action") {
		case 0, 1:
			text := fmt.Sprintf("prompt %p %d", s, i)
			if err := s.Prompt(ctx, text); err == nil {
				accepted = append(accepted, text)
			} else if !errors.Is(err, errDisk) {
				t.Fatalf("prompt: %v", err)
			}
		case 2:
			_ = s.Interrupt(ctx, ErrInterrupt)
		case 3:
			_ = s.Send(ctx, Text(PeerMail, "mail"))
		case 4:
			failures.Lock()
			failing = rapid.Bool().Draw(t, "failing")
			failures.Unlock()
		}
	}
	_ = s.Close(nil)
	cfg.Tree.Stream.End()
	<-answering
	return accepted
}

// draws are decisions made ahead, so that the goroutines of a session need no
// generator of their own.
type draws struct {
	mu    sync.Mutex
	bytes []byte
	at    int
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
	return func(ctx context.Context, _ provider.Request, yield func(provider.Event, error) bool) {
		if !yield(provider.TextDelta{Text: "hm"}, nil) {
			return
		}
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		switch d.next() % 7 {
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

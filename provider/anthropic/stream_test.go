package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/provider"
	"github.com/cadre-dev/cadre/provider/internal/wire"
	"github.com/cadre-dev/cadre/provider/internal/wiretest"
	"github.com/cadre-dev/cadre/transcript"
)

// recorded is an answer with every kind of block, as its events.
func recorded() [][]byte {
	reply := fakeapi.Answer(
		fakeapi.Thought("a thought of some length", "sig"),
		fakeapi.Text("First this."),
		fakeapi.ToolUse("toolu_1", "Read", `{"file_path":"/a"}`),
		fakeapi.ToolUse("toolu_2", "Bash", `{"command":"ls"}`),
	)
	return reply.EventsOf(fakeapi.Messages)
}

// decode reads a stream without a server.
func decode(stream io.Reader) (provider.Reply, error) {
	a := newAnswer("m")
	events := wire.NewEvents(stream)
	for !a.Done() && events.Next() {
		if _, err := a.Add(events.Event(), func(provider.Event) bool { return true }); err != nil {
			return a.Reply(), err
		}
	}
	return a.Reply(), events.Err()
}

// TestCutAfterEveryEvent: before anything was emitted the request is sent again;
// after that, what is whole is the reply, and no call that was cut off is in it.
func TestCutAfterEveryEvent(t *testing.T) {
	events := recorded()
	whole, err := decode(bytes.NewReader(bytes.Join(events, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for k := range events {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			server := wiretest.Start(t, func(r *fakeapi.Request) fakeapi.Reply {
				return fakeapi.Reply{Events: events, Faults: fakeapi.Faults{Cut: r.Seq == 1, CutAfter: k}}
			})
			h := wiretest.Collect(t.Context(), newModel(t, server, func(o *Options) {
				o.Retry = provider.RetryPolicy{Base: 1, Cap: 1}
			}), ask("hi"))
			if h.Err != nil || h.Reply == nil {
				t.Fatalf("error %v, reply %+v", h.Err, h.Reply)
			}
			retried := len(server.Requests()) == 2
			if emitted := bytes.Contains(bytes.Join(events[:k], nil), []byte("_delta")); retried == emitted {
				t.Errorf("retried = %v after emitted = %v", retried, emitted)
			}
			if retried != (len(h.Retries) == 1) {
				t.Errorf("%d retries were reported, retried = %v", len(h.Retries), retried)
			}
			ended := bytes.Contains(bytes.Join(events[:k], nil), []byte("stop_reason\":\"tool_use"))
			if retried || ended {
				if diff := cmp.Diff(whole, h.Whole(t), cmp.FilterPath(isID, cmp.Ignore())); diff != "" {
					t.Error("reply (-want +got):\n" + diff)
				}
				return
			}
			checkBroken(t, *h.Reply, whole, events[:k])
		})
	}
}

func isID(p cmp.Path) bool { return p.Last().String() == ".RequestID" }

// checkBroken: the blocks are the first ones of the whole reply, those whose
// end was seen and the text as far as it came.
func checkBroken(t *testing.T, got, whole provider.Reply, seen [][]byte) {
	t.Helper()
	var e *provider.Error
	if !errors.As(got.Broken, &e) || e.Class != provider.Network {
		t.Errorf("broken by %v, want a network error", got.Broken)
	}
	ended := bytes.Count(bytes.Join(seen, nil), []byte("event: content_block_stop"))
	for i, b := range got.Message.Content {
		want := whole.Message.Content[i]
		switch {
		case i < ended:
			if diff := cmp.Diff(want, b); diff != "" {
				t.Errorf("block %d (-want +got):\n%s", i, diff)
			}
		case b.Type == transcript.Text:
			if !strings.HasPrefix(want.Text, b.Text) || b.Text == "" {
				t.Errorf("text %q is no beginning of %q", b.Text, want.Text)
			}
		case b.Type == transcript.Thinking && b.Signature != "":
		default:
			t.Errorf("block %d is kept, although only %d ended: %+v", i, ended, b)
		}
	}
	if len(got.Message.Content) < ended {
		t.Errorf("%d blocks, %d were whole", len(got.Message.Content), ended)
	}
}

// TestSplitAnywhere: it does not matter how the bytes arrive.
func TestSplitAnywhere(t *testing.T) {
	stream := bytes.Join(recorded(), nil)
	for name, form := range map[string]func([]byte) []byte{
		"LF":              func(b []byte) []byte { return b },
		"CRLF":            func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		"CR":              func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r")) },
		"BOM":             func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) },
		"comments":        func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("event:"), []byte(": hi\nid: 7\nevent:")) },
		"no space":        func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("data: "), []byte("data:")) },
		"no event names":  func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("event: "), []byte("x: ")) },
		"no last blank":   func(b []byte) []byte { return bytes.TrimRight(b, "\n") },
		"data over lines": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`,"type"`), []byte(",\ndata: \"type\"")) },
		"unknown events": func(b []byte) []byte {
			return append([]byte("event: news\ndata: {\"type\":\"news\",\"delta\":7}\n\n"), b...)
		},
		"after the end":    func(b []byte) []byte { return append(b, recorded()[3]...) },
		"two starts":       func(b []byte) []byte { return append(bytes.Clone(recorded()[0]), b...) },
		"no message_stop":  func(b []byte) []byte { return b[:bytes.Index(b, []byte("event: message_stop"))] },
		"no block stops":   func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("content_block_stop"), []byte("unheard_of")) },
		"no message_start": func(b []byte) []byte { return b[len(recorded()[0]):] },
	} {
		t.Run(name, func(t *testing.T) {
			formed := form(bytes.Clone(stream))
			want, err := decode(bytes.NewReader(formed))
			if err != nil || len(want.Message.Content) != 4 || want.Message.StopReason != "tool_use" {
				t.Fatalf("error %v, message %+v", err, want.Message)
			}
			got, err := decode(iotest.OneByteReader(bytes.NewReader(formed)))
			checkSame(t, "byte by byte", want, got, err)
			if name != "CRLF" && name != "CR" { // those where it could matter
				return
			}
			formed = formed[:bytes.Index(formed, []byte(`"index":2`))] // enough, since each split costs a decoding
			want, _ = decode(bytes.NewReader(formed))
			for i := range formed {
				got, _ := decode(io.MultiReader(bytes.NewReader(formed[:i]), bytes.NewReader(formed[i:])))
				checkSame(t, fmt.Sprintf("split at %d", i), want, got, nil)
			}
		})
	}
}

func checkSame(t *testing.T, how string, want, got provider.Reply, err error) {
	t.Helper()
	want.Message.ID, got.Message.ID = "", "" // made up where the server gives none
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: error %v (-want +got):\n%s", how, err, cmp.Diff(want, got))
	}
}

func TestInputsOfCalls(t *testing.T) {
	invalid := func(written string) string {
		data, _ := json.Marshal(map[string]string{provider.InvalidJSON: written})
		return string(data)
	}
	for written, want := range map[string]string{
		`{"a": 1}`:          `{"a":1}`,
		``:                  `{}`,
		`null`:              `{}`,
		`  `:                `{}`,
		`{"a": "cut of`:     invalid(`{"a": "cut of`),
		`[1,2]`:             invalid(`[1,2]`),
		`7`:                 invalid(`7`),
		`"{\"a\": [1, 2]}"`: `{"a":[1,2]}`,
		`"just text"`:       invalid(`"just text"`),
		`{"a":1}{"b":2}`:    invalid(`{"a":1}{"b":2}`),
	} {
		t.Run(written, func(t *testing.T) {
			reply := fakeapi.Answer(fakeapi.ToolUse("toolu_1", "Read", written))
			got, err := decode(bytes.NewReader(bytes.Join(reply.EventsOf(fakeapi.Messages), nil)))
			if err != nil {
				t.Fatal(err)
			}
			if input := string(got.Message.Content[0].Input); input != want {
				t.Errorf("input %s, want %s", input, want)
			}
		})
	}
}

// events makes a stream of data lines.
func events(data ...string) io.Reader {
	return strings.NewReader("data: " + strings.Join(data, "\n\ndata: ") + "\n\n")
}

func TestOddStreams(t *testing.T) {
	const (
		stop    = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
		another = `{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"%s","name":"T","input":{"n":%d}}}`
	)
	many := []string{}
	for i := range 200 {
		many = append(many, fmt.Sprintf(another, 7*i, "same", i))
	}
	for _, c := range []struct {
		name   string
		stream io.Reader
		check  func(provider.Reply) bool
	}{
		{"nothing at all", events(`{"type":"message_start","message":{"id":"m"}}`, stop), func(r provider.Reply) bool {
			return len(r.Message.Content) == 0 && r.Message.StopReason == "end_turn"
		}},
		{"only a thought", events(`{"type":"content_block_start","content_block":{"type":"thinking"}}`, `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"t"}}`, stop), func(r provider.Reply) bool {
			return len(r.Message.Content) == 1 && r.Message.Content[0].Text == "t"
		}},
		{"refusal", events(`{"type":"message_delta","delta":{"stop_reason":"refusal"}}`), func(r provider.Reply) bool { return r.Message.StopReason == "refusal" }},
		{"pause_turn", events(`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`), func(r provider.Reply) bool { return r.Message.StopReason == "pause_turn" }},
		{"200 calls with one id", events(append(many, stop)...), func(r provider.Reply) bool {
			ids := map[string]bool{}
			for i, b := range r.Message.Content {
				ids[b.ID] = true
				if string(b.Input) != fmt.Sprintf(`{"n":%d}`, i) {
					return false
				}
			}
			return len(ids) == 200
		}},
		{"interleaved", events(fmt.Sprintf(another, 5, "a", 1), fmt.Sprintf(another, 2, "b", 2),
			`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"1}"}}`, stop), func(r provider.Reply) bool {
			return string(r.Message.Content[0].Input) == `{"x":1}` && string(r.Message.Content[1].Input) == `{}`
		}},
		{"text without a start", events(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`, stop), func(r provider.Reply) bool {
			return len(r.Message.Content) == 1 && r.Message.Content[0].Text == "x"
		}},
		{"a block we do not know", events(`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":7}}`, stop), func(r provider.Reply) bool {
			return len(r.Message.Content) == 1 && string(r.Message.Content[0].Raw) == `{"type":"server_tool_use","id":7}`
		}},
		{"fields of other shapes", events(`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":null,"server_tool_use":[]}},"index":null}`, stop), func(r provider.Reply) bool { return r.Message.ID == "m" }},
		{"NUL and bad UTF-8", events("{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\\u0000\xff\"}}", stop), func(r provider.Reply) bool {
			return r.Message.Content[0].Text == "a\x00\ufffd"
		}},
		{"late usage", events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9,"input_tokens":4}}`), func(r provider.Reply) bool {
			return r.Message.Usage == transcript.Usage{InputTokens: 4, OutputTokens: 9}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := decode(c.stream)
			if err != nil || !c.check(got) {
				t.Errorf("error %v, message %+v", err, got.Message)
			}
		})
	}
}

// TestMalformedEvents end the answer: a piece of it is lost.
func TestMalformedEvents(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON":       `data: {"type":"content_block_delta","delta":{"te` + "\n\n",
		"a raw NUL":     "data: {\"type\":\"ping\x00\"}\n\n",
		"a string":      `data: "hello"` + "\n\n",
		"an odd number": `data: {"type":"content_block_start","index":1e999}` + "\n\n",
		"32 MB":         "data: " + strings.Repeat("x", wire.MaxEvent+1) + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			server := wiretest.Start(t, wiretest.Always(fakeapi.Reply{Events: [][]byte{[]byte(data)}}))
			e := wiretest.Collect(t.Context(), newModel(t, server), ask("hi")).Failure(t)
			if e.Class != provider.Malformed {
				t.Errorf("class %s, want malformed: %v", e.Class, e)
			}
		})
	}
}

func TestErrorInsideTheStream(t *testing.T) {
	failed := []byte("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")
	t.Run("before anything was told", func(t *testing.T) {
		server := wiretest.Start(t, func(r *fakeapi.Request) fakeapi.Reply {
			if r.Seq == 1 {
				return fakeapi.Reply{Events: [][]byte{recorded()[0], failed}}
			}
			return fakeapi.Answer(fakeapi.Text("fine"))
		})
		h := wiretest.Collect(t.Context(), newModel(t, server, func(o *Options) { o.Retry = provider.RetryPolicy{Base: 1, Cap: 1} }), ask("hi"))
		h.Whole(t)
		if len(h.Retries) != 1 || h.Retries[0].Err.Class != provider.Overloaded {
			t.Errorf("retries %+v", h.Retries)
		}
	})
	t.Run("after", func(t *testing.T) {
		server := wiretest.Start(t, wiretest.Always(fakeapi.Reply{Events: append(recorded()[:4:4], failed)}))
		h := wiretest.Collect(t.Context(), newModel(t, server), ask("hi"))
		var e *provider.Error
		if h.Err != nil || !errors.As(h.Reply.Broken, &e) || e.Class != provider.Overloaded {
			t.Errorf("error %v, reply %+v", h.Err, h.Reply)
		}
	})
}

// TestInterrupted: the end of the context ends a stream at once, with its cause.
func TestInterrupted(t *testing.T) {
	for _, k := range []int{0, 3} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			reached, gate := make(chan struct{}), make(chan struct{})
			defer close(gate)
			server := wiretest.Start(t, wiretest.Always(fakeapi.Reply{Events: recorded(), Faults: fakeapi.Faults{EventGate: func(n int) <-chan struct{} {
				if n != k {
					return nil
				}
				close(reached)
				return gate
			}}}))
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("the user pressed Ctrl+C")
			go func() { <-reached; cancel(stop) }()
			h := wiretest.Collect(ctx, newModel(t, server), ask("hi"))
			if !errors.Is(h.Err, stop) || h.Reply != nil {
				t.Errorf("error %v, reply %+v; want the cause", h.Err, h.Reply)
			}
		})
	}
}

// TestConsumerBreaksOff: the request is closed before Stream returns.
func TestConsumerBreaksOff(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	closed := make(chan struct{})
	server := wiretest.Start(t, func(*fakeapi.Request) fakeapi.Reply {
		return fakeapi.Reply{Events: recorded(), Faults: fakeapi.Faults{EventGate: func(n int) <-chan struct{} {
			if n < 4 {
				return nil
			}
			close(closed) // the server is about to wait for the client to go away
			return gate
		}}}
	})
	for range newModel(t, server).Stream(t.Context(), ask("hi")) {
		break
	}
	<-closed
	server.Close() // waits for the connection's goroutine
}

// inBubble runs f with a model whose server is in memory, so that time is the
// bubble's own.
func inBubble(t *testing.T, script fakeapi.Script, f func(*testing.T, *Model, *fakeapi.Server), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.StartInMemory(script)
		defer server.Close()
		f(t, newModel(t, server, change...), server)
	})
}

func retrying(o *Options) { o.Retry = provider.RetryPolicy{} }

// after makes a gate that opens by itself.
func after(d time.Duration) <-chan struct{} {
	gate := make(chan struct{})
	time.AfterFunc(d, func() { close(gate) })
	return gate
}

var ping = []byte("event: ping\ndata: {\"type\":\"ping\"}\n\n")

// TestSilentServers: no answer, pings only, a byte now and then: each ends, and
// is announced while it lasts.
func TestSilentServers(t *testing.T) {
	manyPings := bytes.Split(bytes.Repeat(append(bytes.Clone(ping), 0), 1000), []byte{0})
	for _, c := range []struct {
		name  string
		reply fakeapi.Reply
		first time.Duration // after which the first attempt is given up
		waits []time.Duration
	}{
		{"no headers", fakeapi.Reply{}, provider.DefaultFirstByte, []time.Duration{10, 20, 40}},
		{"no event", fakeapi.Reply{Events: [][]byte{}, Faults: fakeapi.Faults{HoldOpen: true}}, provider.DefaultPatience, []time.Duration{10, 20, 40, 80, 160}},
		{"pings only", fakeapi.Reply{Events: manyPings, Faults: fakeapi.Faults{EventGate: func(int) <-chan struct{} { return after(7 * time.Second) }}}, provider.DefaultPatience, []time.Duration{10, 20, 40, 80, 160}},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := func(*fakeapi.Request) fakeapi.Reply {
				reply := c.reply
				if c.name == "no headers" {
					reply.Faults.Gate = make(chan struct{}) // of the bubble
				}
				return reply
			}
			inBubble(t, script, func(t *testing.T, m *Model, _ *fakeapi.Server) {
				begun := time.Now()
				var waits []time.Duration
				for ev, err := range m.Stream(t.Context(), ask("hi")) {
					switch ev := ev.(type) {
					case provider.Waiting:
						if ev.Silent != time.Since(begun) || ev.Limit != c.first || ev.Host != "model.test" || ev.Attempt != 1 {
							t.Errorf("after %s: %+v", time.Since(begun), ev)
						}
						waits = append(waits, ev.Silent/time.Second)
						continue
					case provider.Retrying:
						if ev.Err.Class != provider.Stalled || ev.Err.Silent != c.first || time.Since(begun) != c.first {
							t.Errorf("after %s: %+v", time.Since(begun), ev)
						}
					default:
						t.Errorf("event %T, error %v", ev, err)
					}
					break
				}
				if diff := cmp.Diff(c.waits, waits); diff != "" {
					t.Error("announced after seconds (-want +got):\n" + diff)
				}
			}, retrying)
		})
	}
}

// TestAServerThatHangs is given up in the end, and no sooner than a run may last
// without it.
func TestAServerThatHangs(t *testing.T) {
	script := func(*fakeapi.Request) fakeapi.Reply {
		return fakeapi.Reply{Faults: fakeapi.Faults{Gate: make(chan struct{})}}
	}
	inBubble(t, script, func(t *testing.T, m *Model, server *fakeapi.Server) {
		begun := time.Now()
		e := wiretest.Collect(t.Context(), m, ask("hi")).Failure(t)
		if took := time.Since(begun); e.Class != provider.Stalled || took < provider.DefaultRetryFor || took > provider.DefaultRetryFor+provider.DefaultPatience {
			t.Errorf("error %v after %s and %d requests", e, took, len(server.Requests()))
		}
	}, retrying)
}

// TestASlowServer, which reads a long prompt before it says anything, is given
// more time each time, and is known for it in later requests.
func TestASlowServer(t *testing.T) {
	script := func(*fakeapi.Request) fakeapi.Reply {
		reply := fakeapi.Answer(fakeapi.Text("x"))
		reply.Faults.Gate = after(200 * time.Second)
		return reply
	}
	inBubble(t, script, func(t *testing.T, m *Model, server *fakeapi.Server) {
		for range 2 {
			wiretest.Collect(t.Context(), m, ask("hi")).Whole(t)
		}
		if n := len(server.Requests()); n != 4 {
			t.Errorf("%d requests, want 60 s, 120 s and 240 s for the first answer, and 240 s for the second", n)
		}
	}, retrying)
}

func TestAnErrorBodyWithoutEnd(t *testing.T) {
	inBubble(t, func(*fakeapi.Request) fakeapi.Reply {
		return fakeapi.Reply{Status: 400, Body: strings.NewReader("{"), Faults: fakeapi.Faults{HoldOpen: true}}
	}, func(t *testing.T, m *Model, server *fakeapi.Server) {
		begun := time.Now()
		e := wiretest.Collect(t.Context(), m, ask("hi")).Failure(t)
		if took := time.Since(begun); e.Class != provider.Invalid || took != 5*time.Second || len(server.Requests()) != 1 {
			t.Errorf("error %v after %s", e, took)
		}
	}, retrying)
}

// TestGapInAnAnswer: silence inside a text ends it; a thought or a call may
// take longer, and much longer while the server shows that it is there.
func TestGapInAnAnswer(t *testing.T) {
	const idle, patience = provider.DefaultIdle, provider.DefaultPatience
	for _, c := range []struct {
		name  string
		block fakeapi.Block
		gap   time.Duration
		pings bool
		whole bool
	}{
		{"text, short", fakeapi.Text("abc"), idle - time.Second, false, true},
		{"text, long", fakeapi.Text("abc"), idle + time.Second, false, false},
		{"text, long, pings", fakeapi.Text("abc"), idle + time.Second, true, false},
		{"thought, short", fakeapi.Thought("abc", "s"), patience - time.Second, false, true},
		{"thought, long", fakeapi.Thought("abc", "s"), patience + time.Second, false, false},
		{"call, short", fakeapi.ToolUse("t", "T", "{}"), patience - time.Second, false, true},
		{"call, long", fakeapi.ToolUse("t", "T", "{}"), patience + time.Second, false, false},
		{"call, long, pings", fakeapi.ToolUse("t", "T", "{}"), 2*patience - time.Minute, true, true},
		{"call, endless, pings", fakeapi.ToolUse("t", "T", "{}"), 2*patience + time.Minute, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := fakeapi.Answer(c.block)
			events := answer.EventsOf(fakeapi.Messages)
			const pings = 24
			if c.pings {
				events = slices.Insert(events, 3, slices.Repeat([][]byte{ping}, pings)...)
			}
			script := func(*fakeapi.Request) fakeapi.Reply {
				return fakeapi.Reply{Events: events, Faults: fakeapi.Faults{EventGate: func(k int) <-chan struct{} {
					switch {
					case c.pings && k >= 3 && k < 3+pings:
						return after(c.gap / pings)
					case !c.pings && k == 3: // the second delta
						return after(c.gap)
					}
					return nil
				}}}
			}
			inBubble(t, script, func(t *testing.T, m *Model, _ *fakeapi.Server) {
				h := wiretest.Collect(t.Context(), m, ask("hi"))
				if h.Err != nil || h.Reply == nil || (h.Reply.Broken == nil) != c.whole {
					t.Fatalf("error %v, reply %+v; want whole = %v", h.Err, h.Reply, c.whole)
				}
				if len(h.Waits) == 0 {
					t.Error("the silence was not announced")
				}
				var e *provider.Error
				if !c.whole && (!errors.As(h.Reply.Broken, &e) || e.Class != provider.Stalled || h.Reply.Outage.Failures != 1) {
					t.Errorf("broken by %v in %+v, want stalled", h.Reply.Broken, h.Reply.Outage)
				}
			})
		})
	}
}

// TestAConsumerMayLeaveWhileItWaits: the request is ended at once.
func TestAConsumerMayLeaveWhileItWaits(t *testing.T) {
	script := func(*fakeapi.Request) fakeapi.Reply {
		return fakeapi.Reply{Faults: fakeapi.Faults{Gate: make(chan struct{})}}
	}
	inBubble(t, script, func(t *testing.T, m *Model, _ *fakeapi.Server) {
		begun := time.Now()
		for ev := range m.Stream(t.Context(), ask("hi")) {
			if _, ok := ev.(provider.Waiting); !ok {
				t.Errorf("event %T", ev)
			}
			break
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("left after %s", took)
		}
	}, retrying)
}

// TestSlowConsumer: who takes long over an event does not make the server slow.
func TestSlowConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.StartInMemory(wiretest.Always(fakeapi.Reply{Events: recorded()}))
		defer server.Close()
		for ev, err := range newModel(t, server).Stream(t.Context(), ask("hi")) {
			if err != nil {
				t.Fatal(err)
			}
			if reply, ok := ev.(provider.Reply); ok && reply.Broken != nil {
				t.Fatal(reply.Broken)
			}
			time.Sleep(10 * time.Minute)
		}
	})
}

// TestConnectionIsUsedAgain: also when the server keeps a stream open after its
// end, for then a new one is made without delay.
func TestConnectionIsUsedAgain(t *testing.T) {
	inBubble(t, func(r *fakeapi.Request) fakeapi.Reply {
		return fakeapi.Reply{Events: recorded(), Faults: fakeapi.Faults{HoldOpen: r.Seq == 3}}
	}, func(t *testing.T, m *Model, server *fakeapi.Server) {
		begun := time.Now()
		for range 4 {
			wiretest.Collect(t.Context(), m, ask("hi")).Whole(t)
		}
		if took := time.Since(begun); took > 100*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
	server := wiretest.Start(t, wiretest.Always(fakeapi.Reply{Events: recorded()}))
	m := newModel(t, server)
	remotes := map[string]bool{}
	for range 5 {
		wiretest.Collect(t.Context(), m, ask("hi")).Whole(t)
	}
	for _, r := range server.Requests() {
		remotes[r.Remote] = true
	}
	if len(remotes) != 1 {
		t.Errorf("%d connections for 5 requests", len(remotes))
	}
}

// FuzzAnswer: see checkAnyStream. The SDK's size makes real fuzzing slow, so
// TestDamagedStreams damages streams on its own.
func FuzzAnswer(f *testing.F) {
	f.Add(bytes.Join(recorded(), nil))
	for _, e := range recorded() {
		f.Add(append(bytes.Clone(e), "data: {\"type\":\"message_stop\"}\n\n"...))
	}
	f.Add([]byte("\xef\xbb\xbf\r\rdata:\r\n\ndata: {}\r"))
	f.Fuzz(func(t *testing.T, stream []byte) { wiretest.CheckAnyStream(t, decode, stream) })
}

func TestDamagedStreams(t *testing.T) { wiretest.CheckDamaged(t, decode, recorded()) }

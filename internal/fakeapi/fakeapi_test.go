package fakeapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cadre-dev/cadre/internal/fakeapi"
)

func post(t *testing.T, s *fakeapi.Server, path, body string) (*http.Response, string, error) {
	t.Helper()
	resp, err := s.Client().Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), err
}

func TestBodiesOfBothDialects(t *testing.T) {
	want := fakeapi.Body{
		Model: "m", System: "be careful", Tools: []string{"Read"},
		Messages: []fakeapi.Message{
			{Role: "user", Text: "hi"},
			{Role: "assistant", Text: "reading", Calls: []fakeapi.Call{{ID: "c1", Name: "Read", Input: json.RawMessage(`{"a":1}`)}}},
			{Role: "user", Results: []fakeapi.Result{{CallID: "c1", Text: "x"}}},
		},
	}
	var got []fakeapi.Body
	s := fakeapi.Start(func(r *fakeapi.Request) fakeapi.Reply {
		body, err := r.Body()
		if err != nil {
			t.Error(err)
		}
		got = append(got, body)
		return fakeapi.Answer(fakeapi.Text("ok"))
	})
	defer s.Close()
	for path, body := range map[string]string{
		"/v1/messages": `{"model":"m","system":[{"type":"text","text":"be careful"}],"tools":[{"name":"Read"}],"messages":[
			{"role":"user","content":"hi"},
			{"role":"assistant","content":[{"type":"text","text":"reading"},{"type":"tool_use","id":"c1","name":"Read","input":{"a":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"x"}]}]}]}`,
		"/v1/chat/completions": `{"model":"m","tools":[{"type":"function","function":{"name":"Read"}}],"messages":[
			{"role":"system","content":"be careful"},{"role":"user","content":"hi"},
			{"role":"assistant","content":"reading","tool_calls":[{"id":"c1","function":{"name":"Read","arguments":"{\"a\":1}"}}]},
			{"role":"tool","tool_call_id":"c1","content":"x"}]}`,
	} {
		if _, _, err := post(t, s, path, body); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range got {
		if diff := cmp.Diff(want, body); diff != "" {
			t.Error("body (-want +got):\n" + diff)
		}
	}
	if last := got[0].Last(); last.Role != "user" || (fakeapi.Body{}).Last().Role != "" {
		t.Errorf("last message %+v", last)
	}
	if n := len(s.Requests()); n != 2 {
		t.Errorf("%d requests are recorded", n)
	}
}

func TestFaults(t *testing.T) {
	answer := func(f fakeapi.Faults) fakeapi.Reply {
		reply := fakeapi.Answer(fakeapi.Text("hello"))
		reply.Faults = f
		return reply
	}
	whole := fakeapi.Answer(fakeapi.Text("hello"))
	events := whole.EventsOf(fakeapi.Messages)
	for name, c := range map[string]struct {
		reply fakeapi.Reply
		want  string
		cut   bool
	}{
		"none":             {answer(fakeapi.Faults{}), string(bytes.Join(events, nil)), false},
		"trickle":          {answer(fakeapi.Faults{Trickle: true}), string(bytes.Join(events, nil)), false},
		"cut after 0":      {answer(fakeapi.Faults{Cut: true}), "", true},
		"cut after 3":      {answer(fakeapi.Faults{Cut: true, CutAfter: 3}), string(bytes.Join(events[:3], nil)), true},
		"cut after all":    {answer(fakeapi.Faults{Cut: true, CutAfter: 99}), string(bytes.Join(events, nil)), true},
		"events verbatim":  {fakeapi.Reply{Events: [][]byte{[]byte("data: x\n\n")}}, "data: x\n\n", false},
		"a status":         {fakeapi.Reply{Status: 418, Body: strings.NewReader("teapot")}, "teapot", false},
		"cut before it":    {answer(fakeapi.Faults{CutHeaders: true}), "", true},
		"header of choice": {fakeapi.Reply{Status: 200, Header: http.Header{"X-Test": {"y"}}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeapi.Start(func(*fakeapi.Request) fakeapi.Reply { return c.reply })
			defer s.Close()
			resp, got, err := post(t, s, "/v1/messages", "{}")
			if got != c.want || (err != nil) != c.cut {
				t.Errorf("got %q, error %v", got, err)
			}
			if c.reply.Header != nil && resp.Header.Get("X-Test") != "y" {
				t.Errorf("header %v", resp.Header)
			}
		})
	}
}

// TestInMemory: a server in a bubble waits at its gates without real time.
func TestInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakeapi.StartInMemory(func(*fakeapi.Request) fakeapi.Reply {
			gate := make(chan struct{})
			time.AfterFunc(time.Hour, func() { close(gate) })
			return fakeapi.Reply{Events: [][]byte{[]byte("a"), []byte("b")}, Faults: fakeapi.Faults{EventGate: func(k int) <-chan struct{} {
				return map[int]chan struct{}{1: gate}[k]
			}}}
		})
		begun := time.Now()
		if _, got, err := post(t, s, "/v1/messages", "{}"); got != "ab" || err != nil || time.Since(begun) != time.Hour {
			t.Errorf("got %q, error %v, after %s", got, err, time.Since(begun))
		}
		s.Close()
		if _, _, err := post(t, s, "/v1/messages", "{}"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestHandler serves on a listener of the caller's and keeps nothing.
func TestHandler(t *testing.T) {
	s := fakeapi.Handler(func(r *fakeapi.Request) fakeapi.Reply {
		if r.Seq != 1 || string(r.Raw) != "{}" {
			t.Errorf("request %d: %s", r.Seq, r.Raw)
		}
		return fakeapi.Answer(fakeapi.ToolUse("c", "Read", "{}"))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	resp, err := http.Post("http://"+listener.Addr().String()+"/v1/chat/completions", "", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(data), `"finish_reason":"tool_calls"`) {
		t.Errorf("%s, %v", data, err)
	}
	server.Close()
	<-served
	if len(s.Requests()) != 0 {
		t.Error("requests are kept")
	}
}

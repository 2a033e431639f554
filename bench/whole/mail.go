package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/internal/layout"
)

// leadMark stands in the lead's prompts only, so that the model's server can
// tell its requests from the teammate's.
const leadMark = "bench-lead"

// letters is the conversation of a lead that writes to one teammate.
type letters struct {
	mu     sync.Mutex
	sent   []time.Time // when the model began to answer with a call of SendMessage
	reader []time.Time // arrivals of the teammate's requests
}

// times lists when messages were sent, and when the teammate's requests came,
// but for the first, which carried no mail.
func (t *letters) times() (sent, read []time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent, t.reader[min(1, len(t.reader)):]
}

// answer plays both agents. The lead does what the newest prompt says; the
// teammate answers everything with one line.
func (t *letters) answer(n int, req *fakeapi.Request) fakeapi.Reply {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !bytes.Contains(req.Raw, []byte(leadMark)) {
		t.reader = append(t.reader, req.At)
		return fakeapi.Answer(fakeapi.Text("Noted."))
	}
	call := func(name, input string) fakeapi.Reply {
		return fakeapi.Answer(fakeapi.ToolUse(fmt.Sprintf("toolu_%05d", n), name, input))
	}
	switch last := order(req.Raw); {
	case last == "team":
		return call("TeamCreate", `{"team_name":"bench","description":"Measures mail"}`)
	case last == "teammate":
		return call("Agent", `{"name":"reader","team_name":"bench","subagent_type":"general-purpose","description":"Read mail","prompt":"Answer each message with one line."}`)
	case last == "send":
		t.sent = append(t.sent, time.Now())
		return call("SendMessage", `{"type":"message","recipient":"reader","content":"A line of news.","summary":"News"}`)
	}
	return fakeapi.Answer(fakeapi.Text("Done."))
}

// order is what the newest prompt of the lead says, "" when a call was made since.
// To decode the request would take the processor from those who are measured, the
// more the longer the conversation is.
func order(body []byte) string {
	at := bytes.LastIndex(body, []byte(leadMark+": "))
	if at < 0 {
		return ""
	}
	newest := body[at+len(leadMark+": "):]
	if bytes.Contains(newest, []byte(`"tool_result"`)) {
		return ""
	}
	words, _, _ := bytes.Cut(newest, []byte{'"'})
	return string(words)
}

// mail measures, in one process, to the recipient's request that carries a
// message: from the moment when the model begins to answer with the call of
// SendMessage, so with the answer's stream, the permission and the storing in
// it, and from the moment when the message stands in the inbox.
func (b *bench) mail(ctx context.Context, times int) ([]row, error) {
	home := filepath.Join(b.dir, "mail")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	var t letters
	b.model.expect(t.answer)
	posted, err := b.converse(ctx, home, times)
	if err != nil {
		return nil, err
	}
	sent, read := t.times()
	if len(read) != times || len(sent) != times || len(posted) != times {
		return nil, fmt.Errorf("%d messages became %d calls, %d posts and %d requests", times, len(sent), len(posted), len(read))
	}
	var fromCall, fromPost []time.Duration
	for i, at := range read {
		fromCall = append(fromCall, at.Sub(sent[i]))
		fromPost = append(fromPost, at.Sub(posted[i]))
	}
	return []row{
		within("in one process: message in the inbox to the recipient's next request, p50", fromPost, 2*time.Millisecond),
		within("the same from the model's call of SendMessage, p50", fromCall, 2*time.Millisecond),
		lately("in one process", fromPost),
	}, nil
}

// lately is the figure of the last tenth, by when the recipient has a history.
func lately(where string, took []time.Duration) row {
	return figure(fmt.Sprintf("%s: message in the inbox to the next request, the last tenth of %d messages, p50", where, len(took)), took[len(took)-(len(took)+9)/10:])
}

// converse runs the team, each message to an idle recipient, and returns when
// the messages stood in the inbox.
func (b *bench) converse(ctx context.Context, home string, times int) (posted []time.Time, err error) {
	rt, err := cadre.Open(ctx, cadre.Config{
		Root: layout.Root(filepath.Join(home, "state")), Cwd: home, SkipPermissions: true,
		Getenv: lookup(b.environment(home)),
	})
	if err != nil {
		return nil, err
	}
	watched := make(chan struct{})
	events := rt.Session().Events(ctx, 0)
	go func() {
		defer close(watched)
		for ev := range events {
			if mail, ok := ev.Body.(event.MailSent); ok && mail.To.Agent == "reader" {
				posted = append(posted, ev.At)
			}
		}
	}()
	err = prompts(ctx, rt, times)
	rt.Kill() // ends the events too
	<-watched
	return posted, err
}

func prompts(ctx context.Context, rt *cadre.Runtime, times int) error {
	words := []string{"team", "teammate"}
	for range times {
		words = append(words, "send")
	}
	for _, word := range words {
		if err := rt.Session().Prompt(ctx, leadMark+": "+word); err != nil {
			return err
		}
		if err := rt.Settled(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lookup reads variables from a list instead of the process's own.
func lookup(env []string) func(string) string {
	return func(name string) string {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

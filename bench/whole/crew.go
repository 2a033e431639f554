package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre"
	"github.com/cadre-dev/cadre/internal/fakeapi"
	"github.com/cadre-dev/cadre/internal/layout"
)

// mateMark stands in the prompts of teammates, with a number behind it.
const mateMark = "bench-mate-"

// crew plays a lead that starts teammates as it is told, and the teammates, which
// answer everything with one line. It notes when things happened, by teammate.
type crew struct {
	mu      sync.Mutex
	called  map[int]time.Time // the model began to answer with the call of Agent
	first   map[int]time.Time // the teammate's first request came
	started map[int]time.Time // the lead's request with the result of the call came
	failed  string            // what a call of a tool said that failed
}

func newCrew() *crew {
	return &crew{called: make(map[int]time.Time), first: make(map[int]time.Time), started: make(map[int]time.Time)}
}

func (c *crew) answer(n int, req *fakeapi.Request) fakeapi.Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !bytes.Contains(req.Raw, []byte(leadMark)) {
		mate, ok := numberAfter(req.Raw, mateMark)
		if _, again := c.first[mate]; ok && !again {
			c.first[mate] = req.At
		}
		return fakeapi.Answer(fakeapi.Text("Noted."))
	}
	body, err := req.Body()
	if err != nil {
		return fakeapi.Reply{Status: 400, Body: strings.NewReader(err.Error())}
	}
	last := body.Last()
	if len(last.Results) > 0 {
		c.results(last.Results, req.At)
		return fakeapi.Answer(fakeapi.Text("Done."))
	}
	var from, to int
	switch _, order, _ := strings.Cut(last.Text, leadMark+": "); {
	case order == "team":
		return fakeapi.Answer(fakeapi.ToolUse(fmt.Sprintf("toolu_team%d", n), "TeamCreate", `{"team_name":"`+teamName+`","description":"Measures teammates"}`))
	case scan(order, "start %d to %d", &from, &to):
		return fakeapi.Answer(c.starts(from, to)...)
	}
	return fakeapi.Answer(fakeapi.Text("Done."))
}

func scan(text, format string, into ...any) bool {
	n, err := fmt.Sscanf(text, format, into...)
	return err == nil && n == len(into)
}

// starts are the calls that start teammates from one number up to another.
func (c *crew) starts(from, to int) []fakeapi.Block {
	var calls []fakeapi.Block
	for mate := from; mate < to; mate++ {
		c.called[mate] = time.Now()
		calls = append(calls, fakeapi.ToolUse(fmt.Sprint("toolu_mate", mate), "Agent", fmt.Sprintf(
			`{"name":"mate%d","team_name":%q,"subagent_type":"general-purpose","description":"Be there","prompt":"Say that you are there: %s%d."}`,
			mate, teamName, mateMark, mate)))
	}
	return calls
}

func (c *crew) results(results []fakeapi.Result, at time.Time) {
	for _, r := range results {
		if r.IsError && c.failed == "" {
			c.failed = r.Text
		}
		if mate, ok := numberAfter([]byte(r.CallID), "toolu_mate"); ok {
			c.started[mate] = at
		}
	}
}

// took is how long it was to a time of each teammate from the call that started
// it.
func (c *crew) took(to map[int]time.Time) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var took []time.Duration
	for mate, at := range to {
		took = append(took, at.Sub(c.called[mate]))
	}
	return took
}

// forget leaves a teammate out of what took is about.
func (c *crew) forget(mate int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.first, mate)
	delete(c.started, mate)
}

// complaint is why something could not be measured.
func (c *crew) complaint(err error, lead *conversation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %d teammates called, %d came, %d started %s %s", err, len(c.called), len(c.first), len(c.started), c.failed, lead.words())
}

// numberAfter reads the number behind a mark.
func numberAfter(text []byte, mark string) (int, bool) {
	at := bytes.Index(text, []byte(mark))
	if at < 0 {
		return 0, false
	}
	digits := text[at+len(mark):]
	end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.Atoi(string(digits))
	return n, err == nil
}

// crewed is a lead with a team in the built program.
type crewed struct {
	*crew
	b     *bench
	lead  *conversation
	state *cadre.State
}

// leadCrew starts a lead that has made a team. end ends it with all its
// teammates of this process.
func (b *bench) leadCrew(ctx context.Context, name string, args ...string) (*crewed, error) {
	home := filepath.Join(b.dir, name)
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	c := &crewed{crew: newCrew(), b: b, state: cadre.OpenState(layout.Root(filepath.Join(home, ".cadre")))}
	b.model.expect(c.answer)
	var err error
	if c.lead, err = b.converseWith(home, args...); err != nil {
		return nil, err
	}
	if err = c.lead.prompt("team"); err == nil {
		err = c.rest(ctx, rest{requests: 2}) // the prompt's, and the one with the result
	}
	if err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

func (c *crewed) end() {
	c.lead.kill()
	_ = c.state.Close() // nothing was written
}

// start starts teammates from one number, those below it being there, up to
// another, in one answer of the model, and waits until all is at rest again.
func (c *crewed) start(ctx context.Context, from, to int) error {
	if err := c.lead.prompt(fmt.Sprintf("start %d to %d", from, to)); err != nil {
		return err
	}
	return c.rest(ctx, rest{idles: to, read: true})
}

func (c *crewed) rest(ctx context.Context, want rest) error {
	return c.complaint(c.b.await(ctx, c.state, want), c.lead)
}

// Package scripted is a model that answers by rules over the request: which
// agent asks, which task it works on, what input it got, which calls it made and
// what came of them. A rule sees nothing else, and the model remembers nothing,
// so a script plays its part in whatever order a team's work happens to run.
//
// Scripts are written in Go for tests ([New], [Func]) or as JSONC files
// ([Load]); docs/scripted-models.md explains the format.
package scripted

import (
	"context"
	"fmt"
	"iter"

	"github.com/cadre-dev/cadre/provider"
)

// Prefix is what the name of a model begins with when the rest of it is the
// path of a script: "scripted:FILE".
const Prefix = "scripted:"

// Model is a [provider.Model] that answers from rules. It keeps no state
// between requests and is safe for use by many goroutines.
type Model struct {
	answer func(provider.Request) (Reply, error)
	pace   Pace
}

// New makes a model from rules written in Go. It panics on a rule that is
// wrong: a regexp that does not compile, a template of unknown name.
func New(rules ...Rule) *Model {
	m, err := Script{Rules: rules}.Model()
	if err != nil {
		panic(err)
	}
	return m
}

// Func makes a model that asks f for each reply. f is called by the goroutine
// that ranges over the stream, by many at once when many do.
func Func(f func(provider.Request) Reply) *Model {
	return &Model{answer: func(req provider.Request) (Reply, error) { return f(req), nil }}
}

// Paced returns a copy of the model that answers at this pace.
func (m *Model) Paced(p Pace) *Model {
	return &Model{answer: m.answer, pace: p}
}

// Stream implements [provider.Model]. A request that no rule answers is a
// [*provider.Error] of class Invalid that names the agent and its newest
// input.
func (m *Model) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Event, error] {
	return func(yield func(provider.Event, error) bool) {
		reply, err := m.answer(req)
		if err != nil {
			yield(nil, err)
			return
		}
		newStream(ctx, identify(req), m.pace, yield).send(req, reply)
	}
}

// noRule is the error of a request that no rule answers: it says which rule the
// script lacks.
func noRule(c *Conversation) error {
	who := c.Agent.Name
	if who == "" {
		who = "the main session"
	}
	message := fmt.Sprintf("the script has no rule for %s", who)
	if task, ok := c.Task(); ok {
		message += fmt.Sprintf(" at task #%s", task.ID)
	}
	message += fmt.Sprintf(": newest input %q", shorten(c.Input()))
	for _, made := range c.Newest() {
		message += fmt.Sprintf(", result of %s %q", made.Tool, shorten(made.Result))
	}
	return &provider.Error{Class: provider.Invalid, Type: "no_rule", Message: message}
}

// shorten cuts text to what fits an error message.
func shorten(text string) string {
	const most = 160
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

package session

import (
	"context"
	"slices"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
)

// waiting is a pending question, and the way to whoever asked it.
type waiting struct {
	agent  event.Agent
	ask    ask.Ask
	answer func(context.Context, ask.Answer) error
}

// relay takes questions to somebody who is not in front of this process.
type relay struct {
	send func(context.Context, ask.Ask) error
}

// Elsewhere says that from now until leave is called there is another way to
// somebody who answers: send is called with each question of the tree, also with
// those that a killed process left open. It counts like [Tree.Attend]. send runs
// on a goroutine of its own, which the session waits for at its end; ctx ends
// with the session. When it fails and nobody attends, the call that asked is
// refused with the reason. Sessions that are open already are not asked again.
func (t *Tree) Elsewhere(send func(ctx context.Context, a ask.Ask) error) (leave func()) {
	r := &relay{send}
	t.mu.Lock()
	t.relays = append(t.relays, r)
	t.mu.Unlock()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.relays = slices.DeleteFunc(slices.Clone(t.relays), func(other *relay) bool { return other == r })
	}
}

// Attended reports whether anybody can answer questions, here or elsewhere.
func (t *Tree) Attended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answerers > 0 || len(t.relays) > 0
}

// attendedHere reports whether a front end attends.
func (t *Tree) attendedHere() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answerers > 0
}

func (t *Tree) elsewhere() []*relay {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.relays[:len(t.relays):len(t.relays)]
}

// Pending lists the questions of the tree that wait now, oldest first, relayed
// ones included.
func (t *Tree) Pending() []ask.Ask {
	t.mu.Lock()
	defer t.mu.Unlock()
	asks := make([]ask.Ask, len(t.waiting))
	for i, w := range t.waiting {
		asks[i] = w.ask
	}
	return asks
}

// Answer answers a pending question of the tree. The first answer counts:
// [ask.ErrUnknown] for a later one. It blocks until the answer is kept, or for a
// relayed question until it is on its way.
func (t *Tree) Answer(ctx context.Context, id string, answer ask.Answer) error {
	t.mu.Lock()
	i := t.find(id)
	if i < 0 {
		t.mu.Unlock()
		return ask.ErrUnknown
	}
	w := t.waiting[i]
	t.mu.Unlock()
	return w.answer(ctx, answer)
}

// Relay puts a question that another process asks before the front ends of this
// tree, in the agent's name. answer carries the answer there; when it fails the
// question goes on waiting. It is called from the goroutine of whoever answers,
// never twice at once, and not again after it succeeded. A question that waits
// already is not asked twice.
func (t *Tree) Relay(agent event.Agent, a ask.Ask, answer func(ctx context.Context, answer ask.Answer) error) {
	first := make(chan struct{}, 1) // holds the place of the one who is answering
	asked := t.wait(agent, a, func(ctx context.Context, given ask.Answer) error {
		select {
		case first <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-first }()
		if !t.waits(a.ID) {
			return ask.ErrUnknown
		}
		if err := answer(ctx, given); err != nil {
			return err
		}
		t.Settle(a.ID, given)
		return nil
	})
	if asked {
		t.Stream.Publish(agent, event.Asked{Ask: a})
	}
}

// Settle says that a relayed question was answered elsewhere. It reports whether
// the question was waiting; when not, nothing happens.
func (t *Tree) Settle(id string, answer ask.Answer) bool {
	w := t.settled(id)
	if w == nil {
		return false
	}
	t.Stream.Publish(w.agent, event.Answered{ID: id, Answer: answer})
	return true
}

// find is the place of a question in waiting, or -1. The caller holds mu.
func (t *Tree) find(id string) int {
	return slices.IndexFunc(t.waiting, func(w *waiting) bool { return w.ask.ID == id })
}

func (t *Tree) waits(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(id) >= 0
}

// wait adds a question; false when it waits already.
func (t *Tree) wait(agent event.Agent, a ask.Ask, answer func(context.Context, ask.Answer) error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.find(a.ID) >= 0 {
		return false
	}
	t.waiting = append(t.waiting, &waiting{agent, a, answer})
	return true
}

// settled takes a question away; nil when it does not wait.
func (t *Tree) settled(id string) *waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.find(id)
	if i < 0 {
		return nil
	}
	w := t.waiting[i]
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return w
}

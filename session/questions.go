package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/agent"
	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/tool"
)

// Questions are the open questions of a tree, those of its sessions and those that
// other processes ask through it, and who can answer them. What a session asks is
// kept in its [ask.Store]; here it waits for its answer, and here its time runs out.
// The desk only points to what is open here. Its methods may be called from any
// goroutine.
type Questions struct {
	stream  *event.Stream
	desk    ask.Desk      // may be nil
	time    time.Duration // how long a question waits; 0: for ever
	changed signal.Signal // for [Questions.Serve]

	mu        sync.Mutex
	open      []*question // oldest first
	answerers int         // front ends that attend
	expected  bool        // one of the answerers is a front end that has not come yet
	relays    []*relay
	asked     bool // there was a question

	deskChanges []deskChange // not made yet, the first perhaps just now
}

// question is an open question, and how its answer gets to the asker.
type question struct {
	agent   event.Agent
	ask     ask.Ask
	answer  func(context.Context, ask.Answer) error
	onDesk  bool
	overdue bool // its deadline has passed, and it was answered with a no

	// Of a question of a session of this process; for its owner alone.
	session *Session
	call    tool.Call // by the tool's own name, its input as the tool expects it
	// reply is where the call waits; nil when it was lost with its process.
	reply     chan agent.Verdict
	accepting bool   // it has its answer, whose rule changes are being accepted
	remedy    string // the flag or setting that would have made it unnecessary; "" when none
}

// relay sends questions to a person who is not in front of this process.
type relay struct {
	send func(context.Context, ask.Ask) error
}

// Expect says that a front end will attend soon: until the first call of
// [Questions.Attend], questions wait for it as if it were there. A resumed team may
// ask before the front end of its lead has begun.
func (q *Questions) Expect() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answerers == 0 {
		q.answerers, q.expected = 1, true
	}
}

// Attend says that from now until leave is called a person can answer questions
// here. Where nobody can, what would be asked is denied at once.
func (q *Questions) Attend() (leave func()) {
	q.mu.Lock()
	if q.expected {
		q.answerers, q.expected = 0, false
	}
	q.answerers++
	q.mu.Unlock()
	return sync.OnceFunc(func() {
		q.mu.Lock()
		q.answerers--
		q.mu.Unlock()
	})
}

// Elsewhere says that from now until leave is called questions can be answered
// elsewhere: send is called with each question of the tree, also with
// those that a killed process left open. It counts like [Questions.Attend]. send runs
// on a goroutine of its own, which the session waits for at its end; ctx ends
// with the session. When it fails and nobody attends, the call that asked is
// refused with the reason. Sessions that are open already are not asked again.
func (q *Questions) Elsewhere(send func(ctx context.Context, a ask.Ask) error) (leave func()) {
	r := &relay{send}
	q.mu.Lock()
	q.relays = append(q.relays, r)
	q.mu.Unlock()
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.relays = slices.DeleteFunc(slices.Clone(q.relays), func(other *relay) bool { return other == r })
	}
}

// Attended reports whether anybody can answer questions, here or elsewhere. Where
// they end at a deadline, a person may answer them on the desk until then.
func (q *Questions) Attended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answerers > 0 || len(q.relays) > 0 || q.time > 0
}

// attendedHere reports whether a front end attends.
func (q *Questions) attendedHere() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answerers > 0
}

func (q *Questions) elsewhere() []*relay {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.relays[:len(q.relays):len(q.relays)]
}

// Pending lists the open questions, oldest first, relayed ones included.
func (q *Questions) Pending() []ask.Ask {
	q.mu.Lock()
	defer q.mu.Unlock()
	asks := make([]ask.Ask, len(q.open))
	for i, one := range q.open {
		asks[i] = one.ask
	}
	return asks
}

// IsPending reports whether a question is open.
func (q *Questions) IsPending(id string) bool { return q.find(id) != nil }

// Answer answers an open question. The first answer counts: [ask.ErrUnknown] for
// a later one. It blocks until the answer is kept, or for a relayed question until
// it is on its way.
func (q *Questions) Answer(ctx context.Context, id string, answer ask.Answer) error {
	one := q.find(id)
	if one == nil {
		return ask.ErrUnknown
	}
	return one.answer(ctx, answer)
}

// Relayed is a question that another process asks through this tree.
type Relayed struct {
	Agent event.Agent // in whose name it is shown
	Ask   ask.Ask
	// OnDesk says that its asker can neither show it on the desk nor end it at a
	// deadline: both are done here.
	OnDesk bool
}

// Relay puts a question of another process before the front ends of this tree.
// answer carries the answer there; when it fails the question stays open. It is
// called from the goroutine of whoever answers, never twice at once, and not again
// after it succeeded. A question that is open already is not asked twice.
func (q *Questions) Relay(r Relayed, answer func(ctx context.Context, answer ask.Answer) error) {
	first := make(chan struct{}, 1) // holds the place of the one who is answering
	id := r.Ask.ID
	if r.OnDesk && q.time > 0 {
		r.Ask.Deadline = q.deadline(r.Ask.Asked)
	}
	one := &question{agent: r.Agent, ask: r.Ask, onDesk: r.OnDesk, answer: func(ctx context.Context, given ask.Answer) error {
		select {
		case first <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-first }()
		if !q.IsPending(id) {
			return ask.ErrUnknown
		}
		if err := answer(ctx, given); err != nil {
			return err
		}
		q.Resolve(id, given)
		return nil
	}}
	if q.add(one) {
		q.stream.Publish(r.Agent, event.Asked{Ask: r.Ask})
	}
}

// Resolve says that a relayed question was answered elsewhere. It reports whether
// the question was open here; when not, it is only removed from the desk.
func (q *Questions) Resolve(id string, answer ask.Answer) bool {
	one := q.remove(id)
	if one == nil {
		q.clear(event.Agent{}, id)
		return false
	}
	q.stream.Publish(one.agent, event.Answered{ID: id, Answer: answer})
	if one.onDesk {
		q.clear(one.agent, id)
	}
	return true
}

// add opens a question and shows it on the desk; false when it is open already.
func (q *Questions) add(one *question) bool {
	q.mu.Lock()
	if q.index(one.ask.ID) >= 0 {
		q.mu.Unlock()
		return false
	}
	q.open, q.asked = append(q.open, one), true
	q.mu.Unlock()
	if one.onDesk {
		q.lay(one)
	}
	q.changed.Raise()
	return true
}

// hasAsked reports whether there was a question.
func (q *Questions) hasAsked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked
}

// remove removes a question and returns it; nil when it is not open.
func (q *Questions) remove(id string) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.index(id)
	if i < 0 {
		return nil
	}
	one := q.open[i]
	q.open = slices.Delete(q.open, i, i+1)
	return one
}

// find returns an open question; nil when there is none of this id.
func (q *Questions) find(id string) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := q.index(id); i >= 0 {
		return q.open[i]
	}
	return nil
}

// index is the place of a question among the open ones, or -1. The caller holds mu.
func (q *Questions) index(id string) int {
	return slices.IndexFunc(q.open, func(one *question) bool { return one.ask.ID == id })
}

// of lists the open questions of a session.
func (q *Questions) of(s *Session) (open []*question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.open {
		if one.session == s {
			open = append(open, one)
		}
	}
	return open
}

// expiry is the answer to a question that nobody answered in time.
var expiry = ask.Answer{By: ask.ByDeadline, Message: nobodyAnswered}

// deadline is until when a question asked at this time waits; zero: for ever.
func (q *Questions) deadline(asked time.Time) time.Time {
	if q.time == 0 {
		return time.Time{}
	}
	return asked.Add(q.time)
}

func expired(a ask.Ask, now time.Time) bool {
	return !a.Deadline.IsZero() && !a.Deadline.After(now)
}

// expire answers the questions whose deadline has passed, and returns when the next
// one's does; zero for never. Those that another process asks and shows, it ends.
func (q *Questions) expire(ctx context.Context, now time.Time) (next time.Time) {
	var over []*question
	q.mu.Lock()
	for _, one := range q.open {
		switch d := one.ask.Deadline; {
		case d.IsZero(), one.overdue, one.session == nil && !one.onDesk:
		case expired(one.ask, now):
			one.overdue = true
			over = append(over, one)
		case next.IsZero() || d.Before(next):
			next = d
		}
	}
	q.mu.Unlock()
	for _, one := range over {
		if err := one.answer(ctx, expiry); err != nil && !isAnswered(err) && ctx.Err() == nil {
			q.warn(one.agent, fmt.Errorf("end question %s at its deadline: %w", one.ask.ID, err))
		}
	}
	return next
}

// isAnswered reports whether an answer came too late, since another was faster.
func isAnswered(err error) bool {
	return errors.Is(err, ask.ErrUnknown) || errors.Is(err, ask.ErrAnswered)
}

func (q *Questions) warn(agent event.Agent, err error) {
	q.stream.Publish(agent, event.Noticed{Level: "warning", Text: err.Error()})
}

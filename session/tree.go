package session

import (
	"context"
	"sync"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
)

// Tree is what a main session and everything it started share: the stream of
// events, who can answer questions, and where a pending question lives.
type Tree struct {
	Stream *event.Stream

	mu        sync.Mutex
	answerers int
	calm      chan struct{}
	asked     map[string]*Session
	grants    []ask.Suggestion // accepted with answers; append only
}

// NewTree makes a tree with an open stream.
func NewTree() *Tree {
	return &Tree{Stream: event.NewStream(), calm: make(chan struct{}, 1), asked: make(map[string]*Session)}
}

// Calm is signalled when something of the tree may have come to rest: whenever a
// session that is not busy has taken something in, and by [Tree.SignalCalm]. It
// has room for one signal and serves one listener.
func (t *Tree) Calm() <-chan struct{} { return t.calm }

// SignalCalm says that something has come to rest.
func (t *Tree) SignalCalm() {
	select {
	case t.calm <- struct{}{}:
	default:
	}
}

// Attend says that from now until leave is called somebody can answer
// questions. Without anybody, what would be asked is denied at once.
func (t *Tree) Attend() (leave func()) {
	t.mu.Lock()
	t.answerers++
	t.mu.Unlock()
	return sync.OnceFunc(func() {
		t.mu.Lock()
		t.answerers--
		t.mu.Unlock()
	})
}

func (t *Tree) attended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answerers > 0
}

// Answer answers a pending question of any session of the tree. The first
// answer counts: [ask.ErrAnswered] or [ask.ErrUnknown] for a later one. It
// blocks until the answer is kept.
func (t *Tree) Answer(ctx context.Context, id string, answer ask.Answer) error {
	t.mu.Lock()
	s := t.asked[id]
	t.mu.Unlock()
	if s == nil {
		return ask.ErrUnknown
	}
	return s.answer(ctx, id, answer)
}

// grant adds rule changes that a person accepted.
func (t *Tree) grant(updates []ask.Suggestion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grants = append(t.grants, updates...)
}

func (t *Tree) granted() []ask.Suggestion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.grants[:len(t.grants):len(t.grants)]
}

func (t *Tree) askedBy(id string, s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[id] = s
}

func (t *Tree) settled(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.asked, id)
}

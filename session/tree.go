package session

import (
	"sync"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
)

// Tree is what a main session and everything it started share: the stream of
// events, who can answer questions, and which questions wait.
type Tree struct {
	Stream *event.Stream
	memory memory

	mu        sync.Mutex
	answerers int
	expected  bool // one of the answerers is a front end that has not come yet
	relays    []*relay
	calm      chan struct{}
	waiting   []*waiting       // pending questions, oldest first
	grants    []ask.Suggestion // accepted with answers; append only
}

// NewTree makes a tree with an open stream.
func NewTree() *Tree {
	return &Tree{Stream: event.NewStream(), memory: memory{most: maxRemembered}, calm: make(chan struct{}, 1)}
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

// Expect says that a front end will attend soon: until the first call of
// [Tree.Attend], questions wait for it as if it were there. A resumed team may ask
// before the front end of its lead has begun.
func (t *Tree) Expect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answerers == 0 {
		t.answerers, t.expected = 1, true
	}
}

// Attend says that from now until leave is called somebody can answer
// questions. Without anybody, what would be asked is denied at once.
func (t *Tree) Attend() (leave func()) {
	t.mu.Lock()
	if t.expected {
		t.answerers, t.expected = 0, false
	}
	t.answerers++
	t.mu.Unlock()
	return sync.OnceFunc(func() {
		t.mu.Lock()
		t.answerers--
		t.mu.Unlock()
	})
}

// Grant adds rule changes that a person accepted, which count for every session of
// the tree from its next decision on.
func (t *Tree) Grant(updates []ask.Suggestion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grants = append(t.grants, updates...)
}

// Granted are the rule changes that came with approvals, for every session of the tree.
func (t *Tree) Granted() []ask.Suggestion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.grants[:len(t.grants):len(t.grants)]
}

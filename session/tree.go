package session

import (
	"context"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/internal/signal"
	"github.com/cadre-dev/cadre/transcript"
)

// Tree is what a main session and everything it started share.
type Tree struct {
	Stream    *event.Stream
	Sessions  *Register  // which of them are alive
	Questions *Questions // what they ask, and who can answer

	memory    memory
	scavenger scavenger
	idle      signal.Signal

	mu     sync.Mutex
	grants []ask.Suggestion // accepted with answers; append only
}

// TreeConfig is what a tree is made of. The zero value makes one that keeps to itself.
type TreeConfig struct {
	Desk ask.Desk // where its questions lie for other processes; nil: nowhere
	// AskTime is after how long a question that nobody answers is answered with a no;
	// 0: it waits for ever.
	AskTime time.Duration
	// Read reads the transcript of a session, whoever writes it, for subscribers who
	// have missed events; nil: they only get the gap.
	Read func(ctx context.Context, ref transcript.Ref) ([]transcript.Entry, error)
}

// NewTree makes a tree with an open stream.
func NewTree(cfg TreeConfig) *Tree {
	t := &Tree{memory: memory{most: maxRemembered}, idle: signal.New()}
	t.Sessions = &Register{tree: t, children: make(map[string]*Session)}
	t.scavenger.idle = func() bool {
		_, idle := t.Sessions.epochs()
		return idle
	}
	t.scavenger.do = scavenge
	var rebuild event.Rebuild
	if cfg.Read != nil {
		rebuild = func(ctx context.Context, from, to time.Time) ([]event.Event, error) {
			return t.Sessions.rebuild(ctx, cfg.Read, from, to)
		}
	}
	t.Stream = event.NewStream(rebuild)
	t.Questions = &Questions{stream: t.Stream, desk: cfg.Desk, time: cfg.AskTime, changed: signal.New()}
	return t
}

// IdleSignal is signalled when the tree may have become idle: whenever a
// session that is not busy has handled a message, and by [Tree.RaiseIdle]. It
// has room for one signal and serves one listener.
func (t *Tree) IdleSignal() <-chan struct{} { return t.idle }

// RaiseIdle says that something of the tree has become idle.
func (t *Tree) RaiseIdle() { t.idle.Raise() }

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

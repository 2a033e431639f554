package session

import (
	"maps"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/event"
)

// Register holds the live sessions of a tree: the main one, and its children, which
// are sub-agents and the teammates of this process. Its methods may be called from
// any goroutine.
type Register struct {
	tree *Tree

	mu       sync.Mutex
	main     *Session
	children map[string]*Session // by agent id
	ended    []endedSession      // the newest, the oldest first
	closed   bool
	ending   sync.WaitGroup // goroutines that wait for a child's end
}

// Child is a session that runs under the main one, with what happens at its end.
type Child struct {
	*Session
	Stop  <-chan struct{} // when it is closed, the session is ended at once; nil: never
	Ended func()          // called when the session has ended and is still registered
	Gone  func()          // called when it is registered no more
}

// SetMain registers the main session.
func (r *Register) SetMain(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.main = s
}

// Add registers a child that has been opened, and publishes its start. At its end
// Ended is called, its end is published, Gone is called, and then gone is closed.
// After [Register.Close] there is no adding: [ErrClosed].
func (r *Register) Add(c Child, started event.AgentStarted) (gone <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	id, over := c.ref.Agent, make(chan struct{})
	if caller := c.Caller(); caller.AgentID != "" {
		id = caller.AgentID // a conversation that was a main session's has no agent
	}
	r.children[id] = c.Session
	r.tree.Stream.Publish(c.agent, started)
	r.ending.Go(func() {
		defer close(over)
		select {
		case <-c.Done():
		case <-c.Stop:
			_ = c.Close(ErrLeave) // the failure to store something was published
		}
		c.Ended()
		r.mu.Lock()
		delete(r.children, id)
		r.noteEnded(c.Session)
		r.mu.Unlock()
		r.tree.Stream.Publish(c.agent, event.AgentEnded{})
		c.Gone()
		r.tree.RaiseIdle()
	})
	return over, nil
}

// Find returns the live session of this agent; the main one's id is "".
func (r *Register) Find(agentID string) (*Session, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if agentID == "" {
		return r.main, r.main != nil
	}
	s, ok := r.children[agentID]
	return s, ok
}

// Children lists the live sessions but the main one.
func (r *Register) Children() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.children))
}

// all lists the live sessions, the main one first.
func (r *Register) all() []*Session {
	children := r.Children()
	if s, ok := r.Find(""); ok {
		return append([]*Session{s}, children...)
	}
	return children
}

// Closed reports whether no child can be added any more.
func (r *Register) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Close ends all children, lets no more in, and blocks until each is gone.
func (r *Register) Close(cause error) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.tree.scavenger.close()
	var closing sync.WaitGroup
	for _, s := range r.Children() {
		closing.Go(func() { _ = s.Close(cause) })
	}
	closing.Wait()
	r.ending.Wait()
}

// Quiet reports whether there was a moment at which no session was busy and rest,
// which answers for everything else that may be at work, said so too. One after the
// other says nothing: work moves between them. So the sessions are asked before and
// after, and must not have done anything in between.
func (r *Register) Quiet(rest func() (quiet bool, err error)) (bool, error) {
	before, idle := r.epochs()
	if !idle {
		return false, nil
	}
	if quiet, err := rest(); err != nil || !quiet {
		return false, err
	}
	after, idle := r.epochs()
	return idle && maps.Equal(before, after), nil
}

// epochs is the state number of every session; idle is false when one is busy.
func (r *Register) epochs() (epochs map[*Session]uint64, idle bool) {
	epochs = make(map[*Session]uint64)
	for _, s := range r.all() {
		st := s.State()
		if st.Busy {
			return nil, false
		}
		epochs[s] = st.Epoch
	}
	return epochs, true
}

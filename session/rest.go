package session

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/transcript"
)

// rester is a [transcript.Log] that can let go of what only an append needs.
type rester interface {
	// Rest gives back open files and the like until the next Append. The lease
	// stays held.
	Rest() error
}

// rest lets go of what only a turn needs, while there is nothing to do. A
// thousand agents wait at once, and few of them work.
func (o *owner) rest() {
	if !o.cfg.Lean || o.resting {
		return
	}
	o.tree.memory.remember(o.Session, o.conversation)
	o.resting, o.conversation = true, nil
	if log, ok := o.cfg.Log.(rester); ok {
		if err := log.Rest(); err != nil {
			o.warn(err)
		}
	}
}

// rise restores the conversation for the next turn: from memory when the
// session rested only a moment ago, else from the log.
func (o *owner) rise(life context.Context) error {
	if !o.resting {
		return nil
	}
	if conversation, ok := o.tree.memory.recall(o.Session); ok {
		o.resting, o.conversation = false, conversation
		return nil
	}
	entries, err := o.cfg.Log.Entries(context.WithoutCancel(life))
	if err != nil {
		return fmt.Errorf("read the conversation back: %w", err)
	}
	o.resting, o.conversation = false, transcript.Conversation(entries)
	return nil
}

// memory holds the conversations of the sessions that rested last: those that take
// turns with each other need not read theirs again and again.
type memory struct {
	most int // how many there are room for

	mu    sync.Mutex
	kept  map[*Session][]transcript.Message
	order []*Session // the oldest first
}

// maxRemembered is how many resting sessions of a tree keep their conversation.
const maxRemembered = 16

func (m *memory) remember(s *Session, conversation []transcript.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = make(map[*Session][]transcript.Message)
	}
	m.forget(s)
	m.kept[s] = conversation
	if m.order = append(m.order, s); len(m.order) > m.most {
		m.forget(m.order[0])
	}
}

func (m *memory) recall(s *Session) (conversation []transcript.Message, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	conversation, ok = m.kept[s]
	m.forget(s)
	return conversation, ok
}

// forget needs the lock.
func (m *memory) forget(s *Session) {
	delete(m.kept, s)
	m.order = slices.DeleteFunc(m.order, func(other *Session) bool { return other == s })
}

func (o *owner) warn(err error) {
	o.publish(event.Noticed{Level: "warning", Text: err.Error()})
}

func (o *owner) fail(err error) {
	o.publish(event.Noticed{Level: "error", Text: err.Error()})
}

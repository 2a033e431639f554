package memstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cadre-dev/cadre/mailbox"
)

type mail struct {
	watchers watchers
	mu       sync.Mutex
	inboxes  map[string]*inbox // by the path that their file would have
}

type inbox struct {
	messages []mailbox.Message
	ids      mailbox.Identities
}

func inboxName(at mailbox.Address) (string, error) {
	if at.Agent == "" {
		return "", errors.New("inbox of nobody: the agent's name is empty")
	}
	return root.Inbox(at.Team, at.Agent), nil
}

func (m *mail) Post(ctx context.Context, to mailbox.Address, msg mailbox.Message) error {
	name, err := inboxName(to)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("post to %s: %w", to, err)
	}
	m.mu.Lock()
	if m.inboxes == nil {
		m.inboxes = make(map[string]*inbox)
	}
	box := m.inboxes[name]
	if box == nil {
		box = new(inbox)
		m.inboxes[name] = box
	}
	msg.Read, msg.ID = false, box.ids.Next(msg)
	box.messages = append(box.messages, msg)
	m.mu.Unlock()
	m.watchers.wake(name)
	return nil
}

func (m *mail) Unread(_ context.Context, at mailbox.Address) ([]mailbox.Message, error) {
	return m.list(at, func(msg mailbox.Message) bool { return !msg.Read })
}

func (m *mail) All(_ context.Context, at mailbox.Address) ([]mailbox.Message, error) {
	return m.list(at, func(mailbox.Message) bool { return true })
}

func (m *mail) list(at mailbox.Address, want func(mailbox.Message) bool) ([]mailbox.Message, error) {
	name, err := inboxName(at)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var messages []mailbox.Message
	if box := m.inboxes[name]; box != nil {
		for _, msg := range box.messages {
			if want(msg) {
				messages = append(messages, msg)
			}
		}
	}
	return messages, nil
}

func (m *mail) MarkRead(ctx context.Context, at mailbox.Address, ids []mailbox.ID) error {
	name, err := inboxName(at)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("mark mail of %s read: %w", at, err)
	}
	changed := false
	m.mu.Lock()
	if box := m.inboxes[name]; box != nil {
		for i := range box.messages {
			if msg := &box.messages[i]; !msg.Read && slices.Contains(ids, msg.ID) {
				msg.Read, changed = true, true
			}
		}
	}
	m.mu.Unlock()
	if changed {
		m.watchers.wake(name)
	}
	return nil
}

func (m *mail) Watch(at mailbox.Address) (<-chan struct{}, func()) {
	name, err := inboxName(at)
	if err != nil {
		return make(chan struct{}), func() {}
	}
	return m.watchers.watch(name)
}

// removeTeam drops all inboxes of a team.
func (m *mail) removeTeam(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	removeBelow(m.inboxes, root.TeamDir(name))
}

package team_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/task"
	"github.com/cadre-dev/cadre/team"
)

// rosters, mails and lists are stores that can be made to fail.
type rosters struct {
	roster.Store
	failUpdate error
	updated    func() // called after each update
}

func (r *rosters) Update(ctx context.Context, name string, change func(*roster.Roster) error) (roster.Roster, error) {
	if r.failUpdate != nil {
		return roster.Roster{}, r.failUpdate
	}
	c, err := r.Store.Update(ctx, name, change)
	if r.updated != nil {
		r.updated()
	}
	return c, err
}

type mails struct {
	mailbox.Store
	failPost   map[string]error // by agent
	beforePost func()
	failRead   error
	beforeRead func() error
	failMark   error
	hidden     bool   // inboxes read as empty
	didRead    func() // called when an inbox was read, before the reader has it

	mu     sync.Mutex
	posted []mailbox.Address // every inbox that was posted to, each time
	marked []mailbox.Address // and marked in
}

func (m *mails) Post(ctx context.Context, to mailbox.Address, msg mailbox.Message) error {
	if err := m.failPost[to.Agent]; err != nil {
		return err
	}
	if m.beforePost != nil {
		m.beforePost()
	}
	m.mu.Lock()
	m.posted = append(m.posted, to)
	m.mu.Unlock()
	return m.Store.Post(ctx, to, msg)
}

func (m *mails) Unread(ctx context.Context, at mailbox.Address) ([]mailbox.Message, error) {
	if m.failRead != nil {
		return nil, m.failRead
	}
	if m.hidden {
		return nil, nil
	}
	if m.beforeRead != nil {
		if err := m.beforeRead(); err != nil {
			return nil, err
		}
	}
	unread, err := m.Store.Unread(ctx, at)
	if m.didRead != nil {
		m.didRead()
	}
	return unread, err
}

func (m *mails) MarkRead(ctx context.Context, at mailbox.Address, ids []mailbox.ID) error {
	if m.failMark != nil {
		return m.failMark
	}
	m.mu.Lock()
	m.marked = append(m.marked, at)
	m.mu.Unlock()
	return m.Store.MarkRead(ctx, at, ids)
}

// seals fail to tell of a message when they are told to.
type seals struct {
	mailbox.Seals
	fail func(mailbox.Message) error
}

func (s *seals) Sealed(ctx context.Context, at mailbox.Address, m mailbox.Message, about string) (bool, error) {
	if s.fail != nil {
		if err := s.fail(m); err != nil {
			return false, err
		}
	}
	return s.Seals.Sealed(ctx, at, m, about)
}

type lists struct {
	task.Store
	failReset error
}

func (l *lists) Reset(ctx context.Context, list string) error {
	if l.failReset != nil {
		return l.failReset
	}
	return l.Store.Reset(ctx, list)
}

// backend remembers what it was told.
type backend struct {
	kind string                 // in-process by default
	join func(team.Spawn) error // starts the process of a teammate
	end  func(mailbox.Address)  // ends it

	mu        sync.Mutex
	failStart error
	onStart   func(team.Spawn)
	started   []team.Spawn
	stopped   []stopped
}

type stopped struct {
	Who   mailbox.Address
	Cause error
}

func (b *backend) Kind(context.Context) (string, error) { return b.name(), nil }

func (b *backend) name() string {
	if b.kind != "" {
		return b.kind
	}
	return "in-process"
}

func (b *backend) Start(_ context.Context, s team.Spawn) (team.Started, error) {
	if b.onStart != nil {
		b.onStart(s)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = append(b.started, s)
	if b.join == nil || b.failStart != nil {
		return team.Started{}, b.failStart
	}
	return team.Started{PaneID: fmt.Sprintf("%%%d", len(b.started))}, b.join(s)
}

func (b *backend) Stop(_ context.Context, who mailbox.Address, cause error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = append(b.stopped, stopped{who, cause})
	if b.end != nil {
		b.end(who)
	}
	return nil
}

// events remembers what was published.
type events struct {
	mu     sync.Mutex
	bodies []event.Body
}

func (e *events) publish(_ event.Agent, body event.Body) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bodies = append(e.bodies, body)
}

// of lists the events of one type.
func of[B event.Body](e *events) []B {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []B
	for _, body := range e.bodies {
		if b, ok := body.(B); ok {
			found = append(found, b)
		}
	}
	return found
}

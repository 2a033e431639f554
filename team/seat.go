package team

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/roster"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Seat is one agent's place in one team: what it may do there. Its exported
// fields never change. Its methods may be called from any goroutine; mail of
// one agent keeps its order when they are called one after another.
type Seat struct {
	Team  string // raw name
	Name  string
	Color string // "" for the lead
	Lead  bool

	Questions *Questions // what it asks its lead
	Plans     *Plans     // its own, or those it approves as the lead

	teams     *Teams
	session   string // the root session of this process
	paneID    string
	backend   string
	own       bool // the agent has this process to itself
	ending    ending
	turn      turnState
	shutdowns shutdownRequests
	exchanges exchanges
	stamps    stamps
	receipts  *readReceipts
	relays    *relays // questions of its teammates, as the lead
}

func newSeat(t *Teams, team, name, session string) *Seat {
	s := &Seat{
		Team: team, Name: name, teams: t, session: session,
		turn:     turnState{working: true},
		ending:   ending{left: make(chan struct{}), stopping: make(chan struct{})},
		receipts: newReadReceipts(mailbox.Address{Team: team, Agent: name}, t.options.Mail, t.options.Records),
	}
	s.relays = newRelays(t, s)
	s.Questions, s.Plans = newQuestions(t, s), newPlans(t, s)
	return s
}

// Address is where the agent gets its mail.
func (s *Seat) Address() mailbox.Address { return mailbox.Address{Team: s.Team, Agent: s.Name} }

// Members is the roster as it is now, the lead first.
func (s *Seat) Members(ctx context.Context) ([]roster.Member, error) {
	config, err := s.config(ctx)
	return config.Members, err
}

func (s *Seat) config(ctx context.Context) (roster.Roster, error) {
	return s.teams.members.rosters.Load(ctx, s.Team)
}

// recipient finds a member on the roster as it is now.
func (s *Seat) recipient(ctx context.Context, to string) (roster.Member, error) {
	config, err := s.config(ctx)
	if err != nil {
		return roster.Member{}, err
	}
	return s.teams.members.find(ctx, &config, to)
}

// agent names the seat's agent in events.
func (s *Seat) agent() event.Agent {
	return event.Agent{Session: s.session, Name: s.Name, Color: s.Color}
}

// postControl posts a message of the protocol. Its outer timestamp is the inner
// one; whether it has a colour depends on its type (facts: claude-code §5.2).
func (s *Seat) postControl(ctx context.Context, to string, at time.Time, c protocol.Control) error {
	m := mailbox.Message{From: s.Name, Text: protocol.Encode(c), Timestamp: protocol.Stamp(at), Color: s.Color}
	if protocol.KindOf(c) == protocol.TypePlanRequest {
		m.Color = ""
	}
	inner := func(timestamp string) string { return `"timestamp":"` + timestamp + `"` }
	inbox := mailbox.Address{Team: s.Team, Agent: to}
	m = s.stamps.restamp(inbox, m, func(m *mailbox.Message, timestamp string) {
		m.Text = strings.Replace(m.Text, inner(m.Timestamp), inner(timestamp), 1)
		m.Timestamp = timestamp
	})
	return s.teams.outbox.post(ctx, s.agent(), inbox, m, sealedProtocol)
}

// ending is how an agent's time in its team ends: it leaves, or is stopped.
type ending struct {
	left     chan struct{} // closed when the agent has agreed to shut down, or is gone
	stopping chan struct{} // closed when the agent is to be stopped, whatever it does

	mu      sync.Mutex
	hasLeft bool                 // left is closed
	stop    protocol.StopRequest // what closed stopping
	release func() error         // gives up the agent's place; nil when it has none
}

// Left is closed when the agent has left: it agreed to shut down, was stopped,
// or its team is gone. It takes no more input then.
func (s *Seat) Left() <-chan struct{} { return s.ending.left }

// hasLeft reports whether Left is closed.
func (s *Seat) hasLeft() bool {
	s.ending.mu.Lock()
	defer s.ending.mu.Unlock()
	return s.ending.hasLeft
}

// leave closes Left, unless it is closed.
func (s *Seat) leave() {
	s.ending.mu.Lock()
	defer s.ending.mu.Unlock()
	if !s.ending.hasLeft {
		s.ending.hasLeft = true
		close(s.ending.left)
	}
}

// detachRelease returns what gives up the agent's place, once.
func (s *Seat) detachRelease() func() error {
	s.ending.mu.Lock()
	defer s.ending.mu.Unlock()
	release := s.ending.release
	s.ending.release = nil
	return release
}

// Stopping is closed when the agent is to be stopped at once, whatever its model is
// doing: whoever runs the agent closes its session. After that, a teammate with a
// process of its own calls [Seat.Depart]; for one that runs in its lead's process
// the backend reports the end ([Teams.Gone]).
func (s *Seat) Stopping() <-chan struct{} { return s.ending.stopping }

// stopBy closes Stopping, because of this request.
func (s *Seat) stopBy(c protocol.StopRequest) {
	s.ending.mu.Lock()
	defer s.ending.mu.Unlock()
	if s.ending.stop.Type == "" {
		s.ending.stop = c
		close(s.ending.stopping)
	}
}

// stopped returns the request that closed Stopping, and the reason in words; ok is
// false while Stopping is open.
func (s *Seat) stopped() (c protocol.StopRequest, why string, ok bool) {
	s.ending.mu.Lock()
	defer s.ending.mu.Unlock()
	c = s.ending.stop
	why = "it was stopped by the " + mailbox.UserName
	if c.Reason != "" {
		why += ": " + c.Reason
	}
	return c, why, c.Type != ""
}

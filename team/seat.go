package team

import (
	"context"
	"sync"

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

	teams    *Teams
	session  string // the root session of this process
	paneID   string
	backend  string
	own      bool          // the agent has this process to itself
	left     chan struct{} // closed when the agent has agreed to shut down, or is gone
	stopping chan struct{} // closed when the agent is to be stopped, whatever it does
	talks    talks
	receipts *readReceipts
	relays   *relays // questions of its teammates, as the lead

	mu        sync.Mutex
	release   func() error         // gives up the agent's place; nil when it has none
	gone      bool                 // left is closed
	stop      protocol.StopRequest // what closed stopping
	shutdowns map[string]bool      // ids of shutdown requests that wait for a response
	answered  map[string]bool      // ids of those that have one
	idle      lastTurn
	stalled   int // messages that stay unread until something new comes; see [Seat.Stall]
	sent      map[mailbox.ID]bool
	working   bool
	telling   bool   // that the turn is over; until it is told the agent counts as working
	lastDM    string // of this turn, to a peer
	completed string // the task that was completed last in this turn
}

func newSeat(t *Teams, team, name, session string) *Seat {
	s := &Seat{
		Team: team, Name: name, teams: t, session: session, working: true,
		left: make(chan struct{}), stopping: make(chan struct{}),
		receipts:  newReadReceipts(mailbox.Address{Team: team, Agent: name}, t.mail, t.records),
		shutdowns: make(map[string]bool), answered: make(map[string]bool),
		sent: make(map[mailbox.ID]bool),
	}
	s.relays = newRelays(t, s)
	s.Questions, s.Plans = newQuestions(t, s), newPlans(t, s)
	return s
}

// Address is where the agent gets its mail.
func (s *Seat) Address() mailbox.Address { return mailbox.Address{Team: s.Team, Agent: s.Name} }

// Left is closed when the agent has left: it agreed to shut down, was stopped,
// or its team is gone. It takes no more input then.
func (s *Seat) Left() <-chan struct{} { return s.left }

// hasLeft reports whether Left is closed.
func (s *Seat) hasLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// leave closes Left. It reports whether it was open.
func (s *Seat) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	s.gone = true
	close(s.left)
	return true
}

// takeRelease returns what gives up the agent's place, once.
func (s *Seat) takeRelease() func() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	release := s.release
	s.release = nil
	return release
}

// Members is the roster as it is now, the lead first.
func (s *Seat) Members(ctx context.Context) ([]roster.Member, error) {
	config, err := s.config(ctx)
	return config.Members, err
}

func (s *Seat) config(ctx context.Context) (roster.Roster, error) {
	return s.teams.store.Load(ctx, s.Team)
}

// agent names the seat's agent in events.
func (s *Seat) agent() event.Agent {
	return event.Agent{Session: s.session, Name: s.Name, Color: s.Color}
}

package team

import (
	"context"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/event"
	"github.com/cadre-dev/cadre/mailbox"
)

// Seat is one agent's place in one team: what it may do there. Its exported
// fields never change. Its methods may be called from any goroutine; mail of
// one agent keeps its order when they are called one after another.
type Seat struct {
	Team  string // raw name
	Name  string
	Color string // "" for the lead
	Lead  bool

	teams   *Teams
	session string // the lead's session
	paneID  string
	backend string
	left    chan struct{} // closed when the agent has agreed to shut down, or is gone

	mu        sync.Mutex
	gone      bool              // left is closed
	shutdowns map[string]bool   // ids of shutdown requests that wait for a response
	plans     map[string]string // lead: ids of plan requests, and who asks
	working   bool
	lastDM    string // of this turn, to a peer
	completed string // the task that was completed last in this turn
}

func newSeat(t *Teams, team, name, session string) *Seat {
	return &Seat{
		Team: team, Name: name, teams: t, session: session, left: make(chan struct{}), working: true,
		shutdowns: make(map[string]bool), plans: make(map[string]string),
	}
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

// Members is the roster as it is now, the lead first.
func (s *Seat) Members(ctx context.Context) ([]Member, error) {
	config, err := s.config(ctx)
	return config.Members, err
}

func (s *Seat) config(ctx context.Context) (Config, error) {
	return s.teams.store.Load(ctx, s.Team)
}

// agent names the seat's agent in events.
func (s *Seat) agent() event.Agent {
	return event.Agent{Session: s.session, Name: s.Name, Color: s.Color}
}

// post puts plain mail into an inbox and tells of it.
func (s *Seat) post(ctx context.Context, to string, m mailbox.Message) error {
	at := mailbox.Address{Team: s.Team, Agent: to}
	if err := s.teams.mail.Post(ctx, at, m); err != nil {
		return err
	}
	s.teams.publish(s.agent(), event.MailSent{To: at, Message: m})
	return nil
}

// postControl posts a message of the protocol. Its outer timestamp is the inner
// one; whether it has a colour depends on its type (facts: claude-code §5.2).
func (s *Seat) postControl(ctx context.Context, to string, at time.Time, c Control) error {
	m := mailbox.Message{From: s.Name, Text: encode(c), Timestamp: stamp(at), Color: s.Color}
	if c.kind() == typePlanRequest {
		m.Color = ""
	}
	inbox := mailbox.Address{Team: s.Team, Agent: to}
	s.teams.ledger.add(inbox, m)
	if err := s.post(ctx, to, m); err != nil {
		s.teams.ledger.remove(inbox, ledgerKey(m))
		return err
	}
	return nil
}

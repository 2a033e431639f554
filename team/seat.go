package team

import (
	"context"
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

// Working says that a turn of the agent begins.
func (s *Seat) Working() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = true
}

// lastTurn is how an agent's last turn ended.
type lastTurn struct {
	reason    protocol.IdleReason // "" before the first end
	failure   string
	completed string // the id of the task that was completed last
	stalled   int    // messages that the agent has left unread for now
}

// Stall says how many messages of its inbox the agent, whose last turn has failed,
// is not going to read before something new comes; 0: it reads all that there is.
// Whoever waits for the agent does not wait for those, and the next [Seat.NotifyIdle]
// tells of them.
func (s *Seat) Stall(messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = messages
}

func (s *Seat) stalledNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalled
}

// NotifyIdle tells the lead that the agent's turn is over and it waits for
// input: at most once per turn ([Seat.Working] begins the next), unless it fails.
// The note has the summary of the turn's last mail to a peer, which is all that a
// lead sees of it, and the task that was completed last. failure is for
// [protocol.IdleFailed]. For a lead, and for an agent that has left, it does nothing.
func (s *Seat) NotifyIdle(ctx context.Context, reason protocol.IdleReason, failure string) error {
	if reason != protocol.IdleFailed {
		failure = ""
	}
	at := time.Now()
	note := protocol.IdleNotification{Type: protocol.TypeIdle, From: s.Name, Timestamp: protocol.Stamp(at), IdleReason: reason, FailureReason: failure}
	s.mu.Lock()
	if s.Lead || s.gone || !s.working {
		s.mu.Unlock()
		return nil
	}
	note.Summary, note.CompletedTaskID, note.Unread = s.lastDM, s.completed, s.stalled
	if s.completed != "" {
		note.CompletedStatus = "completed"
	}
	s.working, s.telling = false, true // a second call has nothing to tell
	s.mu.Unlock()
	err := s.postControl(ctx, mailbox.LeadName, at, note)
	s.mu.Lock()
	s.telling = false
	if err != nil {
		s.working = true
	} else {
		s.idle, s.lastDM, s.completed = lastTurn{reason, failure, s.completed, s.stalled}, "", ""
	}
	s.mu.Unlock()
	s.teams.changes.beat()
	return err
}

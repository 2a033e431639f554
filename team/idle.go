package team

import (
	"context"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// turnState is whether an agent is at work, and what the note to its lead will say when
// its turn ends.
type turnState struct {
	mu        sync.Mutex
	working   bool
	notifying bool     // the note is being posted; until it is, the agent counts as working
	last      lastTurn // that ended
	stalled   int      // messages that stay unread until something new comes; see [Seat.Stall]
	lastDM    string   // of this turn, to a peer
	completed string   // the task that was completed last in this turn
}

// lastTurn is how an agent's last turn ended.
type lastTurn struct {
	reason    protocol.IdleReason // "" before the first end
	failure   string
	completed string // the id of the task that was completed last
	stalled   int    // messages that the agent leaves unread until something new comes
}

// Of is an agent that works, after this turn.
func (l lastTurn) Of(name string) AwaitedAgent {
	return AwaitedAgent{Name: name, State: AgentWorking, Reason: l.reason, Failure: l.failure, CompletedTask: l.completed}
}

// now says whether the agent is at work, and how its last turn ended.
func (ts *turnState) now() (working bool, last lastTurn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.working || ts.notifying, ts.last
}

func (ts *turnState) unread() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.stalled
}

func (ts *turnState) noteDM(text string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.lastDM = text
}

func (ts *turnState) noteCompleted(taskID string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.completed = taskID
}

// end ends the turn and completes the note about it. ok is false when no turn is
// running. Otherwise the caller posts the note and reports with notified whether it was
// posted.
func (ts *turnState) end(note *protocol.IdleNotification) (ok bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !ts.working {
		return false
	}
	note.Summary, note.CompletedTaskID, note.Unread = ts.lastDM, ts.completed, ts.stalled
	if ts.completed != "" {
		note.CompletedStatus = "completed"
	}
	ts.working, ts.notifying = false, true
	return true
}

// notified records whether the note was posted. If it was not, the turn has not ended.
func (ts *turnState) notified(note *protocol.IdleNotification, ok bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.notifying = false
	if !ok {
		ts.working = true
		return
	}
	ts.last = lastTurn{note.IdleReason, note.FailureReason, note.CompletedTaskID, note.Unread}
	ts.lastDM, ts.completed = "", ""
}

// Working says that a turn of the agent begins.
func (s *Seat) Working() {
	s.turn.mu.Lock()
	defer s.turn.mu.Unlock()
	s.turn.working = true
}

// Stall says how many messages of its inbox the agent, whose last turn has failed,
// is not going to read before something new comes; 0: it reads all that there is.
// Whoever waits for the agent does not wait for those, and the next [Seat.NotifyIdle]
// reports them.
func (s *Seat) Stall(messages int) {
	s.turn.mu.Lock()
	defer s.turn.mu.Unlock()
	s.turn.stalled = messages
}

// NotifyIdle notifies the lead that the agent's turn is over and it waits for
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
	if s.Lead || s.hasLeft() || !s.turn.end(&note) {
		return nil
	}
	err := s.postControl(ctx, mailbox.LeadName, at, note)
	s.turn.notified(&note, err == nil)
	s.teams.changes.announce()
	return err
}

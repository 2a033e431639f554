package team

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/team/protocol"
)

// Two agents may answer each other this often with nothing else done, and this
// often within a minute whatever else they do.
const (
	maxAnswers          = 12
	maxAnswersPerMinute = 15
)

// LoopError says that two agents only answer each other, so that one's mail to
// the other is not sent.
type LoopError struct {
	Peer    string
	Answers int // of the agent, in a row or within a minute
	Fast    bool
}

func (e *LoopError) Error() string {
	what := fmt.Sprintf("%d times in a row with nothing else done in between", e.Answers)
	if e.Fast {
		what = fmt.Sprintf("%d times within a minute", e.Answers)
	}
	return fmt.Sprintf("not sent: you have answered %q %s, which looks like a loop. "+
		"Do not try again now: go on with your work, or end your turn. "+
		"You can write to %q again when you have done something else, such as working on files or on a task", e.Peer, what, e.Peer)
}

// exchanges count the mail between an agent and each of its peers, to notice when two
// only answer each other. The zero value is ready.
type exchanges struct {
	mu   sync.Mutex
	with map[string]*exchange
}

// exchange is the mail between an agent and one peer.
type exchange struct {
	answers  int         // given since something else was done
	answered []time.Time // the answers of the last minute
	mine     bool        // the agent wrote last
	reported bool        // the lead was notified since something else was done
}

// of returns the exchange with a peer; the lock is held.
func (e *exchanges) of(peer string) *exchange {
	if e.with == nil {
		e.with = make(map[string]*exchange)
	}
	if e.with[peer] == nil {
		e.with[peer] = &exchange{mine: true}
	}
	return e.with[peer]
}

// received notes text from a peer. What is no answer brings the agent something
// new, unless it comes from the peer of the loop itself.
func (e *exchanges) received(from string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	with := e.of(from)
	with.mine = false
	if with.answers > 0 {
		return
	}
	for peer, other := range e.with {
		if peer != from {
			other.answers, other.reported = 0, false
		}
	}
}

// sending decides whether the agent may write to a peer now, and notes that it
// does. report says that the lead is to be notified of the refusal.
func (e *exchanges) sending(to string, now time.Time) (refused *LoopError, report bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	with := e.of(to)
	for len(with.answered) > 0 && now.Sub(with.answered[0]) >= time.Minute {
		with.answered = with.answered[1:]
	}
	switch {
	case with.answers >= maxAnswers:
		refused = &LoopError{Peer: to, Answers: with.answers}
	case !with.mine && len(with.answered) >= maxAnswersPerMinute:
		refused = &LoopError{Peer: to, Answers: len(with.answered), Fast: true}
	}
	if refused != nil {
		report = !with.reported
		with.reported = true
		return refused, report
	}
	if !with.mine {
		with.mine = true
		with.answers++
		with.answered = append(with.answered, now)
	}
	return nil, false
}

// progress notes that the agent has done something beside writing.
func (e *exchanges) progress() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, with := range e.with {
		with.answers, with.reported = 0, false
	}
}

// Progress notes that the agent has done something beside writing mail: it ran a
// command, touched a file. Two agents that do nothing else than answer each other
// are stopped from it ([LoopError]).
func (s *Seat) Progress() { s.exchanges.progress() }

// mayAnswer decides whether mail to a peer is sent. When it is not, the lead is notified
// once.
func (s *Seat) mayAnswer(ctx context.Context, peer string) error {
	if peer == s.Name {
		return nil
	}
	refused, report := s.exchanges.sending(peer, time.Now())
	if refused == nil {
		return nil
	}
	if report && !s.Lead {
		at := time.Now()
		note := protocol.LoopDamped{Type: protocol.TypeLoopDamped, From: s.Name, Peer: peer, Answers: refused.Answers, Timestamp: protocol.Stamp(at)}
		if err := s.postControl(ctx, mailbox.LeadName, at, note); err != nil {
			return fmt.Errorf("%w; report it to the lead: %w", refused, err)
		}
	}
	return refused
}

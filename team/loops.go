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

// talks are what an agent exchanges with its peers, to notice when two only
// answer each other. The zero value is ready.
type talks struct {
	mu   sync.Mutex
	with map[string]*talk
}

// talk is what an agent exchanges with one peer.
type talk struct {
	answers  int         // given since something else was done
	answered []time.Time // the answers of the last minute
	mine     bool        // the agent wrote last
	damped   bool        // the lead was told since something else was done
}

// Of returns the talk with a peer; t.mu is held.
func (t *talks) Of(peer string) *talk {
	if t.with == nil {
		t.with = make(map[string]*talk)
	}
	if t.with[peer] == nil {
		t.with[peer] = &talk{mine: true}
	}
	return t.with[peer]
}

// received notes text from a peer. What is no answer brings the agent something
// new, unless it comes from the peer of the loop itself.
func (t *talks) received(from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	talk := t.Of(from)
	talk.mine = false
	if talk.answers > 0 {
		return
	}
	for peer, other := range t.with {
		if peer != from {
			other.answers, other.damped = 0, false
		}
	}
}

// sending decides whether the agent may write to a peer now, and notes that it
// does. tell says that the lead is to be told of the refusal.
func (t *talks) sending(to string, now time.Time) (refused *LoopError, tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	talk := t.Of(to)
	for len(talk.answered) > 0 && now.Sub(talk.answered[0]) >= time.Minute {
		talk.answered = talk.answered[1:]
	}
	switch {
	case talk.answers >= maxAnswers:
		refused = &LoopError{Peer: to, Answers: talk.answers}
	case !talk.mine && len(talk.answered) >= maxAnswersPerMinute:
		refused = &LoopError{Peer: to, Answers: len(talk.answered), Fast: true}
	}
	if refused != nil {
		tell = !talk.damped
		talk.damped = true
		return refused, tell
	}
	if !talk.mine {
		talk.mine = true
		talk.answers++
		talk.answered = append(talk.answered, now)
	}
	return nil, false
}

// progress notes that the agent has done something beside writing.
func (t *talks) progress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, talk := range t.with {
		talk.answers, talk.damped = 0, false
	}
}

// Progress notes that the agent has done something beside writing mail: it ran a
// command, touched a file. Two agents that do nothing else than answer each other
// are stopped from it ([LoopError]).
func (s *Seat) Progress() { s.talks.progress() }

// mayAnswer decides whether mail to a peer is sent, and tells the lead, once,
// when it is not.
func (s *Seat) mayAnswer(ctx context.Context, peer string) error {
	if peer == s.Name {
		return nil
	}
	refused, tell := s.talks.sending(peer, time.Now())
	if refused == nil {
		return nil
	}
	if tell && !s.Lead {
		at := time.Now()
		note := protocol.LoopDamped{Type: protocol.TypeLoopDamped, From: s.Name, Peer: peer, Answers: refused.Answers, Timestamp: protocol.Stamp(at)}
		if err := s.postControl(ctx, mailbox.LeadName, at, note); err != nil {
			return fmt.Errorf("%w; tell the lead of it: %w", refused, err)
		}
	}
	return refused
}

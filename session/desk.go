package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/event"
)

// Serve shows questions on the desk and removes them again, delivers the answers that
// other processes leave there to the askers, and ends questions at their deadline.
// Nothing is watched before the first question is asked. It returns when ctx ends, and
// the desk is as it should be.
func (q *Questions) Serve(ctx context.Context) {
	defer q.updateDesk(context.WithoutCancel(ctx))
	for !q.hasAsked() {
		select {
		case <-q.changed:
		case <-ctx.Done():
			return
		}
		q.updateDesk(ctx)
	}
	var left <-chan struct{}
	if q.desk != nil {
		signal, unwatch := q.desk.Watch()
		defer unwatch()
		left = signal
	}
	over := stoppedTimer()
	defer over.Stop()
	for {
		q.updateDesk(ctx)
		q.collect(ctx)
		if next := q.expire(ctx, time.Now()); !next.IsZero() {
			over.Reset(time.Until(next))
		}
		select {
		case <-left:
		case <-q.changed:
		case <-over.C:
		case <-ctx.Done():
			return
		}
		over.Stop()
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// collect answers the open questions for which an answer was left.
func (q *Questions) collect(ctx context.Context) {
	for _, a := range q.Pending() {
		answer, ok, err := q.left(ctx, a)
		if ok {
			err = q.Answer(ctx, a.ID, answer)
		}
		if err != nil && !isAnswered(err) && ctx.Err() == nil {
			q.warn(event.Agent{Session: a.SessionID, ID: a.AgentID, Name: a.AgentName}, err)
		}
	}
}

// left is the answer that lies on the desk for a question, if any.
func (q *Questions) left(ctx context.Context, a ask.Ask) (answer ask.Answer, ok bool, err error) {
	if q.desk == nil {
		return ask.Answer{}, false, nil
	}
	return q.desk.Left(ctx, a)
}

// deskChange is a question that is to be shown on the desk, or removed from it.
type deskChange struct {
	agent event.Agent
	id    string
	shown *ask.Ask // nil: it is removed
}

// lay queues a question to be shown on the desk, so that the asker does not wait for the
// lock of a file. Until then it can be answered in this process only.
func (q *Questions) lay(one *question) {
	asked := one.ask
	q.changeDesk(deskChange{one.agent, asked.ID, &asked})
}

// clear queues a question to be removed from the desk.
func (q *Questions) clear(agent event.Agent, id string) { q.changeDesk(deskChange{agent, id, nil}) }

func (q *Questions) changeDesk(c deskChange) {
	if q.desk == nil {
		return
	}
	q.mu.Lock()
	q.deskChanges = append(q.deskChanges, c)
	q.mu.Unlock()
	q.changed.Raise()
}

// updateDesk makes the queued changes, in their order. Only Serve calls it.
func (q *Questions) updateDesk(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for c, ok := q.nextDeskChange(false); ok; c, ok = q.nextDeskChange(true) {
		var err error
		if c.shown != nil {
			err = q.desk.Lay(ctx, *c.shown)
		} else {
			err = q.desk.Clear(ctx, c.id)
		}
		if err != nil {
			q.warn(c.agent, err)
		}
	}
}

// nextDeskChange is the first pending change; done says that the one before it was made.
func (q *Questions) nextDeskChange(done bool) (c deskChange, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if done {
		q.deskChanges = q.deskChanges[1:]
	}
	if len(q.deskChanges) == 0 {
		q.deskChanges = nil
		return deskChange{}, false
	}
	return q.deskChanges[0], true
}

// ClearRelayed removes from the desk what a killed process of this session relayed:
// those that are open still are relayed again when their messages are read again,
// before which this has to be called. One for which an answer was left stays for that.
func (q *Questions) ClearRelayed(ctx context.Context, session string) error {
	return q.clearWhere(ctx, func(a ask.Ask) (bool, error) {
		if a.SessionID != session || strings.HasPrefix(a.ID, AskPrefix) {
			return false, nil
		}
		_, answered, err := q.desk.Left(ctx, a)
		return !answered, err
	})
}

// ClearOwn removes from the desk what a killed process of this session asked and nobody
// waits for any more: questions of its sub-agents, which do not come back. It is
// called when all agents that come back are there.
func (q *Questions) ClearOwn(ctx context.Context, session string) error {
	return q.clearWhere(ctx, func(a ask.Ask) (bool, error) {
		return a.SessionID == session && strings.HasPrefix(a.ID, AskPrefix) && !q.IsPending(a.ID), nil
	})
}

func (q *Questions) clearWhere(ctx context.Context, old func(ask.Ask) (bool, error)) error {
	if q.desk == nil {
		return nil
	}
	open, err := q.desk.Open(ctx)
	for _, a := range open {
		isOld, oldErr := old(a)
		if oldErr == nil && isOld {
			oldErr = q.desk.Clear(ctx, a.ID)
		}
		err = errors.Join(err, oldErr)
	}
	if err != nil {
		return fmt.Errorf("remove old questions from the desk: %w", err)
	}
	return nil
}

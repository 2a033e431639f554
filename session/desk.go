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

// Serve hands the answers that other processes leave on the desk to whoever asked,
// and ends questions at their deadline. Nothing is watched before the first question
// is asked. It returns when ctx ends.
func (q *Questions) Serve(ctx context.Context) {
	select {
	case <-q.changed:
	case <-ctx.Done():
		return
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

// lay shows a question on the desk. Without it the question can be answered in this
// process all the same.
func (q *Questions) lay(ctx context.Context, one *question) {
	if q.desk == nil {
		return
	}
	if err := q.desk.Lay(context.WithoutCancel(ctx), one.ask); err != nil {
		q.warn(one.agent, err)
	}
}

// clear takes a question off the desk.
func (q *Questions) clear(ctx context.Context, agent event.Agent, id string) {
	if q.desk == nil {
		return
	}
	if err := q.desk.Clear(context.WithoutCancel(ctx), id); err != nil {
		q.warn(agent, err)
	}
}

// ClearRelayed takes off the desk what a killed process of this session relayed:
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

// ClearOwn takes off the desk what a killed process of this session asked and nobody
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
		return fmt.Errorf("take old questions off the desk: %w", err)
	}
	return nil
}

package cadre

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cadre-dev/cadre/ask"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
)

// relayed are the questions of teammates that this lead has laid on the desk in
// their place, and when the time to answer each is over (zero: never). Plans are
// the lead's to ask about, and another program's agent has no desk.
type relayed struct {
	changed chan struct{} // holds one signal

	mu   sync.Mutex
	open map[string]time.Time
}

func newRelayed() relayed {
	return relayed{changed: make(chan struct{}, 1), open: make(map[string]time.Time)}
}

func (q *relayed) add(a ask.Ask) {
	q.mu.Lock()
	q.open[a.ID] = a.Deadline
	q.mu.Unlock()
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// take forgets a question, and reports whether it was there.
func (q *relayed) take(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.open[id]
	delete(q.open, id)
	return ok
}

// over lists the questions whose time is over, and says when the next one's is.
func (q *relayed) over(now time.Time) (ids []string, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, deadline := range q.open {
		switch {
		case deadline.IsZero():
		case !deadline.After(now):
			ids = append(ids, id)
		case next.IsZero() || deadline.Before(next):
			next = deadline
		}
	}
	return ids, next
}

// layRelayed lays a question on the desk that its asker cannot lay there, with the
// deadline that all questions have.
func (r *Runtime) layRelayed(ctx context.Context, from team.Member, a ask.Ask) ask.Ask {
	if a.Kind == ask.Permission || a.Kind == ask.Choice {
		ours, err := r.teams.Signs(ctx, mailbox.Address{Team: a.Team, Agent: from.Name})
		if ours || err != nil {
			return a
		}
	}
	if r.settings.AskDeadline > 0 {
		a.Deadline = a.Asked.Add(r.settings.AskDeadline)
	}
	if err := r.stores.desk.Lay(ctx, a); err != nil {
		r.warn(fmt.Errorf("show the question of %s to other processes: %w", from.Name, err))
	}
	r.relays.add(a)
	return a
}

// clearRelayed takes a question from the desk that has its answer.
func (r *Runtime) clearRelayed(ctx context.Context, id string) {
	if !r.relays.take(id) {
		return
	}
	if err := r.stores.desk.Clear(context.WithoutCancel(ctx), id); err != nil {
		r.warn(fmt.Errorf("take question %s from the desk: %w", id, err))
	}
}

// clearOldRelayed takes away the questions that a killed process of this session
// relayed: those that wait for their answer still are laid again when their message
// is read again. One for which an answer was left stays for that.
func (r *Runtime) clearOldRelayed(ctx context.Context) error {
	open, err := r.stores.desk.Open(ctx)
	for _, a := range open {
		if a.SessionID != r.info.SessionID || strings.HasPrefix(a.ID, session.AskPrefix) {
			continue
		}
		_, answered, leftErr := r.stores.desk.Left(ctx, a)
		if leftErr == nil && !answered {
			leftErr = r.stores.desk.Clear(ctx, a.ID)
		}
		err = errors.Join(err, leftErr)
	}
	return err
}

// expireRelayed ends the questions whose time is over with a no, and returns when
// the next one's is; zero for never.
func (r *Runtime) expireRelayed(ctx context.Context) (next time.Time) {
	ids, next := r.relays.over(time.Now())
	for _, id := range ids {
		if err := r.tree.Answer(ctx, id, ask.Answer{By: "deadline", Message: nobodyDecided}); err != nil {
			r.clearRelayed(ctx, id) // nobody waits for it
		}
	}
	return next
}

// What an agent is told whose question nobody decides.
const (
	nobodyDecided = "Nobody answered within the time for it, so the answer is no. Do not ask the same again: " +
		"go on without it, or end your turn and say what you would need."
	nobodyAtTheLead = "Nobody can be asked in the run of this team's lead, so the answer is no. Do not ask the same again: " +
		"find a way that needs no permission, or end your turn and say what you would need."
)

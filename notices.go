package cadre

import (
	"context"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/session"
)

// notices is the source of notices about jobs that ended while their owner did not
// wait for them.
type notices struct {
	jobs  *job.Pool
	owner string
	past  *job.Past       // the jobs of an earlier process; nil once the session is open
	ready <-chan struct{} // closed when the runtime is ready for input
}

// Opened implements [session.Source]: of jobs that ended before a restart, the notices
// that the transcript does not show come again.
func (n *notices) Opened(receipts []string) {
	n.past.Recall(receipts)
	n.past = nil
}

// Next implements [session.Source].
func (n *notices) Next(ctx context.Context) ([]session.Input, error) {
	if err := session.Await(ctx, n.ready); err != nil {
		return nil, err
	}
	notice, err := n.jobs.Next(ctx, n.owner)
	if err != nil {
		return nil, err
	}
	in := session.Text(session.Notice, notice.Text())
	in.Title = notice.Summary()
	in.Receipts = []string{job.Receipt(notice.Job.ID)}
	// Until then the notice counts as pending, and the session as busy.
	in.Kept = func(context.Context, error) { n.jobs.Acknowledge(n.owner) }
	return []session.Input{in}, nil
}

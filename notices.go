package cadre

import (
	"context"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/session"
)

// noticeSource is the source of notices about jobs that ended while their owner did not
// wait for them.
type noticeSource struct {
	jobs   *job.Pool
	owner  string
	opened <-chan struct{} // closed when the runtime is ready for input
}

// Next implements [session.Source].
func (s noticeSource) Next(ctx context.Context) ([]session.Input, error) {
	if err := session.Await(ctx, s.opened); err != nil {
		return nil, err
	}
	notice, err := s.jobs.Next(ctx, s.owner)
	if err != nil {
		return nil, err
	}
	in := session.Text(session.Notice, notice.Text())
	in.Title = notice.Summary()
	in.Receipts = []string{job.Receipt(notice.Job.ID)}
	// Until then it is on its way, which whoever waits for the session must see.
	in.Kept = func(context.Context, error) { s.jobs.Told(s.owner) }
	return []session.Input{in}, nil
}

package cadre

import (
	"context"
	"errors"

	"github.com/cadre-dev/cadre/job"
	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// ranks say when mail of a kind is taken.
var ranks = map[team.Kind]session.Rank{
	team.KindShutdown: session.Shutdown,
	team.KindLead:     session.LeadMail,
	team.KindPeer:     session.PeerMail,
	team.KindSystem:   session.PeerMail,
	team.KindTask:     session.TaskToTake,
}

// mailSource hands a session its mail. A sub-agent has none, and gets none.
type mailSource struct {
	teams  *team.Teams
	caller tool.Caller
	opened <-chan struct{}       // closed when the runtime is ready for input
	ready  func(context.Context) // to be done before mail is marked read; nil for nothing
	shown  []mailbox.ID          // stands in the transcript already
	inbox  *team.Inbox           // opened by the first Next
}

// recall takes the receipts of the transcript, before the first Next.
func (s *mailSource) recall(receipts []string) { s.shown = mailIDs(receipts) }

// Next implements [session.Source].
func (s *mailSource) Next(ctx context.Context) ([]session.Input, error) {
	if err := await(ctx, s.opened); err != nil {
		return nil, err
	}
	if s.inbox == nil {
		inbox, ok := s.teams.Inbox(s.caller, s.shown)
		if !ok {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		s.inbox, s.shown = inbox, nil
	}
	mails, err := s.inbox.Next(ctx)
	if errors.Is(err, team.ErrLeft) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	inputs := make([]session.Input, len(mails))
	for i, m := range mails {
		inputs[i] = mailInput(m)
		inputs[i].Kept, inputs[i].Bulk = s.kept(m), !m.Urgent
	}
	return inputs, err
}

// kept marks mail read once the transcript has it, and lets the inbox offer
// again what could not be kept.
func (s *mailSource) kept(m team.Mail) func(context.Context, error) {
	return func(ctx context.Context, err error) {
		if err != nil {
			s.inbox.GiveBack(m.IDs)
			return
		}
		if s.ready != nil {
			s.ready(ctx)
		}
		// When marking fails the inbox tries again with the next mail, and knows
		// that this was shown.
		_ = s.inbox.Shown(ctx, m.IDs)
	}
}

// Close implements [io.Closer].
func (s *mailSource) Close() error {
	if s.inbox != nil {
		s.inbox.Close()
	}
	return nil
}

func mailInput(m team.Mail) session.Input {
	in := session.Input{
		Rank: ranks[m.Kind], Title: m.Preview, Content: []transcript.Block{transcript.TextBlock(m.Text)},
		Receipts: make([]string, len(m.IDs)), Mode: permission.Mode(m.Mode), Quiet: m.Quiet,
	}
	for i, id := range m.IDs {
		in.Receipts[i] = string(id)
	}
	return in
}

func mailIDs(receipts []string) []mailbox.ID {
	ids := make([]mailbox.ID, len(receipts))
	for i, r := range receipts {
		ids[i] = mailbox.ID(r)
	}
	return ids
}

// noticeSource hands a session the ends of the jobs that it did not wait for.
type noticeSource struct {
	jobs   *job.Pool
	owner  string
	opened <-chan struct{} // as in mailSource
}

// Next implements [session.Source].
func (s noticeSource) Next(ctx context.Context) ([]session.Input, error) {
	if err := await(ctx, s.opened); err != nil {
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

// await blocks until done is closed; the error is why ctx ended.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

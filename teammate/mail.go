package teammate

import (
	"context"
	"errors"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/tool"
	"github.com/cadre-dev/cadre/transcript"
)

// ranks order mail of each kind among the inputs of a session.
var ranks = map[team.Kind]session.Rank{
	team.KindShutdown: session.Shutdown,
	team.KindLead:     session.LeadMail,
	team.KindPeer:     session.PeerMail,
	team.KindSystem:   session.PeerMail,
	team.KindTask:     session.TaskToTake,
}

// Mail is the source of a session's mail. A sub-agent has no inbox, and gets none.
type Mail struct {
	Teams  *team.Teams
	Caller tool.Caller
	Ready  <-chan struct{} // closed when the process is ready for input
	// BeforeRead is called before mail is marked read; nil: nothing.
	BeforeRead func(context.Context)

	shown []mailbox.ID // stands in the transcript already
	inbox *team.Inbox  // opened by the first Next
}

// Opened implements [session.Source]: mail that the transcript shows is not shown again.
func (s *Mail) Opened(receipts []string) { s.shown = mailIDs(receipts) }

// Next implements [session.Source].
func (s *Mail) Next(ctx context.Context) ([]session.Input, error) {
	if err := session.Await(ctx, s.Ready); err != nil {
		return nil, err
	}
	if s.inbox == nil {
		inbox, ok := s.Teams.Inbox(s.Caller, s.shown)
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
		inputs[i] = inputOf(m)
		inputs[i].Kept, inputs[i].Bulk = s.kept(m), !m.Urgent
	}
	return inputs, err
}

// kept marks mail read once the transcript has it, and lets the inbox offer
// again what could not be kept.
func (s *Mail) kept(m team.Mail) func(context.Context, error) {
	return func(ctx context.Context, err error) {
		if err != nil {
			s.inbox.GiveBack(m.IDs)
			return
		}
		if s.BeforeRead != nil {
			s.BeforeRead(ctx)
		}
		// When marking fails the inbox tries again with the next mail, and knows
		// that this was shown.
		_ = s.inbox.Shown(ctx, m.IDs)
	}
}

// Close implements [io.Closer].
func (s *Mail) Close() error {
	if s.inbox != nil {
		s.inbox.Close()
	}
	return nil
}

// inputOf is mail as input for a session.
func inputOf(m team.Mail) session.Input {
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

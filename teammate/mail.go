package teammate

import (
	"context"
	"errors"

	"github.com/cadre-dev/cadre/mailbox"
	"github.com/cadre-dev/cadre/permission"
	"github.com/cadre-dev/cadre/prompt"
	"github.com/cadre-dev/cadre/session"
	"github.com/cadre-dev/cadre/team"
	"github.com/cadre-dev/cadre/team/protocol"
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
	// Keep stores the whole text of a large message where the agent can read it, in case
	// its model's context window has no room for all of it. nil: nothing is stored.
	Keep func(id mailbox.ID, text string) (path string, err error)

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
		if len(m.Whole) > large && s.Keep != nil {
			s.keepWhole(m, &inputs[i])
		}
	}
	return inputs, err
}

// large is the size from which the whole text of a message is stored in a file.
const large = 16 << 10

// keepWhole stores the text of a large message in a file, and says where when not all of
// it is shown. When it cannot be stored the message is shown as it is: its sender's text
// is still in the inbox.
func (s *Mail) keepWhole(m team.Mail, in *session.Input) {
	path, err := s.Keep(m.IDs[0], m.Whole)
	if err != nil {
		return
	}
	in.WholeAt = path
	if len(m.Whole) > protocol.MaxShown {
		in.Content = append(in.Content, transcript.TextBlock(prompt.Reminder("The whole message above stands in "+path+": read there what you need of it.")))
	}
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
